"""Finds bits that give an expression a value, by inverting computations of parsers and conditions.

They are not found for every expression and every value; callers must check whether they were.
"""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.switches.fuzz.values import (
    OPERATIONS,
    ChangeablePacket,
    Computed,
    PacketBits,
    Value,
    depends,
    evaluated,
    shift,
)
from ringleaf.switches.source import Constant

_LONGEST = 4096  # bits of a shift


def drive(packet: ChangeablePacket, value: Value, target: int, mask: int = -1) -> bool:
    """Change a packet so that a value's bits in a mask are those of `target`, if possible.

    Returns:
        Whether they are so now. If not, the packet may have changed all the same.
    """
    _push(packet, value, target, mask)
    now = evaluated(packet, value)
    return now is not None and (now ^ target) & mask == 0


def _push(packet: ChangeablePacket, value: Value, target: int, mask: int) -> None:
    """Change bits of a packet so that a value's bits in a mask come closer to the target's."""
    match value:
        case PacketBits(at, width):
            packet.put((at, width), target, mask)
        case Computed("?", left, right, condition) if left is not None and condition is not None:
            known = evaluated(packet, condition)
            if known is not None:
                _push(packet, left if known else right, target, mask)
        case Computed("~", None, right):
            _push(packet, right, ~target, mask)
        case Computed("b2d", None, right):
            _push(packet, right, target, mask)
        case Computed(op, left, right) if left is not None and op in _INVERSES:
            _push_operands(packet, op, left, right, target, mask)
        case Computed(op) if op in _TRUTHS:
            _push_truth(packet, value, bool(target))


def _push_operands(
    packet: ChangeablePacket, op: str, left: Value, right: Value, target: int, mask: int
) -> None:
    """Change one operand, given the other as it is; for bitwise operations, each in turn."""
    for side, other, flipped in ((left, right, False), (right, left, True)):
        number = evaluated(packet, other)
        if number is not None and depends(side):
            _INVERSES[op](packet, side, number, flipped, target, mask)
            if op not in ("&", "|"):
                return


_TRUTHS = ("==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b")


def _and(
    packet: ChangeablePacket, side: Value, other: int, _: bool, target: int, mask: int
) -> None:
    _push(packet, side, target, mask & other)


def _or(packet: ChangeablePacket, side: Value, other: int, _: bool, target: int, mask: int) -> None:
    """Set the bits that the other side leaves open; in `a << 8 | b`, each side sets its own."""
    reach = _reach(side)
    _push(packet, side, target, mask & reach & ~other if reach >= 0 else mask & ~other)


def _xor(
    packet: ChangeablePacket, side: Value, other: int, _: bool, target: int, mask: int
) -> None:
    _push(packet, side, target ^ other, mask)


def _plus(
    packet: ChangeablePacket, side: Value, other: int, _: bool, target: int, mask: int
) -> None:
    _push(packet, side, (target & mask) - other, mask)


def _minus(
    packet: ChangeablePacket, side: Value, other: int, flipped: bool, target: int, mask: int
) -> None:
    _push(packet, side, other - target if flipped else target + other, mask)


def _left(
    packet: ChangeablePacket, side: Value, other: int, flipped: bool, target: int, mask: int
) -> None:
    if not flipped:
        by = shift(other, _LONGEST)
        _push(packet, side, target >> by, mask >> by)


def _right(
    packet: ChangeablePacket, side: Value, other: int, flipped: bool, target: int, mask: int
) -> None:
    if not flipped and 0 <= other < _LONGEST:
        _push(packet, side, target << other, mask << other)


_INVERSES: dict[str, Callable[[ChangeablePacket, Value, int, bool, int, int], None]] = {
    **{"&": _and, "|": _or, "^": _xor, "+": _plus, "-": _minus, "<<": _left, ">>": _right}
}


def _reach(value: Value) -> int:
    """Return a mask of the bits that a value may have; -1 if that is not known."""
    match value:
        case PacketBits(_, width):
            return (1 << width) - 1
        case Constant(number) if number >= 0:
            return number
        case Computed("&", left, right) if left is not None:
            return _reach(left) & _reach(right)
        case Computed("|" | "^", left, right) if left is not None:
            return _reach(left) | _reach(right)
        case Computed("<<", left, Constant(by)) if left is not None and by < _LONGEST:
            return _reach(left) << by
        case Computed(">>", left, Constant(by)) if left is not None:
            return _reach(left) >> min(by, _LONGEST)
    return -1


def _push_truth(packet: ChangeablePacket, value: Value, target: bool) -> None:
    match value:
        case Computed("not", None, right):
            _push_truth(packet, right, not target)
        case Computed("d2b" | "b2d", None, right):
            _push_truth(packet, right, target)
        case Computed("and" | "or" as op, left, right) if left is not None:
            _push_truth(packet, left, target)
            if target == (op == "and") or evaluated(packet, left) is None:  # both, or neither
                _push_truth(packet, right, target)
        case Computed("==" | "!=" | "<" | "<=" | ">" | ">=" as op, left, right) if left is not None:
            _push_comparison(packet, op if target else _OPPOSITE[op], left, right)
        case _:
            if bool(evaluated(packet, value)) is not target:
                _push(packet, value, int(target), 1 if target else -1)


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _push_comparison(packet: ChangeablePacket, op: str, left: Value, right: Value) -> None:
    """Set a side to a value that just makes a comparison true, the left one if possible."""
    mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
    for side, other, how in ((left, right, op), (right, left, mirrored)):
        number = evaluated(packet, other)
        if number is None or not depends(side):
            continue
        current = evaluated(packet, side)
        if current is not None and OPERATIONS[how](current, number):
            return
        beside = {"<": -1, ">": 1, "!=": 1 if number == 0 else -1}.get(how, 0)
        if drive(packet, side, max(number + beside, 0)):
            return
