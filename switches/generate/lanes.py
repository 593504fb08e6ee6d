"""Finding repetition: 64 lanes written out one by one become a loop over lanes.

P4 has no loops, so a program treats lane after lane, which p4c writes out in full. As
straight-line code that takes ten times as long to run, and to compile, as the loop it stands
for, which LLVM vectorises. A stretch of statements is a loop if it is a like stretch repeated,
where from one turn to the next

- lanes of one run, and registers of one array of arrays, advance by the same step;
- temporaries are renamed one for one;
- all else stays.

A loop runs its turns in the order in which they stood, so it means the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ringleaf.switches.generate.flow import Body, If, Loop, Statement, rebuild
from ringleaf.switches.generate.primitives import REGISTER_PARAMETERS, effects, fields_in
from ringleaf.switches.generate.repetition import (
    RENAMED,
    Atom,
    Comparer,
    Relation,
    Stride,
    Token,
    atoms,
    fields,
)
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import SHORTEST_RUN, Storage
from ringleaf.switches.source import Expression, FieldSource, Primitive, ProgramSource

LONGEST_PERIOD = 16  # statements of one turn
WIDEST_LANE = 32  # bits

Names = tuple[FieldSource, ...]
"""The names of a temporary of the first turn in all turns."""


@dataclass
class Pattern:
    """The differences between the turns of a loop."""

    lanes: dict[FieldSource, Stride] = field(default_factory=dict)
    registers: dict[str, Stride] = field(default_factory=dict)
    temporaries: dict[FieldSource, Names] = field(default_factory=dict)
    prefix: Body = ()  # statements that are the same in every turn, done once before
    uses: Counter[FieldSource] = field(default_factory=Counter)  # of fields in the first turn


class Roller:
    """Rolls a program's bodies up; `patterns[loop.number]` has the differences of turns."""

    def __init__(self, source: ProgramSource, storage: Storage, state: StateLayout) -> None:
        self._source = source
        self._storage = storage
        self._comparer = Comparer(source, storage, state)
        self.patterns: list[Pattern] = []

    def roll(self, bodies: list[Body], elsewhere: Iterable[FieldSource]) -> list[Body]:
        """Return the bodies with repetitions as loops.

        Temporaries that only ever live within one turn become variables of the loop; others
        are made lanes themselves, and the search begins anew.

        Args:
            bodies: The pipelines.
            elsewhere: Fields that anything else (parser, checksums, ...) uses.
        """
        uses = Counter(elsewhere)
        for body in bodies:
            uses.update(fields(body))
        while True:
            self.patterns = []
            rolled = [self._body(body) for body in bodies]
            outlive = self._outliving(uses)
            if not outlive:
                return rolled
            # Making temporaries lanes changes the shapes of statements, and pinning them takes some
            # loops away. So all is compared again, until no temporary outlives its turn.
            if self._storage.shape(outlive[0]).width <= WIDEST_LANE:
                self._storage.make_lanes(outlive)
            else:
                self._comparer.pinned |= set(outlive)

    def _outliving(self, uses: Counter[FieldSource]) -> Names:
        """Return a family of temporaries, one of which is used beyond its turn."""
        inside: Counter[FieldSource] = Counter()
        families: dict[FieldSource, Names] = {}
        for pattern in self.patterns:
            for first, names in pattern.temporaries.items():
                for name in names:
                    inside[name] += pattern.uses[first]
                    families.setdefault(name, names)
        return next((families[name] for name in inside if inside[name] != uses[name]), ())

    def _body(self, body: Body) -> Body:
        shapes = [self._comparer.shape(statement) for statement in body]
        out: list[Statement] = []
        at = 0
        while at < len(body):
            repetition = self._repetition(body, shapes, at)
            if repetition is None:
                out.append(rebuild(body[at], self._body))
                at += 1
            else:
                loop, period = repetition
                out.append(loop)
                at += loop.count * period
        return tuple(out)

    def _repetition(self, body: Body, shapes: list[Token], at: int) -> tuple[Loop, int] | None:
        """Return a loop that starts at a statement, and the number of statements in a turn."""
        for period in range(1, LONGEST_PERIOD + 1):
            # Longer periods have even less room, so none of them can repeat often enough.
            if at + SHORTEST_RUN * period > len(body):
                break
            # Shapes of two turns are compared first, which is cheap; names are compared only where
            # these agree.
            if shapes[at : at + period] != shapes[at + period : at + 2 * period]:
                continue
            turns = self._turns(body, shapes, at, period)
            loop = self._loop(body[at : at + period], turns)
            if loop is not None:
                return loop, period
        return None

    def _turns(self, body: Body, shapes: list[Token], at: int, period: int) -> list[list[Atom]]:
        """Return the atoms of each turn, as many turns as have the same shape."""
        turns = []
        for start in range(at, len(body) - period + 1, period):
            if shapes[start : start + period] != shapes[at : at + period]:
                break
            turns.append(atoms(body[start : start + period]))
        return turns

    def _loop(self, turn: Body, turns: list[list[Atom]]) -> Loop | None:
        first = turns[0]
        relations = self._comparer.relations(first, turns[1])
        if relations is None:
            return None
        count = 1
        while count < len(turns) and self._comparer.continues(
            first, turns[count], relations, count
        ):
            count += 1
        if count < SHORTEST_RUN:
            return None
        pattern = _pattern(relations, turns[:count])
        pattern.uses.update(fields(turn))
        rest = self._hoist(turn, pattern)
        if rest is None or not self._is_sound(turn, pattern):
            return None
        self.patterns.append(pattern)
        return Loop(count, rest, len(self.patterns) - 1)

    def _hoist(self, turn: Body, pattern: Pattern) -> Body | None:
        """Move the statements that every turn does alike to the pattern's prefix; return the rest.

        None if the rest indexes registers by something that changes from turn to turn.
        """
        written = Counter(self._written(turn))
        read: set[FieldSource] = set()
        prefix, rest = [], []
        for statement in turn:
            target = self._invariant(statement, set(written) | set(pattern.lanes))
            # It may move before the loop only if nothing in a turn reads the old value before, or
            # writes another one.
            if target is not None and written[target] == 1 and target not in read:
                prefix.append(statement)
                del written[target]
            else:
                rest.append(statement)
            read |= set(fields((statement,)))
        pattern.prefix = tuple(prefix)
        varying = set(written) | set(pattern.lanes)
        if any(fields_in(index) & varying for index in register_indices(rest)):
            return None
        return tuple(rest)

    def _invariant(self, statement: Statement, varying: set[FieldSource]) -> FieldSource | None:
        """Return the scalar to which a statement gives the same value in every turn."""
        if not isinstance(statement, Primitive) or statement.op != "assign":
            return None
        target, value = statement.parameters
        assert isinstance(target, FieldSource)
        if self._storage.lane(target) is not None or fields_in(value) & varying:
            return None
        return target

    def _written(self, body: Body) -> Iterator[FieldSource]:
        for statement in body:
            if isinstance(statement, Primitive):
                yield from effects(self._source, statement).writes
            elif isinstance(statement, If):
                yield from self._written((*statement.then, *statement.otherwise))

    def _is_sound(self, turn: Body, pattern: Pattern) -> bool:
        """Return whether every temporary is written in a turn before that turn reads it."""
        return self._certain(turn, set(pattern.temporaries), set()) is not None

    def _certain(
        self, body: Body, tracked: set[FieldSource], known: set[FieldSource]
    ) -> set[FieldSource] | None:
        """Return the fields certainly written after `body`; None if it may read unwritten ones."""
        known = set(known)
        for statement in body:
            if isinstance(statement, Primitive):
                uses = effects(self._source, statement)
                if (uses.reads & tracked) - known:
                    return None
                known |= uses.writes
            elif isinstance(statement, If):
                then = self._certain(statement.then, tracked, known)
                otherwise = self._certain(statement.otherwise, tracked, known)
                unknown = (fields_in(statement.condition) & tracked) - known
                if then is None or otherwise is None or unknown:
                    return None
                # After an if, only what both branches have written is certain.
                known = then & otherwise
        return known


def _pattern(relations: list[Relation], turns: list[list[Atom]]) -> Pattern:
    pattern = Pattern()
    for i, (atom, relation) in enumerate(zip(turns[0], relations, strict=True)):
        if isinstance(relation, Stride):
            if isinstance(atom, FieldSource):
                pattern.lanes[atom] = relation
            else:
                pattern.registers[atom.name] = relation
        elif relation == RENAMED:
            assert isinstance(atom, FieldSource)
            names = [turn[i] for turn in turns]
            pattern.temporaries[atom] = tuple(
                name for name in names if isinstance(name, FieldSource)
            )
    return pattern


def register_indices(body: Iterable[Statement]) -> Iterator[Expression]:
    """Return the expressions by which a body indexes registers."""
    for statement in body:
        if isinstance(statement, If):
            yield from register_indices((*statement.then, *statement.otherwise))
        elif isinstance(statement, Primitive) and statement.op in REGISTER_PARAMETERS:
            yield statement.parameters[REGISTER_PARAMETERS[statement.op][1]]
