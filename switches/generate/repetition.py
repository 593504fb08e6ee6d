"""Compares similar stretches of statements: the names that change, and their changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringleaf.switches.generate.flow import Apply, Body, If, Statement, children
from ringleaf.switches.generate.state import StateLayout
from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.source import (
    Expression,
    FieldSource,
    Listed,
    Named,
    OperationSource,
    Primitive,
    ProgramSource,
)

Atom = FieldSource | Named  # a field, or a register array
Token = object
Place = tuple[Token, int]


@dataclass(frozen=True, slots=True)
class Stride:
    """The place of a lane field, or a lane's register, in turn j: `start + j * step`."""

    start: int
    step: int


SAME, RENAMED = "same", "renamed"
Relation = Stride | str


def tokens(statement: Statement, atom: Callable[[Atom], Token]) -> Iterator[Token]:
    """Return a statement as a flat sequence; `atom` gives the tokens of fields and registers.

    Statements that never repeat others have their identity among the tokens.
    """
    yield from _own_tokens(statement, atom)
    for body in children(statement):
        yield "("
        for inner in body:
            yield from tokens(inner, atom)
        yield ")"


def _own_tokens(statement: Statement, atom: Callable[[Atom], Token]) -> Iterator[Token]:
    """Return a statement's tokens without those of the bodies inside it."""
    match statement:
        case Primitive():
            yield statement.op
            for parameter in statement.parameters:
                yield from _expression_tokens(parameter, atom)
        case If():
            yield "if"
            yield from _expression_tokens(statement.condition, atom)
        case Apply():
            yield id(statement)
            for key in statement.table.keys:
                yield atom(key.target)
        case _:
            yield id(statement)


def _expression_tokens(expression: Expression, atom: Callable[[Atom], Token]) -> Iterator[Token]:
    match expression:
        case FieldSource():
            yield atom(expression)
        case Named() if expression.kind == "register_array":
            yield atom(expression)
        case Listed():
            yield len(expression.values)
            for value in expression.values:
                yield from _expression_tokens(value, atom)
        case OperationSource():
            yield (expression.op, expression.left is None, expression.condition is None)
            for part in (expression.condition, expression.left, expression.right):
                if part is not None:
                    yield from _expression_tokens(part, atom)
        case _:
            yield ("leaf", expression)


def atoms(body: Body) -> list[Atom]:
    """Return the fields and registers that a body names, in a fixed order."""
    flat = (token for statement in body for token in tokens(statement, lambda atom: atom))
    return [token for token in flat if isinstance(token, FieldSource | Named)]


def fields(body: Body) -> list[FieldSource]:
    """Return the fields that a body names, in a fixed order, as often as it names them."""
    return [atom for atom in atoms(body) if isinstance(atom, FieldSource)]


class Comparer:
    """Compares statements, knowing the places of lanes, and the temporaries."""

    def __init__(self, source: ProgramSource, storage: Storage, state: StateLayout) -> None:
        self._source = source
        self._storage = storage
        self._state = state
        self.pinned: set[FieldSource] = set()  # scalars that must not be taken for temporaries
        self._shapes: dict[int, tuple[Statement, Token]] = {}  # by identity; keeps it in use

    def shape(self, statement: Statement) -> Token:
        """Return the tokens that are equal in every repetition, whatever the names.

        Those of inner bodies are tuples within it; each is made once, however deep it lies.
        """
        known = self._shapes.get(id(statement))
        if known is None:
            own = tuple(_own_tokens(statement, self._atom_shape))
            inner = tuple(tuple(map(self.shape, body)) for body in children(statement))
            known = self._shapes[id(statement)] = statement, (own, inner)
        return known[1]

    def relations(self, first: list[Atom], second: list[Atom]) -> list[Relation] | None:
        """Return how each atom changes from the first turn to the second; None if it can't."""
        relations = []
        for a, b in zip(first, second, strict=True):
            relation = self._relation(a, b)
            if relation is None:
                return None
            relations.append(relation)
        return relations

    def continues(
        self, first: list[Atom], turn: list[Atom], relations: list[Relation], number: int
    ) -> bool:
        """Return whether `turn` is turn `number` of the repetition that `first` begins."""
        renamed: dict[Atom, Atom] = {}
        for a, b, relation in zip(first, turn, relations, strict=True):
            if isinstance(relation, Stride):
                origin, place = self._place(a), self._place(b)
                assert origin is not None
                if place != (origin[0], relation.start + number * relation.step):
                    return False
            elif relation == SAME:
                if a != b:
                    return False
            elif not self._is_temporary(b) or renamed.setdefault(a, b) != b:
                return False
        # Two temporaries must not become one, and none may take the name of a field that stays: the
        # loop's variables would share a value that the written-out turns keep apart.
        others = {a for a, relation in zip(first, relations, strict=True) if relation == SAME}
        names = set(renamed.values())
        return len(names) == len(renamed) and not names & others

    def _relation(self, first: Atom, second: Atom) -> Relation | None:
        if first == second:
            return SAME
        origin, place = self._place(first), self._place(second)
        if origin is not None and place is not None and origin[0] == place[0]:
            return Stride(origin[1], place[1] - origin[1])
        if self._is_temporary(first) and self._is_temporary(second):
            return RENAMED
        return None

    def _place(self, atom: Atom) -> Place | None:
        """Return an atom's kind of lane, and its place; equal kinds can be looped over."""
        if isinstance(atom, FieldSource):
            lane = self._storage.lane(atom)
            return None if lane is None else (self._atom_shape(atom), lane.index)
        cells = self._state.registers[atom.name]
        return ((self._atom_shape(atom), cells.stride), cells.start) if cells.in_lanes else None

    def _is_temporary(self, atom: Atom) -> bool:
        if not isinstance(atom, FieldSource) or atom in self.pinned:
            return False
        return atom.header == "scalars" and self._storage.lane(atom) is None

    def _atom_shape(self, atom: Atom) -> Token:
        if isinstance(atom, FieldSource):
            shape = self._storage.shape(atom)
            return (shape.width, shape.signed)
        array = self._source.registers[atom.name]
        return (array.size, array.width)
