"""A story as one page that opens from disk and asks the network for nothing.

Without JavaScript it shows the transcript; with it, everything advances step by step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from ringleaf.core.shipped import PAGE
from ringleaf.core.units import format_count, format_time
from ringleaf.experiments.pages.data import for_script
from ringleaf.experiments.stepper.layout import ARC, lay_out
from ringleaf.experiments.stepper.plain import link_lines, step_line
from ringleaf.experiments.stepper.story import (
    Frame,
    FrameAction,
    StateEntry,
    Story,
    TensorCell,
    show_who,
)
from ringleaf.topologies.graph import Role

_BUTTONS = (
    ("first", "|◀", "First (Home)"),
    ("step-back", "◀◀", "A whole step back (up arrow)"),
    ("back", "◀", "One back (left arrow)"),
    ("play", "▶ Play", "Play or pause (space)"),
    ("next", "▶", "One on (right arrow)"),
    ("step-next", "▶▶", "A whole step on (down arrow)"),
    ("last", "▶|", "Last (End)"),
)
MOST_WRITTEN = 2000
"""Frames of the longest story with a full transcript for browsers without JavaScript."""

BLANK = "\x1f"
"""The placeholder for a number in a sentence's pattern; no sentence contains it."""
_NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d{0,14})(?!\d)", re.ASCII)
_SPEEDS = (("0.5", "0.5x"), ("1", "1x"), ("2", "2x"), ("4", "4x"))


def render(story: Story) -> str:
    """Return the page."""
    data = for_script(_Data(story).record())
    title = escape(story.title)
    parts = (
        "<header>",
        f'<div><h1>{title}</h1><p class="soft">{escape(story.summary)}</p></div>',
        _player(len(story.frames)),
        "</header>",
        "<main>",
        '<section id="scene" aria-label="Now" hidden>',
        '<div id="card" role="status" aria-live="polite"><p id="count" class="soft"></p>'
        '<h2 id="title"></h2><p id="text"></p></div>',
        f'<h2 class="label">{escape(_where(story))}</h2>',
        '<div id="map"></div>',
        '<h2 class="label" id="links-label">Links in this step</h2><div id="links"></div>',
        "</section>",
        '<section id="state" aria-label="State" hidden>',
        '<h2 class="label">Buffers: whose contributions each rank holds</h2>',
        '<div id="buffers" tabindex="0" role="region" aria-label="Buffers"></div>',
        '<p id="cell" class="soft" hidden></p>',
        '<p id="legend" class="soft"></p>',
        '<div id="switches"></div>',
        "</section>",
        '<section id="transcript" aria-label="All steps">',
        '<h2 class="label">All steps</h2>',
        '<div id="rows" role="list" tabindex="0" aria-label="All steps" hidden></div>',
        "<noscript>",
        *_transcript(story),
        "</noscript>",
        "</section>",
        "</main>",
        f'<footer class="soft"><code>{escape(story.command)} --html FILE</code></footer>',
    )
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{title}, step by step</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{(PAGE / 'step.css').read_text(encoding='utf-8')}</style>\n"
        f"<body>\n{chr(10).join(parts)}\n"
        f'<script type="application/json" id="story">{data}</script>\n'
        f"<script>\n{_script()}</script>\n</body>\n</html>\n"
    )


def _script() -> str:
    return "".join((PAGE / name).read_text(encoding="utf-8") for name in ("matrix.js", "step.js"))


def _where(story: Story) -> str:
    return f"Topology: {story.graph.name}"


def _player(count: int) -> str:
    buttons = "".join(
        f'<button id="{name}" title="{hint}" aria-label="{hint}">{text}</button>'
        for name, text, hint in _BUTTONS
    )
    speeds = "".join(
        f'<option value="{value}"{" selected" if value == "1" else ""}>{text}</option>'
        for value, text in _SPEEDS
    )
    return (
        f'<nav id="player" aria-label="Player" hidden><span class="buttons">{buttons}</span>'
        f'<input id="scrub" type="range" min="0" max="{count}" value="0" aria-label="Position">'
        f'<span class="choices"><label><input id="whole" type="checkbox"> whole steps</label>'
        f'<select id="speed" aria-label="Speed">{speeds}</select></span></nav>'
    )


def _transcript(story: Story) -> Iterator[str]:
    """Yield the HTML for browsers without JavaScript; the script has the same sentences itself."""
    is_written = len(story.frames) <= MOST_WRITTEN
    if not is_written:
        yield (
            f'<p class="soft">{format_count(len(story.frames), "frame")}: here are the steps '
            f"alone. Each frame is in the text of <code>{escape(story.command)} --plain</code>.</p>"
        )
    yield "<ol>"
    for step in range(story.steps):
        links = "".join(f" <small>{escape(line)}</small>" for line in link_lines(story, step))
        yield f'<li class="stage" role="presentation">{escape(step_line(story, step))}{links}</li>'
        if is_written:
            frames = range(story.starts[step], story.starts[step + 1])
            yield from (_written(story.frames[number], number + 1) for number in frames)
    yield "</ol>"


def _written(frame: Frame, number: int) -> str:
    return (
        f'<li class="frame" value="{number}">'
        f"<b>{escape(frame.title)}</b> <span>{escape(frame.text)}</span></li>"
    )


class _Data:
    """The story for the script: each distinct sentence, path, cell and entry once, then numbers.

    Frames have changes only; the script finds the earlier state by walking through them.
    """

    def __init__(self, story: Story) -> None:
        self._story = story
        self._patterns = _Table()
        self._paths = _Table()
        self._times = _Table()
        self._who = _Table()
        self._cells = _Table()
        self._entries = _Table()

    def record(self) -> dict[str, Any]:
        """Return the page's data, to be written as JSON."""
        story = self._story
        record = {
            "ranks": story.ranks,
            "nodes": [story.name(place) for place in range(len(story.first))],
            "names": story.cells,
            "first": [[self._cell(cell) for cell in cells] for cells in story.first],
            "goals": [[self._goal(goal) for goal in goals] for goals in story.goals],
            "actions": [action.value for action in FrameAction],
            "frames": [self._frame(frame) for frame in story.frames],
            "starts": story.starts,
            "map": self._map(),
        }
        return record | {
            "entries": [self._facts(entry) for entry in self._entries.values],
            "cells": [[self._name(cell.who), *cell.numbers] for cell in self._cells.values],
            "who": self._who.values,
            "patterns": self._patterns.values,
            "paths": self._paths.values,
            "times": self._times.values,
        }

    def _name(self, who: tuple[int, ...]) -> int:
        return self._who.number(show_who(who, self._story.ranks))

    def _goal(self, goal: tuple[int, ...] | None) -> int:
        return -1 if goal is None else self._name(goal)

    def _cell(self, cell: TensorCell | None) -> int:
        return -1 if cell is None else self._cells.number(cell)

    def _entry(self, entry: StateEntry | None) -> int:
        if entry is None:
            return -1
        self._cell(entry.total)
        return self._entries.number(entry)

    def _facts(self, entry: StateEntry) -> list[Any]:
        facts = [[fact.name, fact.text, fact.bits] for fact in entry.facts]
        return [facts, self._cell(entry.total)]

    def _text(self, text: str) -> list[int]:
        """Return the number of a sentence's pattern, and then the numbers in the sentence."""
        pattern = self._patterns.number(_NUMBER.sub(BLANK, text))
        return [pattern, *map(int, _NUMBER.findall(text))]

    def _frame(self, frame: Frame) -> list[Any]:
        time = "" if frame.time_ps is None else format_time(frame.time_ps)
        return [
            list(FrameAction).index(frame.action),
            self._text(frame.title),
            self._text(frame.text),
            self._text(frame.label),
            self._paths.number(frame.path),
            frame.size_bytes,
            self._times.number(time),
            [n for c in frame.buffers for n in (c.rank, c.cell, self._cell(c.after))],
            [n for c in frame.entries for n in (c.switch, c.index, self._entry(c.after))],
        ]

    def _map(self) -> dict[str, Any]:
        graph = self._story.graph
        layout = lay_out(graph)
        nodes = [
            [node, *layout.at[node], data["role"] is Role.HOST, data["label"], *layout.size[node]]
            for node, data in graph.nodes(data=True)
        ]
        return {
            "width": layout.width,
            "height": layout.height,
            "arc": ARC,
            "nodes": nodes,
            "links": [[a, b, frozenset((a, b)) in layout.arcs] for a, b in graph.edges],
        }


class _Table:
    """Distinct values by number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """Return the number of a value, the next one if it is new."""
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Any]:
        """The values, by number."""
        return list(self._numbers)
