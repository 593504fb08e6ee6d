"""Elias' omega codes of levels: of those that are not zero with their distances, or of each.

A number k >= 1 is written as groups of bits: before each group stands that with its length less
one, down to a group of two bits; a zero ends the code. So 1 is 0, 2 is 100, 4 is 101000. One
more distance ends the message, to the place behind the last element.
"""

from __future__ import annotations

import numpy as np
from numba import types

from ringleaf.collectives.compress.packing import Bytes
from ringleaf.compiled import compiled, inline
from ringleaf.errors import ProtocolError
from ringleaf.tensors import Array


def elias_bytes(levels: Array, most: int, *, is_sparse: bool) -> Bytes | None:
    """Return the codes of levels (int32), padded with zeros; None if they take `most` bytes."""
    out = np.zeros(most + 32, np.uint8)
    write = _write if is_sparse else _write_each
    bits = int(write(levels, out, 8 * most))
    return None if bits < 0 or bits > 8 * (most - 1) else out[: (bits + 7) // 8].copy()


def elias_levels(data: Bytes, elements: int, *, is_sparse: bool) -> Array:
    """Return the levels (int32) that `data` encodes.

    Raises:
        ProtocolError: If it does not encode so many.
    """
    levels = np.zeros(elements, np.int32)
    read = _read if is_sparse else _read_each
    if read(np.ascontiguousarray(data), levels) < 0:
        raise ProtocolError(f"levels: must be Elias codes of {elements} elements, got others")
    return levels


@inline
def _put(out: Bytes, at: int, value: int, width: int) -> int:
    """Write `width` bits of a number, the highest first; return the place behind them."""
    for place in range(width - 1, -1, -1):
        if value >> place & 1:
            out[at >> 3] |= np.uint8(1 << (at & 7))
        at += 1
    return at


@inline
def _width(value: int) -> int:
    width = 0
    while value:
        value >>= 1
        width += 1
    return width


@inline
def _omega(out: Bytes, at: int, number: int) -> int:
    """Write a number >= 1 below 2^40; return the place behind it."""
    a, b, c, d = 0, 0, 0, 0  # its groups, the last one first
    value, groups = number, 0
    while value > 1:
        a, b, c, d = value, a, b, c
        groups += 1
        value = _width(value) - 1
    for _ in range(groups):
        at = _put(out, at, a, _width(a))
        a, b, c = b, c, d
    return at + 1


@compiled(types.int64(types.int32[::1], types.uint8[::1], types.int64))
def _write(levels: Array, out: Bytes, most: int) -> int:
    """Write all levels; return the number of bits, or -1 if they are more than `most`."""
    at, last = 0, -1
    for i in range(len(levels)):
        level = int(levels[i])
        if level != 0:
            at = _omega(out, at, i - last)
            if at > most:
                return -1
            if level < 0:
                out[at >> 3] |= np.uint8(1 << (at & 7))
            at = _omega(out, at + 1, abs(level))
            last = i
            if at > most:
                return -1
    return _omega(out, at, len(levels) - last)


@compiled(types.int64(types.int32[::1], types.uint8[::1], types.int64))
def _write_each(levels: Array, out: Bytes, most: int) -> int:
    """Write each level; return the number of bits, or -1 if they are more than `most`."""
    at = 0
    for i in range(len(levels)):
        level = int(levels[i])
        at = _omega(out, at, abs(level) + 1)
        if level != 0:
            if level < 0:
                out[at >> 3] |= np.uint8(1 << (at & 7))
            at += 1
        if at > most:
            return -1
    return at


@inline
def _next(data: Bytes, at: int) -> tuple[int, int]:
    """Read a number; return it, and the place behind it, which is -1 if the data end before."""
    end, number = 8 * len(data), 1
    while True:
        if at < 0 or at >= end:
            return 0, -1
        if not data[at >> 3] >> (at & 7) & 1:
            return number, at + 1
        width, value = number + 1, 0
        if width > 40 or at + width > end:
            return 0, -1
        for _ in range(width):
            value = value << 1 | int(data[at >> 3] >> (at & 7) & 1)
            at += 1
        number = value


@compiled(types.int64(types.uint8[::1], types.int32[::1]))
def _read(data: Bytes, levels: Array) -> int:
    """Read all levels; return 0, or -1 if the data are no such codes."""
    at, i = 0, -1
    while True:
        gap, at = _next(data, at)
        if at < 0:
            return -1
        i += gap
        if i >= len(levels):
            return 0 if i == len(levels) else -1
        if at >= 8 * len(data):
            return -1
        is_negative = data[at >> 3] >> (at & 7) & 1
        size, at = _next(data, at + 1)
        if at < 0 or size > 1 << 22:
            return -1
        levels[i] = -size if is_negative else size


@compiled(types.int64(types.uint8[::1], types.int32[::1]))
def _read_each(data: Bytes, levels: Array) -> int:
    """Read each level; return 0, or -1 if the data are no such codes."""
    at = 0
    for i in range(len(levels)):
        size, at = _next(data, at)
        if at < 0 or size > (1 << 22) + 1:
            return -1
        levels[i] = size - 1
        if size > 1:
            if at >= 8 * len(data):
                return -1
            if data[at >> 3] >> (at & 7) & 1:
                levels[i] = 1 - size
            at += 1
    return 0
