"""A walk as one page that opens from disk and asks the network for nothing.

Without JavaScript it shows the list of steps and the source; with it, both advance step by step.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from ringleaf.core.shipped import PAGE
from ringleaf.experiments.pages.data import for_script
from ringleaf.experiments.walk.describe import Said, ShownField, say
from ringleaf.experiments.walk.highlight import highlight
from ringleaf.switches.walk import steps
from ringleaf.switches.walk.formats import show
from ringleaf.switches.walk.steps import PacketWalk, Step

_STAGES: dict[type[Step], str] = {
    steps.Received: "Parser and ingress",
    steps.Managed: "Traffic manager",
    steps.EgressStarted: "Egress",
}
_BUTTONS = (
    ("first", "|◀", "First step (Home)"),
    ("back", "◀", "One step back (left arrow)"),
    ("play", "▶ Play", "Play or pause (space)"),
    ("next", "▶", "One step on (right arrow)"),
    ("last", "▶|", "Last step (End)"),
)


def render(walk: PacketWalk, story: str) -> str:
    """Return the page; `story` is a phrase on the point of the walk."""
    title = f"One packet through {walk.program}"
    texts = [say(walk, step) for step in walk.steps]
    data = for_script(_data(walk))
    parts = (
        "<header>",
        f"<div><h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(story)}</p></div>',
        _player(len(walk.steps)),
        "</header>",
        "<main>",
        '<section id="steps" aria-label="Steps"><h2>Steps</h2><ol>',
        *_steps(walk, texts),
        "</ol></section>",
        '<section id="source" aria-label="P4 source">',
        *_sources(walk),
        "</section>",
        '<section id="now" aria-label="Now" hidden>',
        '<h2>This step</h2><div id="card" aria-live="polite"></div>',
        '<h2>Packet</h2><div id="bytes"></div>',
        '<h2>Fields</h2><div id="fields"></div>',
        "</section>",
        "</main>",
    )
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{(PAGE / 'walk.css').read_text(encoding='utf-8')}</style>\n"
        f"<body>\n{chr(10).join(parts)}\n"
        f'<script type="application/json" id="walk">{data}</script>\n'
        f"<script>\n{(PAGE / 'walk.js').read_text(encoding='utf-8')}</script>\n</body>\n</html>\n"
    )


def _player(count: int) -> str:
    buttons = "".join(
        f'<button id="{name}" title="{hint}" aria-label="{hint}">{text}</button>'
        for name, text, hint in _BUTTONS
    )
    return (
        f'<nav id="player" hidden>{buttons}'
        f'<input id="scrub" type="range" min="1" max="{count}" value="1" aria-label="Step">'
        '<output id="count"></output></nav>'
    )


def _steps(walk: PacketWalk, texts: list[Said]) -> Iterator[str]:
    files = {file: number for number, file in enumerate(walk.sources)}
    for number, (step, words) in enumerate(zip(walk.steps, texts, strict=True)):
        stage = _STAGES.get(type(step))
        if stage is not None:
            yield f'<li class="stage" role="presentation">{stage}</li>'
        yield f'<li class="step {words.tone}" id="step-{number + 1}" data-kind="{words.kind}">'
        yield f'<p class="title"><b>{words.kind}</b> <span>{escape(words.title)}</span></p>'
        if step.place is not None:
            yield _place(step.place, files)
        yield from _rows("Looked at", words.looked_at)
        yield from _rows("Wrote", words.wrote)
        if isinstance(step, steps.Received | steps.PacketLeaves):
            changed = set(step.changed) if isinstance(step, steps.PacketLeaves) else set()
            cells = (_cell(byte, i in changed) for i, byte in enumerate(step.data))
            yield f'<p class="hex">{" ".join(cells)}</p>'
        yield "</li>"


def _place(place: steps.SourceLine, files: dict[str, int]) -> str:
    text = f"{escape(place.file)}:{place.line}"
    if place.file not in files:
        return f'<p class="place">{text}</p>'
    return f'<p class="place"><a href="#L{files[place.file]}-{place.line}">{text}</a></p>'


def _rows(heading: str, rows: tuple[ShownField, ...]) -> Iterator[str]:
    if not rows:
        return
    yield f"<table><caption>{heading}</caption>"
    for row in rows:
        value = escape(row.new)
        if row.changed:
            value = f"<s>{escape(row.old)}</s> → <mark>{value}</mark>"
        elif row.old:
            value += ' <span class="soft">as before</span>'
        name = f"<th>{escape(row.name)}</th>" if row.name else ""
        yield f"<tr>{name}<td{'' if name else ' colspan=2'}>{value}</td></tr>"
    yield "</table>"


def _cell(byte: int, changed: bool) -> str:
    return f"<mark>{byte:02x}</mark>" if changed else f"{byte:02x}"


def _sources(walk: PacketWalk) -> Iterator[str]:
    if not walk.sources:
        yield '<p class="soft">The P4 source is not at hand.</p>'
    for number, (file, lines) in enumerate(walk.sources.items()):
        yield f'<h2 class="file">{escape(file)}</h2><pre class="code" data-file="{number}">'
        for line, text in enumerate(highlight("\n".join(lines)).split("\n"), 1):
            yield f'<span class="line" id="L{number}-{line}"><i>{line}</i>{text}</span>'
        yield "</pre>"


def _data(walk: PacketWalk) -> dict[str, Any]:
    files = list(walk.sources)
    return {"files": files, "steps": [_record(step, files) for step in walk.steps]}


def _record(step: Step, files: list[str]) -> dict[str, Any]:
    """Return the data of a step that the script needs: place, new values, bytes."""
    record: dict[str, Any] = {}
    if step.place is not None and step.place.file in files:
        record["at"] = [files.index(step.place.file), step.place.line]
    values = [(w.name, w.new, w.width) for w in step.writes]
    match step:
        case steps.Extracted():
            values = [(f.name, f.value, f.width) for f in step.fields] + values
            record["range"] = [step.offset_bytes, step.offset_bytes + step.size_bytes]
        case steps.Received():
            record |= {"data": step.data.hex(), "begin": "ingress"}
        case steps.PacketLeaves():
            record |= {"data": step.data.hex(), "changed": step.changed}
        case steps.EgressStarted():
            record["begin"] = "egress"
        case steps.Managed():
            record["begin"] = "manager"
    if values:
        record["set"] = [[name, show(value, width, name)] for name, value, width in values]
    return record
