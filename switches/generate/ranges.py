"""The range of the true value of a P4 expression."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringleaf.switches.generate.storage import Storage
from ringleaf.switches.json.form import MOST_BITS
from ringleaf.switches.source import (
    Argument,
    Constant,
    Expression,
    FieldSource,
    OperationSource,
    ProgramSource,
)

WORD = 64
MODULUS = 1 << WORD
LONGEST_SHIFT = 2048  # bits; beyond it a bound is not worth computing

UNSIGNED, SIGNED, WIDE = "unsigned", "signed", "wide"

Bounds = tuple[int, int]


class Ranges:
    """Computes bounds of expressions.

    `arguments` holds the words of the current action's parameters, and their widths; `where`
    is the P4 source line that errors name.
    """

    def __init__(self, source: ProgramSource, storage: Storage) -> None:
        self._source = source
        self.storage = storage
        self.arguments: Sequence[tuple[tuple[str, ...], int]] = ()
        self.where = ""

    def kind(self, expression: Expression) -> str:
        """Return the kind of storage for the value: one `uint64`, one `int64`, or several words."""
        bounds = self.bounds(expression)
        if words_for(bounds) > 1:
            return WIDE
        return UNSIGNED if bounds[0] >= 0 else SIGNED

    def size(self, expression: Expression) -> int:
        """Return how many words hold the value, in two's complement if it can be negative."""
        return words_for(self.bounds(expression))

    def bounds(self, expression: Expression) -> Bounds:
        """Return the least and the greatest value that the expression can have."""
        match expression:
            case Constant():
                return expression.value, expression.value
            case FieldSource():
                return self._field_bounds(expression)
            case Argument():
                return 0, (1 << self.arguments[expression.index][1]) - 1
            case OperationSource("?", left, right) if left is not None:
                return _join(self.bounds(left), self.bounds(right))
            case OperationSource("b2d"):
                return 0, 1
            case OperationSource("~", _, right):
                low, high = self.bounds(right)
                return -high - 1, -low - 1
            case OperationSource("two_comp_mod" | "sat_cast" | "usat_cast" as op, left, right):
                return self._cast_bounds(op, left, right)
            case OperationSource(op, left, right) if op in _OPERATIONS and left is not None:
                return _OPERATIONS[op](self.bounds(left), self.bounds(right))
        raise self.refuse("unsupported operation", expression)

    def _field_bounds(self, field: FieldSource) -> Bounds:
        shape = self.storage.shape(field)
        if not shape.signed:
            return 0, (1 << shape.width) - 1
        least = -(1 << (shape.width - 1))
        if not self.storage.lane(field):
            # BMv2 leaves a signed field as positive as it was set, up to 2^width - 1.
            return least, (1 << shape.width) - 1
        return least, -least - 1

    def _cast_bounds(self, op: str, left: Expression | None, right: Expression) -> Bounds:
        assert left is not None
        width = max(self.constant(right), 1)
        if op == "usat_cast":
            floor, ceiling = 0, (1 << width) - 1
        else:
            floor, ceiling = -(1 << (width - 1)), (1 << (width - 1)) - 1
        low, high = self.bounds(left)
        if op == "two_comp_mod":
            inside = low >= floor and high <= ceiling
            return (low, high) if inside else (floor, ceiling)
        return min(max(low, floor), ceiling), max(min(high, ceiling), floor)

    def constant(self, expression: Expression) -> int:
        """Return a width, which must be known."""
        if not isinstance(expression, Constant):
            raise self.refuse("a width must be a constant", expression)
        if not 0 <= expression.value <= MOST_BITS:
            raise self.refuse(f"a width is at most {MOST_BITS} bits", expression.value)
        return expression.value

    def refuse(self, what: str, got: object) -> Exception:
        """Return an error about an expression; it names the source line at hand."""
        shown = got.op if isinstance(got, OperationSource) else got
        return self._source.refuse(what, shown, self.where)


def words_for(bounds: Bounds, *, signed: bool = False) -> int:
    """Return how many words hold these values, in two's complement if need be or `signed`."""
    low, high = bounds
    sign = signed or low < 0
    return -(-(max(high.bit_length(), (~low).bit_length() if low < 0 else 0) + sign) // WORD) or 1


def _join(a: Bounds, b: Bounds) -> Bounds:
    return min(a[0], b[0]), max(a[1], b[1])


def _corners(op: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """Return the bounds of an operation that is monotonous in each operand."""

    def bounds(a: Bounds, b: Bounds) -> Bounds:
        values = [op(x, y) for x in a for y in b]
        return min(values), max(values)

    return bounds


def _and_bounds(a: Bounds, b: Bounds) -> Bounds:
    ceilings = [high for low, high in (a, b) if low >= 0]
    return (0, min(ceilings)) if ceilings else _or_bounds(a, b)


def _or_bounds(a: Bounds, b: Bounds) -> Bounds:
    bits = max(abs(value).bit_length() for value in (*a, *b))
    return (0 if min(a[0], b[0]) >= 0 else -(1 << bits)), (1 << bits) - 1


def _shift(op: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    def bounds(a: Bounds, b: Bounds) -> Bounds:
        amounts = tuple(min(max(amount, 0), LONGEST_SHIFT) for amount in b)
        return _corners(op)(a, (amounts[0], amounts[1]))

    return bounds


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    return (0, a[1]) if min(a[0], b[0]) >= 0 else _any(a, b)


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    return (0, max(min(a[1], b[1] - 1), 0)) if min(a[0], b[0]) >= 0 else _any(a, b)


def _any(a: Bounds, b: Bounds) -> Bounds:
    """Return bounds of the result for a negative value, where BMv2 aborts."""
    return 0, (1 << WORD * max(words_for(a), words_for(b))) - 1


_OPERATIONS: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": _corners(lambda x, y: x + y),
    "-": _corners(lambda x, y: x - y),
    "*": _corners(lambda x, y: x * y),
    "<<": _shift(lambda x, y: x << y),
    ">>": _shift(lambda x, y: x >> y),
    "&": _and_bounds,
    "|": _or_bounds,
    "^": _or_bounds,
    "/": _quotient,
    "%": _remainder,
}
