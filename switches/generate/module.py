"""A whole program as the source of a Python module with `ingress` and `egress`."""

from __future__ import annotations

from ringleaf.switches.engine.layout import (
    DROP_PORT,
    INGRESS_CLONE,
    INGRESS_LENGTH,
    INSTANCE_TYPE,
    PRIORITY,
    SEND,
)
from ringleaf.switches.generate.calculations import update_checksum, verify_checksum
from ringleaf.switches.generate.code import EGRESS, INGRESS, FunctionCode
from ringleaf.switches.generate.deparser import DeparserWriter
from ringleaf.switches.generate.doubts import note_checksum
from ringleaf.switches.generate.endings import (
    SET_BETWEEN,
    begin_again,
    clone_egress,
    leave_requests,
    load,
    recirculate,
    send_digests,
)
from ringleaf.switches.generate.handlers import Handlers, ParserSide
from ringleaf.switches.generate.lanes import Roller
from ringleaf.switches.generate.marks import DEPARSE, DROPPED, TRUNCATE, LineMark
from ringleaf.switches.generate.observing import ORDINARY, Variant
from ringleaf.switches.generate.parser import ParserWriter
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.generate.psa import PsaHandlers
from ringleaf.switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    LEARN,
    LENGTH,
    PARSED_LEN,
    RESUBMIT,
    TRUNCATE_LEN,
    position,
    valid,
)
from ringleaf.switches.generate.structure import pipeline_body
from ringleaf.switches.generate.text import TooLargeError
from ringleaf.switches.generate.usage import CHECKSUM_ERROR, PACKET_LENGTH, PARSER_ERROR, FieldUsage
from ringleaf.switches.generate.written import Module
from ringleaf.switches.source import PSA, STACKS, STANDARD, V1MODEL, FieldSource, ProgramSource

_TIMESTAMPS = {
    "ingress": FieldSource(STANDARD, "ingress_global_timestamp"),
    "egress": FieldSource(STANDARD, "egress_global_timestamp"),
}

QUEUE = FieldSource(STANDARD, "qid")  # of P4_14's queueing_metadata; v1model has none

TIME_BITS = 48  # of a time in v1model; programs of P4_14 may have fewer

# Fields that ingress leaves in the packet's row for code that knows no program.
_LEFT_BY_INGRESS = (
    FieldSource(STANDARD, "ingress_port"),
    FieldSource(STANDARD, "egress_spec"),
    FieldSource(STANDARD, "instance_type"),
    FieldSource(STANDARD, "mcast_grp"),
    FieldSource(STANDARD, "egress_rid"),
    FieldSource(STANDARD, "priority"),
    CHECKSUM_ERROR,
    PARSER_ERROR,
    CLONE_SESSION,
    TRUNCATE_LEN,
    PARSED_LEN,
)


_CONTRADICTIONS = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""The errors in the generator if names are undefined, or refer to objects of another kind."""


def generate(source: ProgramSource, variant: Variant = ORDINARY) -> Module:
    """Return the program as Python source.

    Raises:
        ConfigError: If the program does what is not supported.
    """
    try:
        return _HANDLERS[source.architecture.name](source, variant).module()
    except (TooLargeError, RecursionError, MemoryError) as exc:
        raise source.refuse("the program is too large, or nested too deeply", str(exc)) from exc
    except _CONTRADICTIONS as exc:
        raise source.refuse(
            "the program refers to what it does not have, or contradicts itself",
            f"{type(exc).__name__}: {exc}",
        ) from exc


class _V1modelHandlers(Handlers):
    def __init__(self, source: ProgramSource, variant: Variant) -> None:
        pipelines = source.ingress, source.egress
        bodies = [pipeline_body(source, line, calls=variant.observed) for line in pipelines]
        self._paths = Paths(source)
        self._usage = FieldUsage(source, *bodies)
        self._sides = [ParserSide(source, self._usage, self._paths)]
        super().__init__(source, variant)
        roller = Roller(source, self._storage, self._state)
        self._ingress, self._egress = roller.roll(bodies, self._usage.elsewhere())
        self._patterns = roller.patterns
        self._shape_tables(self._ingress, self._egress)
        moving = self._paths.moving()
        kept = self._usage.kept(moving)
        if variant.observed:
            kept |= {
                valid(header.name) for header in source.headers.values() if not header.metadata
            }
        self._kept = sorted(kept, key=lambda f: (f.header, f.name))
        self._storage.give_slots(self._kept)

    @property
    def _comes_round(self) -> bool:
        return self._usage.recirculates

    def _ingress_lines(self) -> list[str]:
        code, usage = self._code(INGRESS, self._sides[0]), self._usage
        parts = (usage.parser, usage.verify, usage.ingress)
        used = set().union(*(part.all for part in parts)) | set(self._kept)
        headers = [h.name for h in self._source.headers.values() if not h.metadata]
        used |= usage.extracted | set(_LEFT_BY_INGRESS) | {valid(name) for name in headers}
        used |= {position(name) for name in self._paths.moving()} | usage.lengths
        self._start(code, used)
        self._leftovers.fill_lanes(code)
        self._forget_lanes(code)
        if usage.loops:
            begin_again(code)
        first_time = "again == 0" if usage.loops else None  # BMv2 skips these on later rounds
        with code.guarded(first_time):
            code.set(FieldSource(STANDARD, "ingress_port"), ["U(row[IN_PORT])"])
        code.add("length = row[HEAD_LEN] + row[PAYLOAD_LEN] + row[TAIL_LEN]")
        code.add(f"fields[{INGRESS_LENGTH}] = U(length)")
        if PACKET_LENGTH in used:
            code.set(PACKET_LENGTH, ["U(length)"])
        code.set(LENGTH, ["U(length)"])
        if _TIMESTAMPS["ingress"] in used:
            with code.guarded(first_time):
                self._take_time(code, "ingress", used)
        ParserWriter(code, usage, self._paths).write()
        code.set(PARSED_LEN, ["U(parsed)"])
        for checksum in self._source.checksums:
            if checksum.verify:
                note_checksum(code, checksum)
                verify_checksum(code, checksum, CHECKSUM_ERROR)
        self._statements(code, self._ingress)
        self._leave(code, [*_LEFT_BY_INGRESS, *self._kept])
        if RESUBMIT in usage.ingress.writes:
            leave_requests(code)
        if LEARN in usage.ingress.writes:
            send_digests(code)
        code.add("return 0")
        return ["@handler", "def ingress(arena, at, packet, now_ps):", *code.lines.lines]

    def _egress_lines(self) -> list[str]:
        code, usage = self._code(EGRESS, self._sides[0]), self._usage
        used = usage.egress.all | usage.update.all | usage.deparser.all | set(self._kept)
        used |= {FieldSource(STANDARD, "egress_spec"), TRUNCATE_LEN, LENGTH, PARSED_LEN}
        self._start(code, used - set(self._kept))
        code.add(f"length = I(fields[{INGRESS_LENGTH}])")
        if usage.clones:
            with code.block(f"if fields[{INSTANCE_TYPE}] == {code.u(INGRESS_CLONE)}:"):
                self._parse_clone(code)
            with code.block("else:"):
                self._load_all(code)
        else:
            self._load_all(code)
        self._leftovers.spoil_copies(code, self._kept)
        if PACKET_LENGTH in used:
            code.set(PACKET_LENGTH, [code.read(LENGTH) if usage.length_needed else "U(length)"])
        code.set(FieldSource(STANDARD, "egress_spec"), [code.u(0)])
        if QUEUE in used:
            code.set_word(QUEUE, f"fields[{PRIORITY}]")
        self._take_time(code, "egress", used)
        flags = usage.mirrors or usage.recirculates
        if flags:
            code.add("flags = 0")
        self._statements(code, self._egress)
        if usage.mirrors:
            with code.lines.optional_block(f"if {code.is_set(CLONE_SESSION)}:"):
                self._forget_lanes(code)
            clone_egress(code, self._kept)
        with code.block(
            f"if {code.read(FieldSource(STANDARD, 'egress_spec'))} == {code.u(DROP_PORT)}:"
        ):
            code.add("return flags" if flags else "return 0", LineMark(DROPPED))
        for checksum in self._source.checksums:
            if checksum.update:
                note_checksum(code, checksum)
                update_checksum(code, checksum)
        deparse = LineMark(DEPARSE, where=self._source.deparser_where)
        with code.marked(deparse):
            DeparserWriter(code, usage, self._paths).write()
        if usage.recirculates:
            recirculate(code)  # whole: BMv2 cuts what leaves
        with code.block(f"if {code.is_set(TRUNCATE_LEN)}:"):
            code.add(f"cut(row, I({code.read(TRUNCATE_LEN)}) - 1)", LineMark(TRUNCATE))
        code.add(f"return flags | {SEND}" if flags else "return 1", deparse)
        return ["@handler", "def egress(arena, at, packet, now_ps):", *code.lines.lines]

    def _forget_lanes(self, code: FunctionCode) -> None:
        """Write code that sets the lanes of metadata to zero, for a clone and for a new packet."""
        lanes = self._storage.scalar_lanes()
        if lanes:
            with code.block(f"for lane in range({lanes[0]}, {lanes[-1] + 1}):"):
                code.add("lanes[lane] = 0")

    def _load_all(self, code: FunctionCode) -> None:
        for field in [*self._kept, TRUNCATE_LEN, PARSED_LEN]:
            load(code, field)
        code.add(f"parsed = I({code.read(PARSED_LEN)})")

    def _parse_clone(self, code: FunctionCode) -> None:
        """Write code that treats a clone's fields as BMv2: parse again, then forget all metadata.

        The fields of the clone's field list stay as ingress left them.
        """
        metadata = [field for field in self._kept if self._is_metadata(field)]
        parsed = self._usage.parser.all
        self._start(code, parsed | set(self._kept), with_metadata=True)
        self._leftovers.fill_lanes(code)
        code.set(FieldSource(STANDARD, "ingress_port"), ["U(row[IN_PORT])"])
        ParserWriter(code, self._usage, self._paths).write()
        forgotten = {FieldSource(STANDARD, "ingress_port"), *metadata}
        self._start(code, forgotten | set(filter(self._is_metadata, parsed)))
        for field in [*(f for f in metadata if f in SET_BETWEEN), CLONE_FIELDS, TRUNCATE_LEN]:
            load(code, field)
        for number, fields in sorted(self._source.field_lists.items()):
            with code.block(f"if {code.read(CLONE_FIELDS)} == {code.u(number)}:"):
                for field in fields:
                    load(code, field)
        code.set(LENGTH, ["U(length)"])

    def _is_metadata(self, field: FieldSource) -> bool:
        header = self._source.headers.get(field.header)
        return header is not None and header.metadata and field.header != STACKS

    def _take_time(self, code: FunctionCode, stage: str, used: set[FieldSource]) -> None:
        if _TIMESTAMPS[stage] in used:
            code.set_word(_TIMESTAMPS[stage], "U(now_ps // PS_PER_US)", TIME_BITS)

    def _leave(self, code: FunctionCode, fields: list[FieldSource]) -> None:
        """Write code that puts fields for egress and the traffic manager into the packet's row."""
        for field in dict.fromkeys(fields):
            if self._storage.lane(field):
                continue
            if field in SET_BETWEEN and field not in _LEFT_BY_INGRESS:
                continue
            slot = self._storage.slots[field]
            for i, name in enumerate(self._storage.names(field)):
                code.add(f"fields[{slot + i}] = {name}")


_HANDLERS: dict[str, type[Handlers]] = {V1MODEL.name: _V1modelHandlers, PSA.name: PsaHandlers}
