"""Reports of the parser's and the deparser's work on the packet's bytes, as steps."""

from __future__ import annotations

from typing import Any

from ringleaf.core.packets import HEAD_LEN
from ringleaf.switches.generate import marks
from ringleaf.switches.generate.storage import valid
from ringleaf.switches.source import (
    FieldSource,
    HeaderSource,
    ParserState,
    ProgramSource,
    Transition,
)
from ringleaf.switches.walk.names import Names
from ringleaf.switches.walk.runs import EndedRun, evaluated
from ringleaf.switches.walk.sources import Sources
from ringleaf.switches.walk.steps import (
    Deparsed,
    Extracted,
    ParserFailed,
    StateEntered,
    StateSelected,
    Step,
    StepWrite,
    Truncated,
    WalkValue,
)
from ringleaf.switches.walk.views import Views


class PacketReports:
    """A step per run of parser or deparser; None where a run is no step of its own."""

    def __init__(self, source: ProgramSource, sources: Sources, names: Names, views: Views) -> None:
        self._sides = source.sides()
        self._source = self._sides[0]
        self._sources = sources
        self._names = names
        self._views = views
        self._state = ""
        self._came = b""
        self._parsed = 0
        self._extracted: dict[str, int] = {}  # header -> offset
        self._element: Any = None  # the header that is being extracted, and its writes so far
        self._made: tuple[StepWrite, ...] = ()
        self._emitted: tuple[tuple[str, int], ...] | None = None

    def begin(self, data: bytes) -> None:
        """Note that ingress begins with these bytes."""
        self._source = self._sides[0]
        self._begin(data)

    def begin_egress(self, data: bytes) -> None:
        """Note that egress begins; the bytes matter if it parses them, as PSA's does."""
        self._source = self._sides[-1]
        self._emitted = None
        if len(self._sides) > 1:
            self._begin(data)

    def _begin(self, data: bytes) -> None:
        self._came = data
        self._parsed = 0
        self._emitted = None
        self._extracted.clear()

    def entered(self, ended: EndedRun) -> Step:
        """Return that the parser is in a state."""
        assert isinstance(ended.what, ParserState)
        return self.enter(ended.what.name)

    def enter(self, state: str) -> Step:
        """Note that the parser is in a state."""
        self._state = state
        return StateEntered(state=state, place=self._sources.state(state))

    def extracted(self, ended: EndedRun) -> Step | None:
        """Return the extraction of a header; None until the last run of its lines."""
        start, end = (int(v["parsed"]) for v in (ended.run.variables, ended.variables))
        if ended.following is not None and ended.following.kind == marks.EXTRACT:
            self._element, self._made = ended.what, ended.writes
            return None  # the last run of an extraction reports it as a whole
        header = self._element or ended.what
        assert isinstance(header, HeaderSource)
        ended.writes = (*self._made, *ended.writes)
        self._element, self._made = None, ()
        self._extracted[header.name] = start
        self._parsed = end
        data = ended.variables["head"][start:end].tobytes()
        name = self._names.header(header.name)
        ended.writes = tuple(w for w in ended.writes if w.name.endswith(".isValid()"))
        return Extracted(
            header=name,
            offset_bytes=start,
            size_bytes=len(data),
            fields=tuple(
                WalkValue(f"{name}.{item.name}", _bits(data, item.offset, item.width), item.width)
                for item in header.fields
                if header.varbit is None
            ),
            place=self._sources.extract(self._state, header.name),
        )

    def failed(self, ended: EndedRun) -> Step:
        """Return the parser's error, which is PacketTooShort if its line names none."""
        return ParserFailed(
            error=ended.run.mark.where or "PacketTooShort", place=self._sources.state(self._state)
        )

    def selected(self, ended: EndedRun) -> Step:
        """Return the transition that the parser took, and the keys by which it chose."""
        transition = ended.what
        assert isinstance(transition, Transition)
        keys = tuple(
            WalkValue(self._key(key, value.name), evaluated(value.words, ended), value.width)
            for key, value in zip(
                self._source.states[self._state].keys, ended.run.mark.values, strict=True
            )
        )
        place = self._sources.select(self._state)
        return StateSelected(keys=keys, target=transition.target or "accept", place=place)

    def _key(self, key: Any, name: str) -> str:
        return self._names.field(key) if isinstance(key, FieldSource) else name

    def deparsed(self, ended: EndedRun) -> Step | None:
        """Return the headers that were emitted, in order; None after the first report."""
        if self._emitted is not None:
            return None  # the handler's last line, after a deparser that wrote something
        headers = [self._source.headers[name] for name in self._source.emitted]
        present = [header for header in headers if ended.values.get(valid(header.name))]
        sizes = [self._views.size(header, ended.variables) for header in present]
        self._emitted = tuple(zip((header.name for header in present), sizes, strict=True))
        shown = tuple((self._names.header(name), size) for name, size in self._emitted)
        return Deparsed(headers=shown)

    def truncated(self, ended: EndedRun) -> Step:
        """Return the size, in bytes, to which the packet was cut."""
        return Truncated(size_bytes=int(ended.variables["row"][HEAD_LEN]))

    def changed(self, data: bytes) -> tuple[int, ...]:
        """Return the offsets of a leaving packet's bytes that differ from those that came in.

        Headers are compared one by one.
        """
        offsets: list[int] = []
        at = 0
        for name, size in self._emitted or ():
            start = self._extracted.get(name)
            old = b"" if start is None else self._came[start : start + size]
            offsets += _differences(data[at : at + size], old, at)
            at += size
        offsets += _differences(data[at:], self._came[self._parsed :], at)
        return tuple(offsets)


def _differences(data: bytes, old: bytes, at: int) -> list[int]:
    return [at + i for i in range(len(data)) if data[i : i + 1] != old[i : i + 1]]


def _bits(data: bytes, offset: int, width: int) -> int:
    return int.from_bytes(data, "big") >> (8 * len(data) - offset - width) & ((1 << width) - 1)
