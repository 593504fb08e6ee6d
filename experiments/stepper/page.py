"""A story as one page that opens from disk and asks the network for nothing.

Without JavaScript it is the transcript; with it, everything goes along step by step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from experiments.stepper.layout import ARC, lay_out
from experiments.stepper.plain import link_lines, step_line
from experiments.stepper.story import Cell, Entry, Frame, Story, name_node, show_who
from ringleaf.units import format_time
from topologies.graph import Role

_PAGE = Path(__file__).resolve().parent.parent / "page"
_BUTTONS = (
    ("first", "|◀", "First (Home)"),
    ("step-back", "◀◀", "A whole step back (up arrow)"),
    ("back", "◀", "One back (left arrow)"),
    ("play", "▶ Play", "Play or pause (space)"),
    ("next", "▶", "One on (right arrow)"),
    ("step-next", "▶▶", "A whole step on (down arrow)"),
    ("last", "▶|", "Last (End)"),
)
_SPEEDS = (("0.5", "0.5x"), ("1", "1x"), ("2", "2x"), ("4", "4x"))


def render(story: Story) -> str:
    """Return the page."""
    data = json.dumps(_Data(story).record(), separators=(",", ":")).replace("</", "<\\/")
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
        '<p id="legend" class="soft"></p>',
        '<div id="switches"></div>',
        "</section>",
        '<section id="transcript" aria-label="All steps">',
        '<h2 class="label">All steps</h2>',
        *_transcript(story),
        "</section>",
        "</main>",
        f'<footer class="soft"><code>{escape(story.command)} --html FILE</code></footer>',
    )
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{title}, step by step</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{(_PAGE / 'step.css').read_text()}</style>\n"
        f"<body>\n{chr(10).join(parts)}\n"
        f'<script type="application/json" id="story">{data}</script>\n'
        f"<script>\n{(_PAGE / 'step.js').read_text()}</script>\n</body>\n</html>\n"
    )


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
    yield "<ol>"
    for number, frame in enumerate(story.frames):
        if number in story.starts:
            yield f'<li class="stage" role="presentation">{escape(step_line(story, frame.step))}'
            yield from (f" <small>{escape(line)}</small>" for line in link_lines(story, frame.step))
            yield "</li>"
        yield (
            f'<li class="frame" id="frame-{number + 1}" value="{number + 1}">'
            f"<b>{escape(frame.title)}</b> <span>{escape(frame.text)}</span></li>"
        )
    yield "</ol>"


class _Data:
    """What the script needs; equal cells and entries are there once, and go by number."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._cells: dict[Cell, int] = {}
        self._entries: dict[Entry, int] = {}

    def record(self) -> dict[str, Any]:
        story = self._story
        record = {
            "title": story.title,
            "ranks": story.ranks,
            "nodes": [name_node(node, story.ranks) for node in range(len(story.first))],
            "names": story.cells,
            "first": [[self._cell(cell) for cell in cells] for cells in story.first],
            "goals": story.goals,
            "frames": [self._frame(frame) for frame in story.frames],
            "starts": story.starts,
            "map": self._map(),
        }
        return record | {
            "cells": [
                [cell.who, show_who(cell.who, story.ranks), cell.numbers] for cell in self._cells
            ],
            "entries": [self._facts(entry) for entry in self._entries],
        }

    def _cell(self, cell: Cell | None) -> int:
        return -1 if cell is None else self._cells.setdefault(cell, len(self._cells))

    def _entry(self, entry: Entry | None) -> int:
        if entry is None:
            return -1
        self._cell(entry.total)
        return self._entries.setdefault(entry, len(self._entries))

    def _facts(self, entry: Entry) -> list[Any]:
        facts = [[fact.name, fact.text, fact.bits] for fact in entry.facts]
        return [facts, self._cell(entry.total)]

    def _frame(self, frame: Frame) -> dict[str, Any]:
        return {
            "step": frame.step,
            "action": frame.action.value,
            "title": frame.title,
            "text": frame.text,
            "label": frame.label,
            "path": frame.path,
            "size": frame.size_bytes,
            "carries": self._cell(frame.carries),
            "time": None if frame.time_ps is None else format_time(frame.time_ps),
            "buffers": [
                [c.rank, c.cell, self._cell(c.before), self._cell(c.after)] for c in frame.buffers
            ],
            "entries": [
                [c.switch, c.index, self._entry(c.before), self._entry(c.after)]
                for c in frame.entries
            ],
        }

    def _map(self) -> dict[str, Any]:
        graph = self._story.graph
        layout = lay_out(graph)
        nodes = [
            [node, *layout.at[node], data["role"] is Role.HOST, data["label"]]
            for node, data in graph.nodes(data=True)
        ]
        return {
            "width": layout.width,
            "height": layout.height,
            "arc": ARC,
            "nodes": nodes,
            "links": [[a, b, frozenset((a, b)) in layout.arcs] for a, b in graph.edges],
        }
