"""Values in terms of a packet's bits.

A parser computes with what it has extracted, looked ahead at, and assigned; p4c makes slices of
a lookahead, for example, shifts and masks of a temporary. An expression whose fields are resolved
to stretches of the packet can be evaluated (and driven to a value: `driving.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ringleaf.switches.source import Boolean, Constant, Expression, OperationSource

Place = tuple[int, int]
"""The place of a value: its first bit and its width."""

WIDEST = 1 << 4096
"""Larger shifts and products are not values of any field."""


@dataclass(frozen=True, slots=True)
class PacketBits:
    """A stretch of the packet as an operand."""

    at: int  # first bit
    width: int  # bits


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that depends on more than the packet."""


@dataclass(frozen=True, slots=True)
class Computed:
    """An operation on values; `left` is None where it has one operand."""

    op: str
    left: Value | None
    right: Value
    condition: Value | None = None


Value = PacketBits | Constant | Unknown | Computed


class UnknownError(Exception):
    """A value that depends on more than the packet."""


class ReadablePacket(Protocol):
    """A packet whose bits can be read."""

    def get(self, place: Place) -> int:
        """Return the bits of a place (offset, width) of the packet, as a number."""


class ChangeablePacket(ReadablePacket, Protocol):
    """A packet whose bits can be changed, too."""

    def put(self, place: Place, value: int, mask: int | None = None) -> None:
        """Write a value to a place; only to the bits of `mask`, if there is one."""


def resolve(item: Expression, leaf: Callable[[Expression], Value]) -> Value:
    """Return an expression with each leaf replaced by the value that it stands for."""
    match item:
        case Boolean(value) | Constant(value):
            return Constant(int(value))
        case OperationSource(op, left, right, condition) if op != "valid":
            return Computed(
                op,
                None if left is None else resolve(left, leaf),
                resolve(right, leaf),
                None if condition is None else resolve(condition, leaf),
            )
    return leaf(item)


def places_in(value: Value, mask: int = -1) -> Iterator[Place]:
    """Return the stretches of the packet that the bits of a mask of a value depend on.

    Of slices, which are shifts and masks, these are only the bits that they show.
    """
    match value:
        case PacketBits(at, width):
            shown = mask & (1 << width) - 1
            if shown:
                low = (shown & -shown).bit_length() - 1
                yield at + width - shown.bit_length(), shown.bit_length() - low
        case Computed("&", left, Constant(number)) if left is not None:
            yield from places_in(left, mask & number)
        case Computed(">>", left, Constant(by)) if left is not None and by < 4096:
            yield from places_in(left, mask << by)
        case Computed("<<", left, Constant(by)) if left is not None:
            yield from places_in(left, mask >> by)
        case Computed(op, left, right, condition):
            inner = mask if op in ("&", "|", "^", "?") else -1
            for part in (left, right):
                if part is not None:
                    yield from places_in(part, inner)
            if condition is not None:
                yield from places_in(condition)


# Evaluation.


def shift(by: int, most: int) -> int:
    """Return the bits to shift by, at most so many; a negative number is as large as any."""
    return by if 0 <= by < most else most


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_},
    **{"|": operator.or_, "^": operator.xor, "==": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    **{"and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b)},
    "<<": lambda a, b: a << shift(b, 2048) if a < WIDEST else 0,
    ">>": lambda a, b: a >> shift(b, 4096),
}


def evaluate(packet: ReadablePacket, value: Value) -> int:
    """Return the number that a value is in a packet.

    Raises:
        UnknownError: If it depends on more than the packet.
    """
    match value:
        case PacketBits(at, width):
            return packet.get((at, width))
        case Constant(number):
            return number
        case Computed("?", left, right, condition) if left is not None and condition is not None:
            return evaluate(packet, left if evaluate(packet, condition) else right)
        case Computed(op, None, right):
            return _unary(op, evaluate(packet, right))
        case Computed(op, left, right) if left is not None and op in OPERATIONS:
            return int(OPERATIONS[op](evaluate(packet, left), evaluate(packet, right)))
    raise UnknownError


def _unary(op: str, value: int) -> int:
    match op:
        case "not":
            return int(not value)
        case "d2b":
            return int(bool(value))
        case "b2d":
            return value
        case "~":
            return ~value
    raise UnknownError


def evaluated(packet: ReadablePacket, value: Value) -> int | None:
    """Return the number that a value is in a packet, None if it depends on more than the packet."""
    try:
        return evaluate(packet, value)
    except UnknownError:
        return None


def depends(value: Value) -> bool:
    """Return whether a value depends on the packet's bits."""
    return next(places_in(value), None) is not None
