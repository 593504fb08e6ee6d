"""The parts of a module that all architectures share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ringleaf.switches.engine.shapes import TableShape, shape_table
from ringleaf.switches.generate.code import INGRESS, FunctionCode
from ringleaf.switches.generate.doubts import Doubts
from ringleaf.switches.generate.flow import Apply, Body, may_exit, walk
from ringleaf.switches.generate.inputs import longest_input
from ringleaf.switches.generate.lanes import Pattern
from ringleaf.switches.generate.marks import marked_lines
from ringleaf.switches.generate.observing import ObservedWords, Variant
from ringleaf.switches.generate.paths import Paths
from ringleaf.switches.generate.prelude import HEADER, OPEN
from ringleaf.switches.generate.state import TABLES_AT, StateLayout, digest_words
from ringleaf.switches.generate.statements import StatementWriter
from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.generate.text import ModuleConstants
from ringleaf.switches.generate.undefined_fields import Leftovers
from ringleaf.switches.generate.usage import FieldUsage
from ringleaf.switches.generate.written import Module
from ringleaf.switches.source import FieldSource, ProgramSource

USUAL_HEAD = 128  # bytes that hosts, and other switches, may have put in a head
MOST_ROOM = 1 << 20  # bytes of a packet's head, words of its fields, lanes
MOST_ROW = 1 << 16  # words of an entry, or of digests
MORE_HEAD = 512  # bytes that a packet may grow by on its rounds, as in BMv2 (`receive_`)


@dataclass(frozen=True, slots=True)
class ParserSide:
    """A parser and the deparser that belongs to it, with what is known about both."""

    source: ProgramSource
    usage: FieldUsage
    paths: Paths


class Handlers(ABC):
    """Writes a program's two handlers and what belongs to them.

    Subclasses set `_sides`, one per parser, and `_shapes` of the tables, in the order of the
    switch's words.
    """

    _sides: Sequence[ParserSide]
    _shapes: Sequence[TableShape]

    def __init__(self, source: ProgramSource, variant: Variant) -> None:
        self._source = source
        self._storage = Storage(source)
        self._state = StateLayout(source)
        self._state.check(source)
        self._observer: ObservedWords | None = None
        if variant.observed:
            self._observer = ObservedWords(self._state.words, Doubts(source))
        self._leftovers = Leftovers(source, self._storage, variant.leftovers)
        self._constants = ModuleConstants()
        self._globals: dict[str, str] = {}
        self._patterns: list[Pattern] = []  # of loops, by number

    @abstractmethod
    def _ingress_lines(self) -> list[str]: ...

    @abstractmethod
    def _egress_lines(self) -> list[str]: ...

    @property
    @abstractmethod
    def _comes_round(self) -> bool:
        """Whether packets may come round, with the headers that they have been given."""

    def module(self) -> Module:
        """Return the module: its text, and the places of all that the switch must find."""
        bodies = [self._ingress_lines(), self._egress_lines()]
        if self._observer is not None:
            self._state.words += self._observer.words
        parts = [
            HEADER,
            "\n".join(self._constants.lines()),
            "\n".join(f"{name} = {code}" for name, code in self._globals.items()),
            *("\n".join(lines) for lines in bodies),
        ]
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
                parsed_bytes=max(side.paths.deepest for side in self._sides),
                head_bytes=self._head_bytes(),
                scratch_bytes=longest_input(self._source),
                observer=self._observer,
            )
        )

    def _head_bytes(self) -> int:
        """Return the room that a packet's head needs, with the headers that it can be given."""
        added = MORE_HEAD if self._comes_round else 0
        for side in self._sides:
            emitted = side.source.emitted
            again = [name for i, name in enumerate(emitted) if name in emitted[:i]]
            names = (*side.usage.added, *again)
            added += sum(self._source.headers[name].size_bytes for name in names)
        return max(USUAL_HEAD, *(side.paths.room() for side in self._sides)) + added

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

    def _shape_tables(self, *bodies: Body) -> None:
        statements = walk(tuple(statement for body in bodies for statement in body))
        tables = [item.table for item in statements if isinstance(item, Apply)]
        self._shapes = [shape_table(self._source, table) for table in tables]

    def _code(self, stage: str, side: ParserSide) -> FunctionCode:
        parts = side.source, self._storage, self._state, self._constants, self._globals
        code = FunctionCode(*parts, stage, self._observer)
        if stage == INGRESS:
            code.add("take_phv(arena, packet)")
        for line in OPEN.format(size=TABLES_AT + len(self._shapes)).splitlines():
            code.add(line)
        return code

    def _statements(self, code: FunctionCode, body: Body) -> None:
        if any(may_exit(statement) for statement in body):
            code.add("exited = False")
        numbers = {shape.table.name: i for i, shape in enumerate(self._shapes)}
        shapes = {shape.table.name: shape for shape in self._shapes}
        StatementWriter(code, shapes, numbers, self._patterns).write(body)

    def _start(
        self, code: FunctionCode, fields: set[FieldSource], *, with_metadata: bool = False
    ) -> None:
        """Write code that zeroes fields, as BMv2 does with metadata; P4 leaves headers open."""
        unused = self._later_names()
        for field in sorted(fields - unused, key=lambda f: (f.header, f.name)):
            if not self._storage.lane(field):
                first, *others = self._storage.names(field)
                value = self._leftovers.first(field, with_metadata=with_metadata)
                code.add(f"{first} = {code.u(value)}")
                for name in others:
                    code.add(f"{name} = {code.u(0)}")

    def _later_names(self) -> set[FieldSource]:
        """Return the temporaries of later turns of loops: those of the first turn serve for all."""
        return {
            name
            for pattern in self._patterns
            for names in pattern.temporaries.values()
            for name in names[1:]
        }
