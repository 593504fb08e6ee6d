"""A packet that comes into being as a parser reads it: random bits, of which some get values."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable

from switches.source import (
    STACKS,
    VALID,
    Boolean,
    Constant,
    Expression,
    Field,
    LookAhead,
    Named,
    Operation,
    Source,
)

MOST_BITS = 8 * 3000

Place = tuple[int, int]
"""Where a value lies: its first bit and its width."""

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_},
    **{"|": operator.or_, "^": operator.xor, "==": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b)},
    "<<": lambda a, b: a << min(b, 64),
    ">>": operator.rshift,
}


class UnknownError(Exception):
    """A value that depends on more than the packet."""


class Draft:
    """Bits, a cursor, and where in them the fields lie that were extracted so far."""

    def __init__(self, source: Source, rng: random.Random) -> None:
        self._source = source
        self._bits = rng.getrandbits(MOST_BITS)
        self.cursor = 0
        self.places: dict[Field, Place] = {}
        self.counts: dict[str, int] = {}
        self.valid: set[str] = set()
        self.known: dict[Field, int] = {}  # metadata that the parser has set
        self.held: set[Place] = set()  # what the path depends on

    def get(self, place: Place) -> int:
        at, width = place
        return self._bits >> (MOST_BITS - at - width) & (1 << width) - 1

    def put(self, place: Place, value: int, mask: int | None = None) -> None:
        """Set those bits of a value that `mask` has."""
        at, width = place
        mask = (1 << width) - 1 if mask is None else mask & (1 << width) - 1
        shift = MOST_BITS - at - width
        self._bits = self._bits & ~(mask << shift) | (value & mask) << shift

    def data(self, size_bytes: int) -> bytes:
        return self._bits.to_bytes(MOST_BITS // 8, "big")[:size_bytes]

    def extract(self, header: str, varbit_bits: int = 0) -> None:
        """Say that a header lies at the cursor."""
        self.valid.add(header)
        for item in self._source.headers[header].fields:
            width = varbit_bits if item.varbit else item.width
            self.places[Field(header, item.name)] = (self.cursor, width)
            self.cursor += width

    def place(self, item: Expression) -> Place | None:
        """Return where a value can be changed, None if it is not a stretch of the packet."""
        match item:
            case Field():
                return self.places.get(item)
            case LookAhead(offset, width):
                return self.cursor + offset, width
            case Operation("?", left, right, condition) if left and condition:
                try:
                    return self.place(left if self.value(condition) else right)
                except UnknownError:
                    return None
        return None

    def value(self, item: Expression) -> int:
        """Return what an expression has.

        Raises:
            UnknownError: If that is not only up to the packet.
        """
        match item:
            case Constant(value) | Boolean(value):
                return int(value)
            case LookAhead():
                place = self.place(item)
                assert place is not None
                return self.get(place)
            case Field(header, name) if header == STACKS:
                return self.counts.get(name, 0)
            case Field(header, name) if name == VALID:
                return int(header in self.valid)
            case Field():
                return self._field(item)
            case Operation():
                return self._operation(item)
        raise UnknownError

    def _field(self, item: Field) -> int:
        if item in self.places:
            return self.get(self.places[item])
        if item in self.known:
            return self.known[item]
        raise UnknownError

    def _operation(self, item: Operation) -> int:
        if item.op == "valid" and isinstance(item.right, Named):
            return int(item.right.name in self.valid)
        if item.op == "?" and item.condition is not None and item.left is not None:
            return self.value(item.left if self.value(item.condition) else item.right)
        right = self.value(item.right)
        if item.left is None:
            if item.op == "not":
                return int(not right)
            return right if item.op in ("d2b", "b2d") else self._refuse()
        if item.op not in _OPERATIONS:
            return self._refuse()
        return int(_OPERATIONS[item.op](self.value(item.left), right))

    def _refuse(self) -> int:
        raise UnknownError
