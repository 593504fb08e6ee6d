"""The fields that each part of a program reads and writes, and so those that must be kept.

A header field that nothing names stays in the packet's bytes: it is neither extracted nor
written back. A field that only one of ingress and egress uses has no slot in the packet's row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ringleaf.switches.generate.extraction import extraction_of
from ringleaf.switches.generate.flow import Apply, Body, If, walk
from ringleaf.switches.generate.inputs import inputs_of
from ringleaf.switches.generate.jumps import deparser_body
from ringleaf.switches.generate.lower import lower
from ringleaf.switches.generate.primitives import changes_headers, effects, fields_in, headers_made
from ringleaf.switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    LENGTH,
    PARSED_LEN,
    RECIRCULATE,
    RESUBMIT,
    position,
    valid,
    varbits,
)
from ringleaf.switches.source import (
    STANDARD,
    Checksum,
    FieldSource,
    Primitive,
    ProgramSource,
    TableSource,
)

PACKET_LENGTH = FieldSource(STANDARD, "packet_length")
CHECKSUM_ERROR = FieldSource(STANDARD, "checksum_error")
PARSER_ERROR = FieldSource(STANDARD, "parser_error")


@dataclass
class Touched:
    """Fields that one part of a program reads and writes."""

    reads: set[FieldSource] = field(default_factory=set)
    writes: set[FieldSource] = field(default_factory=set)

    @property
    def all(self) -> set[FieldSource]:
        """Return the fields that are read or written."""
        return self.reads | self.writes

    def add(self, source: ProgramSource, primitive: Primitive) -> None:
        """Add the fields that a primitive reads and writes."""
        uses = effects(source, primitive)
        self.reads |= uses.reads
        self.writes |= uses.writes


def body_usage(source: ProgramSource, body: Body) -> Touched:
    """Return the fields that a body reads and writes, and those of its tables' keys and externs."""
    touched = Touched()
    for statement in walk(body):
        match statement:
            case Primitive():
                touched.add(source, statement)
            case If():
                touched.reads |= fields_in(statement.condition)
            case Apply():
                touched.reads |= _keys(source, statement.table)
                _add_externs(touched, source, statement.table)
    return touched


def _keys(source: ProgramSource, table: TableSource) -> set[FieldSource]:
    """Return the fields of a table's keys, and the validity of headers that may be missing."""
    targets = {key.target for key in table.keys}
    return targets | {valid(item.header) for item in targets if source.may_be_missing(item)}


def _add_externs(touched: Touched, source: ProgramSource, table: TableSource) -> None:
    """Add the fields that a table's selector reads, and those that its meter writes."""
    if table.profile and source.profiles[table.profile].selector:
        touched.reads |= inputs_of(source.calculations[source.profiles[table.profile].selector])
    if table.meter:
        target = source.meters[table.meter].target
        assert target is not None
        touched.writes.add(target)


def checksum_usage(source: ProgramSource, checksums: Iterable[Checksum]) -> Touched:
    """Return the fields that checksums read and write; a failed check writes `checksum_error`."""
    touched = Touched()
    for checksum in checksums:
        touched.reads |= inputs_of(source.calculations[checksum.calculation])
        touched.reads |= {checksum.target, valid(checksum.target.header)}
        if checksum.condition is not None:
            touched.reads |= fields_in(checksum.condition)
        touched.writes.add(checksum.target if checksum.update else CHECKSUM_ERROR)
    return touched


class FieldUsage:
    """The fields of a whole program, by where they are used."""

    def __init__(self, source: ProgramSource, ingress: Body, egress: Body) -> None:
        self._source = source
        self.changes_headers = False
        self.lengths = {varbits(h.name) for h in source.headers.values() if h.varbit}
        self.added: set[str] = set()  # headers that a primitive can make valid
        self.parser = self._parser()
        self.deparser = self._body(deparser_body(source))
        self.ingress = body_usage(source, ingress)
        self.egress = body_usage(source, egress)
        self.verify = checksum_usage(source, (sum_ for sum_ in source.checksums if sum_.verify))
        self.update = checksum_usage(source, (sum_ for sum_ in source.checksums if sum_.update))
        self.clones = CLONE_SESSION in self.ingress.writes
        self.mirrors = CLONE_SESSION in self.egress.writes  # clones of packets in egress
        self.recirculates = RECIRCULATE in self.ingress.writes | self.egress.writes
        self.loops = self.recirculates or RESUBMIT in self.ingress.writes
        self._look_for_changes((*ingress, *egress))
        parts = (self.parser, self.ingress, self.egress, self.verify, self.update, self.deparser)
        read = set().union(*(part.reads for part in parts))
        written = set().union(*(part.writes for part in parts))
        after = self.egress.reads | self.update.reads | self.deparser.reads
        self.length_needed = PACKET_LENGTH in after and LENGTH in written
        self.written_back = {item for item in written if self._is_emitted(item)}
        self.extracted = {item for item in read if self._in_packet(item)} | self.written_back

    def elsewhere(self) -> list[FieldSource]:
        """Return the fields that anything but the pipelines' own statements names."""
        named = self.parser.all | self.verify.all | self.update.all | self.deparser.all
        for calculation in self._source.calculations.values():
            named |= inputs_of(calculation)
        for fields in self._source.field_lists.values():
            named |= set(fields)
        for digest in self._source.digests.values():
            named |= {field for element in digest.elements for field in fields_in(element)}
        named |= {meter.target for meter in self._source.meters.values() if meter.target}
        return sorted(named, key=lambda item: (item.header, item.name))

    def _parser(self) -> Touched:
        touched = Touched()
        for state in self._source.states.values():
            for key in state.keys:
                touched.reads |= fields_in(key)
            for op in state.ops:
                self._parser_op(touched, op)
        return touched

    def _parser_op(self, touched: Touched, op: Primitive) -> None:
        match op.op:
            case "extract":
                self._extraction(touched, op)
            case "set":
                touched.writes |= fields_in(op.parameters[0])
                touched.reads |= fields_in(op.parameters[1])
            case "verify" | "advance" | "shift":
                for parameter in op.parameters:
                    touched.reads |= fields_in(parameter)
            case _:
                own = self._primitives((op,))
                touched.reads |= own.reads
                touched.writes |= own.writes

    def _extraction(self, touched: Touched, op: Primitive) -> None:
        extraction = extraction_of(self._source, op)
        if extraction.stack is not None:
            touched.reads.add(extraction.count)
            touched.writes.add(extraction.count)
        if extraction.bits is not None:
            touched.reads |= fields_in(extraction.bits)

    def _primitives(self, primitives: Iterable[Primitive]) -> Touched:
        return self._body(tuple(part for step in primitives for part in lower(self._source, step)))

    def _body(self, body: Body) -> Touched:
        self._look_for_changes(body)
        return body_usage(self._source, body)

    def _look_for_changes(self, body: Body) -> None:
        for statement in walk(body):
            if isinstance(statement, Primitive):
                self._note_changes(statement)

    def _note_changes(self, primitive: Primitive) -> None:
        self.changes_headers |= changes_headers(self._source, primitive)
        self.added |= headers_made(self._source, primitive)

    def _in_packet(self, item: FieldSource) -> bool:
        header = self._source.headers.get(item.header)
        return header is not None and not header.metadata and not item.name.startswith("$")

    def _is_emitted(self, item: FieldSource) -> bool:
        return self._in_packet(item) and item.header in self._source.emitted

    def kept(self, moving: set[str]) -> set[FieldSource]:
        """Return the fields that egress needs as ingress left them.

        `moving` are the headers that may lie at more than one place.
        """
        needed = self.egress.reads | self.update.reads | self.written_back | self.deparser.reads
        needed |= {valid(name) for name in self._source.emitted}
        needed |= {position(name) for name in moving} | self.lengths
        if self.length_needed:
            needed.add(LENGTH)
        if self.clones:
            needed.add(CLONE_FIELDS)
        if self.clones or self.mirrors or self.loops:
            for fields in self._source.field_lists.values():
                needed |= set(fields)
        if self.recirculates:
            needed.add(RECIRCULATE)
        needed.discard(PACKET_LENGTH)  # egress sets it anew
        written = self.parser.writes | self.verify.writes | self.ingress.writes | self.extracted
        written |= {valid(name) for name in self._source.headers}
        written |= {position(name) for name in moving} | {LENGTH, PARSED_LEN, CLONE_SESSION}
        written |= self.lengths
        if self.mirrors:  # egress starts from its own results
            written |= self.egress.writes - {CLONE_SESSION, CLONE_FIELDS, RECIRCULATE}
        standard = {item for item in needed if item.header == STANDARD}
        lists = self._source.field_lists.values() if self.mirrors or self.loops else ()
        written |= {item for fields in lists for item in fields}
        return (needed & written) | standard
