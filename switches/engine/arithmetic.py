"""Operators of P4 that are not operators of `uint64`, for generated code to call.

BMv2 computes with unbounded integers; the generator proves (by the ranges of the operands)
where 64 bits hold the same value, and calls these with `uint64`, or `int64` where it says so.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Fields
from ringleaf.core.chance import draw64
from ringleaf.core.compiled import inline

_U0 = np.uint64(0)
_U32 = np.uint64(32)
_U63 = np.uint64(63)
_U64 = np.uint64(64)
_LOW_16 = np.uint64(0xFFFF)
_U16 = np.uint64(16)


@inline
def shift_left(value: np.uint64, amount: np.uint64) -> np.uint64:
    """Return `value << amount` modulo 2^64, for any amount."""
    return value << amount if amount < _U64 else _U0


@inline
def shift_right(value: np.uint64, amount: np.uint64) -> np.uint64:
    """Return `value >> amount`, for any amount."""
    return value >> amount if amount < _U64 else _U0


@inline
def shift_right_signed(value: np.int64, amount: np.uint64) -> np.int64:
    """Return `value >> amount` with the sign kept, for any amount."""
    return value >> np.int64(amount if amount < _U63 else _U63)


@inline
def as_signed(value: np.uint64, width: int) -> np.int64:
    """Return the low `width` bits of `value`, read as two's complement."""
    return np.int64(value << np.uint64(64 - width)) >> (64 - width)


@inline
def store_signed(value: np.int64, low: np.int64, high: np.int64, width: int) -> np.int64:
    """Return a value as BMv2 stores it in a signed field: outside of [low, high] it is wrapped.

    `high` is 2^width - 1, so that a field can be more than its greatest signed number.
    """
    return value if low <= value <= high else as_signed(np.uint64(value), width)


@inline
def divide(left: np.uint64, right: np.uint64) -> np.uint64:
    """Return the quotient, and 0 for a divisor of 0 (BMv2 aborts there)."""
    return left // right if right != _U0 else _U0


@inline
def modulo(left: np.uint64, right: np.uint64) -> np.uint64:
    """Return the remainder, and 0 for a divisor of 0 (BMv2 aborts there)."""
    return left % right if right != _U0 else _U0


@inline
def clamp(value: np.int64, low: np.int64, high: np.int64) -> np.int64:
    """Return the value cut to the range, for saturating additions of `int<n>`."""
    return low if value < low else (high if value > high else value)


@inline
def fold16(total: np.uint64) -> np.uint64:
    """Return the ones' complement sum of the 16-bit words of `total` (RFC 1071)."""
    total = (total >> _U32) + (total & np.uint64(0xFFFFFFFF))
    total = (total >> _U16) + (total & _LOW_16)
    total = (total >> _U16) + (total & _LOW_16)
    return (total >> _U16) + (total & _LOW_16)


@inline
def draw(fields: Fields, at: int, low: np.uint64, high: np.uint64) -> np.uint64:
    """Return a random number in [low, high]."""
    z = draw64(fields, at)
    span = high - low + np.uint64(1)
    return low + z % span if span != _U0 else z
