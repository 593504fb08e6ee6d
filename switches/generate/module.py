"""A whole program as the source of a Python module with `ingress` and `egress`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ringleaf.switches.engine.layout import DROP_PORT, INGRESS_CLONE, INSTANCE_TYPE, PRIORITY, SEND
from ringleaf.switches.engine.layout import PACKET_LENGTH as PACKET_LENGTH_SLOT
from ringleaf.switches.engine.shapes import Shape, shape_table
from ringleaf.switches.generate.calculations import update_checksum, verify_checksum
from ringleaf.switches.generate.code import EGRESS, INGRESS, Code
from ringleaf.switches.generate.deparser import DeparserWriter
from ringleaf.switches.generate.endings import (
    SET_BETWEEN,
    begin_again,
    clone_egress,
    digest_words,
    leave_requests,
    load,
    recirculate,
    send_digests,
)
from ringleaf.switches.generate.flow import Apply, Body, may_exit, walk
from ringleaf.switches.generate.inputs import longest_input
from ringleaf.switches.generate.lanes import Roller
from ringleaf.switches.generate.leftovers import Leftovers
from ringleaf.switches.generate.marks import DEPARSE, DROPPED, TRUNCATE, Mark, marked_lines
from ringleaf.switches.generate.observing import Observer, Variant
from ringleaf.switches.generate.parser import ParserWriter
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.generate.prelude import HEADER, OPEN
from ringleaf.switches.generate.state import TABLES_AT, State
from ringleaf.switches.generate.statements import StatementWriter
from ringleaf.switches.generate.storage import (
    CLONE_FIELDS,
    CLONE_SESSION,
    LEARN,
    LENGTH,
    PARSED_LEN,
    RESUBMIT,
    TRUNCATE_LEN,
    Storage,
    position,
    valid,
)
from ringleaf.switches.generate.structure import pipeline_body
from ringleaf.switches.generate.text import Constants, TooLargeError
from ringleaf.switches.generate.usage import CHECKSUM_ERROR, PACKET_LENGTH, PARSER_ERROR, Usage
from ringleaf.switches.source import STACKS, STANDARD, Field, Source

_TIMESTAMPS = {
    "ingress": Field(STANDARD, "ingress_global_timestamp"),
    "egress": Field(STANDARD, "egress_global_timestamp"),
}

QUEUE = Field(STANDARD, "qid")  # of P4_14's queueing_metadata; v1model has none

TIME_BITS = 48  # of a time in v1model; programs of P4_14 may have fewer

# Fields that ingress leaves in the packet's row for code that knows no program.
_LEFT_BY_INGRESS = (
    Field(STANDARD, "ingress_port"),
    Field(STANDARD, "egress_spec"),
    Field(STANDARD, "instance_type"),
    PACKET_LENGTH,
    Field(STANDARD, "mcast_grp"),
    Field(STANDARD, "egress_rid"),
    Field(STANDARD, "priority"),
    CHECKSUM_ERROR,
    PARSER_ERROR,
    CLONE_SESSION,
    TRUNCATE_LEN,
    PARSED_LEN,
)

USUAL_HEAD = 128  # bytes that hosts, and other switches, may have put in a head
MOST_ROOM = 1 << 20  # bytes of a packet's head, words of its fields, lanes
MOST_ROW = 1 << 16  # words of an entry, or of digests
MORE_HEAD = 512  # bytes that a packet may grow by on its rounds, as in BMv2 (`receive_`)


ORDINARY = Variant()

_CONTRADICTIONS = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""The errors in the generator if names are undefined, or refer to objects of another kind."""


@dataclass(frozen=True, slots=True)
class Module:
    """Generated source, and the layout of the program's state for a switch."""

    text: str
    names: Mapping[str, str]  # the program's names of the labels t3, f12, ...
    marks: Mapping[int, Mark]  # of the text's lines, numbered from 1
    storage: Storage
    state: State
    shapes: tuple[Shape, ...]  # in the order of the switch's words
    field_count: int
    lane_count: int
    parsed_bytes: int  # the most that the parser takes
    head_bytes: int  # room that a packet's head needs
    scratch_bytes: int  # room that calculations need
    observer: Observer | None = None  # counts the points that packets reach


def generate(source: Source, variant: Variant = ORDINARY) -> Module:
    """Return the program as Python source.

    Raises:
        ConfigError: If the program does what is not supported.
    """
    try:
        return _Generator(source, variant).module()
    except (TooLargeError, RecursionError, MemoryError) as exc:
        raise source.refuse("the program is too large, or nested too deeply", str(exc)) from exc
    except _CONTRADICTIONS as exc:
        raise source.refuse(
            "the program refers to what it does not have, or contradicts itself",
            f"{type(exc).__name__}: {exc}",
        ) from exc


class _Generator:
    def __init__(self, source: Source, variant: Variant) -> None:
        self._source = source
        pipelines = source.ingress, source.egress
        bodies = [pipeline_body(source, line, calls=variant.observed) for line in pipelines]
        self._paths = Paths(source)
        self._usage = Usage(source, *bodies)
        self._storage = Storage(source)
        self._state = State(source)
        self._state.check(source)
        self._observer = Observer(self._state.words) if variant.observed else None
        roller = Roller(source, self._storage, self._state)
        self._ingress, self._egress = roller.roll(bodies, self._usage.elsewhere())
        self._patterns = roller.patterns
        self._leftovers = Leftovers(source, self._storage, variant.leftovers)
        self._constants = Constants()
        self._globals: dict[str, str] = {}
        everything = walk((*self._ingress, *self._egress))
        tables = [item.table for item in everything if isinstance(item, Apply)]
        self._shapes = [shape_table(source, table) for table in tables]
        moving = self._paths.moving()
        self._kept = sorted(self._usage.kept(moving), key=lambda f: (f.header, f.name))
        self._storage.give_slots(self._kept)

    def module(self) -> Module:
        bodies = [self._ingress_lines(), self._egress_lines()]
        if self._observer is not None:
            self._state.words += self._observer.words
        parts = [
            HEADER,
            "\n".join(self._constants.lines()),
            "\n".join(f"{name} = {code}" for name, code in self._globals.items()),
            *("\n".join(lines) for lines in bodies),
        ]
        headers = self._source.headers
        emitted = self._source.emitted
        again = [name for i, name in enumerate(emitted) if name in emitted[:i]]
        added = sum(headers[name].size_bytes for name in (*self._usage.added, *again))
        if self._usage.recirculates:
            added += MORE_HEAD
        text = "\n\n".join(part for part in parts if part) + "\n"
        return self._fitting(
            Module(
                text=text,
                names=self._storage.labels.names,
                marks=marked_lines(text, bodies),
                storage=self._storage,
                state=self._state,
                shapes=tuple(self._shapes),
                field_count=self._storage.field_count,
                lane_count=self._storage.lane_count,
                parsed_bytes=self._paths.deepest,
                head_bytes=max(self._paths.room(), USUAL_HEAD) + added,
                scratch_bytes=longest_input(self._source),
                observer=self._observer,
            )
        )

    def _fitting(self, module: Module) -> Module:
        """Return the module, unless a packet or an entry of it needs too much room."""
        digests = sum(sum(words) for words in digest_words(self._source).values())
        needs = {
            "bytes of a packet's head": (module.head_bytes, MOST_ROOM),
            "words of a packet's fields": (module.field_count, MOST_ROOM),
            "lanes of a packet": (module.lane_count, MOST_ROOM),
            "bytes of a calculation's input": (module.scratch_bytes, MOST_ROOM),
            "words of an entry": (max((s.row_words for s in self._shapes), default=0), MOST_ROW),
            "words of digests": (digests, MOST_ROW),
        }
        for what, (need, most) in needs.items():
            if need > most:
                raise self._source.refuse(f"{what} are at most {most}", need)
        return module

    def _code(self, stage: str) -> Code:
        parts = self._source, self._storage, self._state, self._constants, self._globals
        code = Code(*parts, stage, self._observer)
        if stage == INGRESS:
            code.add("take_phv(arena, packet)")
        for line in OPEN.format(size=TABLES_AT + len(self._shapes)).splitlines():
            code.add(line)
        return code

    def _statements(self, code: Code, body: Body) -> None:
        if any(may_exit(statement) for statement in body):
            code.add("exited = False")
        numbers = {shape.table.name: i for i, shape in enumerate(self._shapes)}
        shapes = {shape.table.name: shape for shape in self._shapes}
        StatementWriter(code, shapes, numbers, self._patterns).write(body)

    def _ingress_lines(self) -> list[str]:
        code, usage = self._code(INGRESS), self._usage
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
            code.set(Field(STANDARD, "ingress_port"), ["U(row[IN_PORT])"])
        code.add("length = row[HEAD_LEN] + row[PAYLOAD_LEN] + row[TAIL_LEN]")
        code.set(PACKET_LENGTH, ["U(length)"])
        code.set(LENGTH, ["U(length)"])
        if _TIMESTAMPS["ingress"] in used:
            with code.guarded(first_time):
                self._take_time(code, "ingress", used)
        ParserWriter(code, usage, self._paths).write()
        code.set(PARSED_LEN, ["U(parsed)"])
        for checksum in self._source.checksums:
            if checksum.verify:
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
        code, usage = self._code(EGRESS), self._usage
        used = usage.egress.all | usage.update.all | usage.deparser.all | set(self._kept)
        used |= {Field(STANDARD, "egress_spec"), TRUNCATE_LEN, LENGTH, PARSED_LEN}
        self._start(code, used - set(self._kept))
        code.add(f"length = I(fields[{PACKET_LENGTH_SLOT}])")
        if usage.clones:
            with code.block(f"if fields[{INSTANCE_TYPE}] == {code.u(INGRESS_CLONE)}:"):
                self._parse_clone(code)
            with code.block("else:"):
                self._load_all(code)
        else:
            self._load_all(code)
        self._leftovers.spoil_copies(code, self._kept)
        if PACKET_LENGTH in used and usage.length_needed:
            code.set(PACKET_LENGTH, [code.read(LENGTH)])
        code.set(Field(STANDARD, "egress_spec"), [code.u(0)])
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
        with code.block(f"if {code.read(Field(STANDARD, 'egress_spec'))} == {code.u(DROP_PORT)}:"):
            code.add("return flags" if flags else "return 0", Mark(DROPPED))
        for checksum in self._source.checksums:
            if checksum.update:
                update_checksum(code, checksum)
        deparse = Mark(DEPARSE, where=self._source.deparser_where)
        with code.marked(deparse):
            DeparserWriter(code, usage, self._paths).write()
        with code.block(f"if {code.is_set(TRUNCATE_LEN)}:"):
            code.add(f"cut(row, I({code.read(TRUNCATE_LEN)}) - 1)", Mark(TRUNCATE))
        if usage.recirculates:
            recirculate(code)
        code.add(f"return flags | {SEND}" if flags else "return 1", deparse)
        return ["@handler", "def egress(arena, at, packet, now_ps):", *code.lines.lines]

    def _forget_lanes(self, code: Code) -> None:
        """Write code that sets the lanes of metadata to zero, for a clone and for a new packet."""
        lanes = self._storage.scalar_lanes()
        if lanes:
            with code.block(f"for lane in range({lanes[0]}, {lanes[-1] + 1}):"):
                code.add("lanes[lane] = 0")

    def _load_all(self, code: Code) -> None:
        for field in [*self._kept, TRUNCATE_LEN, PARSED_LEN]:
            load(code, field)
        code.add(f"parsed = I({code.read(PARSED_LEN)})")

    def _parse_clone(self, code: Code) -> None:
        """Write code that treats a clone's fields as BMv2: parse again, then forget all metadata.

        The fields of the clone's field list stay as ingress left them.
        """
        metadata = [field for field in self._kept if self._is_metadata(field)]
        parsed = self._usage.parser.all
        self._start(code, parsed | set(self._kept), with_metadata=True)
        self._leftovers.fill_lanes(code)
        code.set(Field(STANDARD, "ingress_port"), ["U(row[IN_PORT])"])
        ParserWriter(code, self._usage, self._paths).write()
        forgotten = {Field(STANDARD, "ingress_port"), *metadata}
        self._start(code, forgotten | set(filter(self._is_metadata, parsed)))
        left = [
            *(f for f in metadata if f in SET_BETWEEN),
            PACKET_LENGTH,
            CLONE_FIELDS,
            TRUNCATE_LEN,
        ]
        for field in left:
            load(code, field)
        for number, fields in sorted(self._source.field_lists.items()):
            with code.block(f"if {code.read(CLONE_FIELDS)} == {code.u(number)}:"):
                for field in fields:
                    load(code, field)
        code.set(LENGTH, ["U(length)"])

    def _is_metadata(self, field: Field) -> bool:
        header = self._source.headers.get(field.header)
        return header is not None and header.metadata and field.header != STACKS

    def _start(self, code: Code, fields: set[Field], *, with_metadata: bool = False) -> None:
        """Write code that zeroes fields, as BMv2 does with metadata; P4 leaves headers open."""
        unused = self._later_names()
        for field in sorted(fields - unused, key=lambda f: (f.header, f.name)):
            if not self._storage.lane(field):
                first, *others = self._storage.names(field)
                value = self._leftovers.first(field, with_metadata=with_metadata)
                code.add(f"{first} = {code.u(value)}")
                for name in others:
                    code.add(f"{name} = {code.u(0)}")

    def _later_names(self) -> set[Field]:
        """Return the temporaries of later turns of loops: those of the first turn serve for all."""
        return {
            name
            for pattern in self._patterns
            for names in pattern.temporaries.values()
            for name in names[1:]
        }

    def _take_time(self, code: Code, stage: str, used: set[Field]) -> None:
        if _TIMESTAMPS[stage] in used:
            code.set_word(_TIMESTAMPS[stage], "U(now_ps // PS_PER_US)", TIME_BITS)

    def _leave(self, code: Code, fields: list[Field]) -> None:
        """Write code that puts fields for egress and the traffic manager into the packet's row."""
        for field in dict.fromkeys(fields):
            if self._storage.lane(field):
                continue
            if field in SET_BETWEEN and field not in _LEFT_BY_INGRESS:
                continue
            slot = self._storage.slots[field]
            for i, name in enumerate(self._storage.names(field)):
                code.add(f"fields[{slot + i}] = {name}")
