"""The places where the fields of a program are kept.

A scalar field is a local variable of the generated handlers; if egress needs what ingress
left in it, it also has a slot in the packet's row of `arena.fields`. A lane, one of many like
fields, lies in the packet's row of `arena.lanes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ringleaf.core.units import format_count
from ringleaf.switches.engine import layout
from ringleaf.switches.generate.labels import FIELD, Labels
from ringleaf.switches.generate.text import LONGEST_TUPLE, tuple_of
from ringleaf.switches.source import (
    STANDARD,
    VALID,
    FieldSource,
    HeaderField,
    HeaderSource,
    ProgramSource,
)

_NAME = re.compile(r"[A-Za-z_]\w*")

SHORTEST_RUN = 8  # like fields in a row that count as lanes
LANE_WIDTHS = (8, 16, 32)  # bits

ENGINE = "$engine"  # the "header" of values that BMv2 keeps beside a packet's fields
CLONE_SESSION = FieldSource(ENGINE, "clone_session")
CLONE_FIELDS = FieldSource(ENGINE, "clone_fields")  # the field list that a clone keeps
RESUBMIT = FieldSource(ENGINE, "resubmit")  # 0: no; else the field list to keep
RECIRCULATE = FieldSource(ENGINE, "recirculate")  # likewise
LEARN = FieldSource(ENGINE, "learn")  # 0: no; else the digest to send
TRUNCATE_LEN = FieldSource(ENGINE, "truncate_len")
PARSED_LEN = FieldSource(ENGINE, "parsed_len")
LENGTH = FieldSource(
    ENGINE, "length"
)  # BMv2's packet register 0: follows added and removed headers
POSITION = "$position"  # per header: the byte of the head where it was parsed
VARBITS = "$varbits"  # per header with a varbit field: the field's length in bits

_STANDARD_SLOTS = {
    "ingress_port": layout.INGRESS_PORT,
    "egress_spec": layout.EGRESS_SPEC,
    "egress_port": layout.EGRESS_PORT,
    "instance_type": layout.INSTANCE_TYPE,
    "enq_timestamp": layout.ENQ_TIMESTAMP,
    "enq_qdepth": layout.ENQ_QDEPTH,
    "deq_timedelta": layout.DEQ_TIMEDELTA,
    "deq_qdepth": layout.DEQ_QDEPTH,
    "ingress_global_timestamp": layout.INGRESS_GLOBAL_TIMESTAMP,
    "egress_global_timestamp": layout.EGRESS_GLOBAL_TIMESTAMP,
    "mcast_grp": layout.MCAST_GRP,
    "egress_rid": layout.EGRESS_RID,
    "checksum_error": layout.CHECKSUM_ERROR,
    "parser_error": layout.PARSER_ERROR,
    "priority": layout.PRIORITY,
}

FIXED_SLOTS = {
    **{FieldSource(STANDARD, name): slot for name, slot in _STANDARD_SLOTS.items()},
    CLONE_SESSION: layout.REQUESTS,
    TRUNCATE_LEN: layout.TRUNCATE_LEN,
    PARSED_LEN: layout.PARSED_LEN,
}


@dataclass(frozen=True, slots=True)
class Lane:
    """A field's lane in the packet's row, and its width on the wire."""

    index: int
    width: int  # bits


@dataclass(frozen=True, slots=True)
class LaneRun:
    """Fields of one header that lie side by side, in the header and in the lanes row."""

    header: str
    first: int  # position of the first among the header's fields
    count: int
    width: int  # bits
    start: int  # lane of the first


@dataclass(frozen=True, slots=True)
class Varbit:
    """A varbit field: one lane per byte, from `start` on; `length` has its length in bits."""

    start: int
    longest: int  # bytes
    length: FieldSource


class Storage:
    """Names and places of a program's fields."""

    def __init__(self, source: ProgramSource) -> None:
        self._source = source
        self.labels = Labels()
        self._names: dict[FieldSource, str] = {}
        self._shapes: dict[FieldSource, HeaderField] = {}
        self._lanes: dict[FieldSource, Lane] = {}
        self.runs: list[LaneRun] = []
        self._varbits: dict[FieldSource, Varbit] = {}
        self.slots: dict[FieldSource, int] = dict(FIXED_SLOTS)
        self.field_count = layout.STANDARD_FIELDS
        self.lane_count = 0
        for header in source.headers.values():
            if header.varbit:
                self._place_varbit(header, header.varbit)
            elif not header.metadata:
                self._find_runs(header.name)

    def shape(self, field: FieldSource) -> HeaderField:
        """Return a field's width and sign; the engine's own fields have 64 bits."""
        if field not in self._shapes:
            if field.header == ENGINE or field.name in (POSITION, VARBITS):
                self._shapes[field] = HeaderField(field.name, 64, False, 0)
            else:
                self._shapes[field] = self._source.field_of(field)
        return self._shapes[field]

    def known(self) -> list[FieldSource]:
        """Return the fields that have a place, in the order in which they were given one."""
        return list(dict.fromkeys([*self._names, *self._lanes]))

    def lane(self, field: FieldSource) -> Lane | None:
        """Return a field's lane; None: the field is a scalar."""
        return self._lanes.get(field)

    def varbit(self, field: FieldSource) -> Varbit | None:
        """Return the lanes and length of a varbit field; None: the field is none."""
        return self._varbits.get(field)

    def runs_of(self, header: str) -> list[LaneRun]:
        """Return the runs of lanes that a header has, in the order of its fields."""
        return [run for run in self.runs if run.header == header]

    def make_lanes(self, fields: Iterable[FieldSource]) -> None:
        """Keep these fields, which a program's loops go through, side by side."""
        for field in fields:
            self._lanes[field] = Lane(self.lane_count, self.shape(field).width)
            self.lane_count += 1

    def scalar_lanes(self) -> list[int]:
        """Return the lanes of metadata, which is zero at first."""
        return [lane.index for field, lane in self._lanes.items() if field.header == "scalars"]

    def read(self, field: FieldSource) -> tuple[str, ...]:
        """Return code for the field's words."""
        lane = self._lanes.get(field)
        if lane is not None:
            return (f"U(lanes[{lane.index}])",)
        return self.names(field)

    def names(self, field: FieldSource) -> tuple[str, ...]:
        """Return the local variables of a scalar field, one per word."""
        name = self._name(field)
        count = word_count(self.shape(field))
        return (name,) if count == 1 else tuple(f"{name}_w{i}" for i in range(count))

    def places(self, field: FieldSource) -> tuple[str, ...]:
        """Return code of the places of the field's words, to assign to."""
        lane = self._lanes.get(field)
        return (f"lanes[{lane.index}]",) if lane is not None else self.names(field)

    def assign(self, field: FieldSource, words: list[str]) -> str:
        """Return the statements that give the field these words, on one line.

        They are one statement of tuples, which takes long to compile, only if a word is made of
        one that has its new value by then.
        """
        targets = self.places(field)
        assert len(targets) == len(words), f"{field} has {format_count(len(targets), 'word')}"
        if all(set(targets[:i]).isdisjoint(_NAME.findall(word)) for i, word in enumerate(words)):
            pairs = zip(targets, words, strict=True)
            return "; ".join(f"{target} = {word}" for target, word in pairs)
        values = ", ".join(words) if len(words) <= LONGEST_TUPLE else tuple_of(words)
        return f"{', '.join(targets)} = {values}"

    def give_slots(self, fields: Iterable[FieldSource]) -> None:
        """Give each field that must survive from ingress to egress a place in the row."""
        for field in fields:
            if field not in self.slots and field not in self._lanes:
                self.slots[field] = self.field_count
                self.field_count += word_count(self.shape(field))

    def _name(self, field: FieldSource) -> str:
        if field not in self._names:
            self._names[field] = self.labels.of(FIELD, field.header, field.name)
        return self._names[field]

    def _place_varbit(self, header: HeaderSource, item: HeaderField) -> None:
        field = FieldSource(header.name, item.name)
        longest = item.width // 8
        self._varbits[field] = Varbit(self.lane_count, longest, varbits(header.name))
        self._lanes[field] = Lane(self.lane_count, 8)
        self.lane_count += longest

    def _find_runs(self, name: str) -> None:
        """Find the lanes of a header: long runs of fields that are equal but for their name."""
        fields = self._source.headers[name].fields
        start = 0
        while start < len(fields):
            first = fields[start]
            end = start
            while end < len(fields) and (fields[end].width, fields[end].signed) == (
                first.width,
                first.signed,
            ):
                end += 1
            aligned = first.width in LANE_WIDTHS and first.offset % 8 == 0
            if aligned and end - start >= SHORTEST_RUN:
                self.runs.append(LaneRun(name, start, end - start, first.width, self.lane_count))
                self.make_lanes(FieldSource(name, item.name) for item in fields[start:end])
            start = end


def word_count(shape: HeaderField) -> int:
    """Return how many words hold a field: a signed one can be from -2^(width-1) to 2^width - 1."""
    return -(-(shape.width + shape.signed) // 64)


def position(header: str) -> FieldSource:
    """Return the hidden field with the offset, in bytes, at which a header was parsed."""
    return FieldSource(header, POSITION)


def varbits(header: str) -> FieldSource:
    """Return the hidden field with the length, in bits, of a header's varbit field."""
    return FieldSource(header, VARBITS)


def valid(header: str) -> FieldSource:
    """Return the hidden field that is 1 while a header is valid."""
    return FieldSource(header, VALID)
