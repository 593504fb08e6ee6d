"""A walk on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from ringleaf.core.units import format_count
from ringleaf.experiments.walk.describe import Said, ShownField, say
from ringleaf.switches.walk import steps
from ringleaf.switches.walk.steps import PacketWalk, SourceLine, Step

BYTES_PER_LINE = 16
KIND_COLUMNS = 8

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_TONES = {"good": "green", "bad": "red"}
_OPENINGS: dict[type[Step], str] = {
    steps.Received: "parser and ingress",
    steps.Managed: "traffic manager",
    steps.EgressStarted: "egress",
}


class WalkText:
    """A renderer of walks for a terminal of a given width, with or without colours."""

    def __init__(self, columns: int, colours: bool) -> None:
        self._columns = columns
        self._colours = colours

    def lines(self, walk: PacketWalk) -> Iterator[str]:
        """Return the lines of a walk: those of each step, then the packets that left."""
        for step in walk.steps:
            opening = _OPENINGS.get(type(step))
            if opening is not None:
                yield ""
                yield self._rule(opening)
            yield from self._step(step, say(walk, step))
        out = ", ".join(
            f"{format_count(len(data), 'byte')} on port {port}" for port, data in walk.out
        )
        yield ""
        yield self._paint(f"out: {out or 'nothing'}", "bold")

    def _step(self, step: Step, words: Said) -> Iterator[str]:
        yield from self._headline(words, step.place)
        indent = " " * (KIND_COLUMNS + 2)
        if words.source and not _repeats(words.title, words.source):
            yield self._paint(f"{indent}{_cut(words.source, self._columns - len(indent))}", "dim")
        rows = (*words.looked_at, *words.wrote)
        widest = max((len(row.name) for row in rows), default=0)
        for row in rows:
            yield from self._row(row, indent, min(widest, self._columns // 2))
        if isinstance(step, steps.Received):
            yield from self._bytes(step.data, frozenset())
        elif isinstance(step, steps.PacketLeaves):
            yield from self._bytes(step.data, frozenset(step.changed))

    def _headline(self, words: Said, place: SourceLine | None) -> Iterator[str]:
        kind = self._paint(f"{words.kind:<{KIND_COLUMNS}}", "cyan")
        room = self._columns - KIND_COLUMNS - 2
        first, *rest = textwrap.wrap(words.title, room) or [""]
        where = f"{place.file}:{place.line}" if place else ""
        last = rest[-1] if rest else first
        gap = room - len(last) - len(where)
        tail = f"{' ' * gap}{self._paint(where, 'dim')}" if where and gap >= 2 else ""
        style = _TONES.get(words.tone, "bold")
        yield f"{kind}  {self._paint(first, style)}{'' if rest else tail}"
        for line in rest:
            end = tail if line is last else ""
            yield f"{' ' * (KIND_COLUMNS + 2)}{self._paint(line, style)}{end}"
        if where and not tail:
            yield self._paint(f"{where:>{self._columns}}", "dim")

    def _row(self, row: ShownField, indent: str, name_columns: int) -> Iterator[str]:
        name = f"{row.name:<{name_columns}}  " if row.name else ""
        if row.changed:
            value = f"{row.old} -> {self._paint(row.new, 'yellow')}"
            plain = f"{row.old} -> {row.new}"
        else:
            value = plain = row.new if not row.old else f"{row.new}, as before"
        if len(indent) + len(name) + len(plain) <= self._columns:
            yield f"{indent}{name}{value}".rstrip()
            return
        if name.strip():
            yield f"{indent}{name.rstrip()}"
        for line in textwrap.wrap(plain, self._columns - len(indent) - 2):
            yield f"{indent}  {self._paint(line, 'yellow' if row.changed else '')}"

    def _bytes(self, data: bytes, changed: frozenset[int]) -> Iterator[str]:
        """Yield sixteen bytes a line, changed ones marked with a star, without long equal parts."""
        skipped = 0
        for start in range(0, len(data), BYTES_PER_LINE):
            stop = min(start + BYTES_PER_LINE, len(data))
            touched = any(i in changed for i in range(start, stop))
            if start >= 4 * BYTES_PER_LINE and not touched and stop < len(data):
                skipped += stop - start
                continue
            if skipped:
                yield self._paint(f"          ...   {format_count(skipped, 'byte')} more", "dim")
                skipped = 0
            cells = (self._byte(data[i], i in changed) for i in range(start, stop))
            yield f"          {self._paint(f'{start:04x}', 'dim')} {''.join(cells)}"

    def _byte(self, value: int, changed: bool) -> str:
        return f"*{self._paint(f'{value:02x}', 'yellow')}" if changed else f" {value:02x}"

    def _rule(self, title: str) -> str:
        return self._paint(f"{f'-- {title} ':-<{self._columns}}", "bold")

    def _paint(self, text: str, style: str) -> str:
        code = _STYLES.get(style)
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours and code and text else text


def _repeats(title: str, source: str) -> bool:
    """Return whether a step's title repeats its line of source."""
    plain = "".join(source.split())
    plain_title = "".join(title.split())
    return plain.rstrip(";{") in plain_title or plain_title.split(":")[0].split(";")[0] in plain


def _cut(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: columns - 3]}..."
