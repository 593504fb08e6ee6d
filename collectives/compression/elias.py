"""Elias' omega codes of levels: of those that are not zero with their distances, or of each.

A number k >= 1 is written as groups of bits: before each group stands that with its length less
one, down to a group of two bits; a zero ends the code. So 1 is 0, 2 is 100, 4 is 101000. One
more distance ends the message, to the place behind the last element.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ringleaf.collectives.compression.packing import Bytes
from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, inline
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ProtocolError

_SMALL = 256
"""Numbers below have their codes in a table."""
_SHORT = 12
"""Codes of at most so many bits are read from a table."""
_0, _1, _63 = (np.uint64(number) for number in (0, 1, 63))
_CODES = types.uint64[::1]


def elias_bytes(levels: Array, most: int, *, is_sparse: bool) -> Bytes | None:
    """Return the codes of levels (int32), padded with zeros; None if they take `most` bytes."""
    out = np.zeros(most // 8 + 4, "<u8")
    write = _write if is_sparse else _write_each
    bits = int(write(levels, *_written(), out, 8 * most))
    codes: Bytes = out.view(np.uint8)
    return None if bits < 0 or bits > 8 * (most - 1) else codes[: (bits + 7) // 8].copy()


def elias_levels(data: Bytes, elements: int, *, is_sparse: bool) -> Array:
    """Return the levels (int32) that `data` encodes.

    Raises:
        ProtocolError: If it does not encode so many.
    """
    levels = np.zeros(elements, np.int32)
    words = np.zeros(data.size // 8 + 2, "<u8")
    words.view(np.uint8)[: data.size] = data
    read = _read if is_sparse else _read_each
    if read(words, 8 * data.size, *_known(), levels) < 0:
        raise ProtocolError(
            f"levels: must be Elias codes of {format_count(elements, 'element')}, got others"
        )
    return levels


@cache
def _written() -> tuple[Array, Array]:
    """Return the codes (uint64) of small numbers, and their bits (int64)."""
    codes = [(_0, 0), *(_omega(number) for number in range(1, _SMALL))]
    return np.array([code for code, _ in codes], np.uint64), np.array([bits for _, bits in codes])


@cache
def _known() -> tuple[Array, Array]:
    """Return the number (int32) with which the next bits begin, and its code's bits; or 0 and 0."""
    numbers, widths = np.zeros(1 << _SHORT, np.int32), np.zeros(1 << _SHORT, np.int32)
    for number, (code, bits) in enumerate(zip(*_written(), strict=True)):
        if 0 < bits <= _SHORT:
            numbers[int(code) :: 1 << int(bits)] = number
            widths[int(code) :: 1 << int(bits)] = bits
    return numbers, widths


@inline
def _width(value: int) -> int:
    width = 0
    while value:
        value >>= 1
        width += 1
    return width


@inline
def _omega(number: int) -> tuple[np.uint64, int]:
    """Return the code of a number >= 1 below 2^40, its first bit the lowest, and its bits."""
    a, b, c, d = 0, 0, 0, 0  # its groups, the last one first
    value, groups = number, 0
    while value > 1:
        a, b, c, d = value, a, b, c
        groups += 1
        value = _width(value) - 1
    code, bits = _0, 0
    for _ in range(groups):
        for place in range(_width(a) - 1, -1, -1):
            code |= np.uint64(a >> place & 1) << np.uint64(bits)
            bits += 1
        a, b, c = b, c, d
    return code, bits + 1


@inline
def _code(number: int, codes: Array, widths: Array) -> tuple[np.uint64, int]:
    if number < _SMALL:
        return codes[number], widths[number]
    return _omega(number)


@inline
def _put(out: Array, at: int, code: np.uint64, bits: int) -> int:
    """Write up to 63 bits; return the place behind them. What is there is zero."""
    word, place = at >> 6, np.uint64(at & 63)
    out[word] |= code << place
    out[word + 1] = code >> _1 >> (_63 - place)
    return at + bits


_WRITE = types.int64(types.int32[::1], _CODES, types.int64[::1], types.uint64[::1], types.int64)


@compiled(_WRITE)
def _write(levels: Array, codes: Array, widths: Array, out: Array, most: int) -> int:
    """Write all levels; return the number of bits, or -1 if they are more than `most`."""
    at, last = 0, -1
    for i in range(len(levels)):
        level = int(levels[i])
        if level != 0:
            code, bits = _code(i - last, codes, widths)
            at = _put(out, at, code | np.uint64(level < 0) << np.uint64(bits), bits + 1)
            if at > most:
                return -1
            code, bits = _code(abs(level), codes, widths)
            at = _put(out, at, code, bits)
            last = i
            if at > most:
                return -1
    code, bits = _code(len(levels) - last, codes, widths)
    return _put(out, at, code, bits)


@compiled(_WRITE)
def _write_each(levels: Array, codes: Array, widths: Array, out: Array, most: int) -> int:
    """Write each level; return the number of bits, or -1 if they are more than `most`."""
    at = 0
    for i in range(len(levels)):
        level = int(levels[i])
        code, bits = _code(abs(level) + 1, codes, widths)
        at = _put(out, at, code | np.uint64(level < 0) << np.uint64(bits), bits + int(level != 0))
        if at > most:
            return -1
    return at


@inline
def _window(words: Array, at: int) -> np.uint64:
    """Return the 64 bits from a place on."""
    word, place = at >> 6, np.uint64(at & 63)
    window: np.uint64 = words[word] >> place | words[word + 1] << _1 << (_63 - place)
    return window


@inline
def _bit(words: Array, at: int) -> int:
    return int(words[at >> 6] >> np.uint64(at & 63) & _1)


@inline
def _next(words: Array, end: int, at: int) -> tuple[int, int]:
    """Read a number; return it, and the place behind it, which is -1 if the data end before."""
    number = 1
    while True:
        if at >= end:
            return 0, -1
        if not _bit(words, at):
            return number, at + 1
        width, value = number + 1, 0
        if width > 40 or at + width > end:
            return 0, -1
        for _ in range(width):
            value = value << 1 | _bit(words, at)
            at += 1
        number = value


@inline
def _number(words: Array, end: int, at: int, numbers: Array, widths: Array) -> tuple[int, int]:
    """Read a number as `_next`, by the table if its code is short."""
    short = np.int64(_window(words, at) & np.uint64((1 << _SHORT) - 1)) if at < end else 0
    bits = int(widths[short])
    if bits == 0 or at + bits > end:
        return _next(words, end, at)
    return int(numbers[short]), at + bits


_READ = types.int64(
    types.uint64[::1], types.int64, types.int32[::1], types.int32[::1], types.int32[::1]
)


@compiled(_READ)
def _read(words: Array, end: int, numbers: Array, widths: Array, levels: Array) -> int:
    """Read all levels; return 0, or -1 if the data are no such codes."""
    at, i = 0, -1
    while True:
        gap, at = _number(words, end, at, numbers, widths)
        if at < 0:
            return -1
        i += gap
        if i >= len(levels):
            return 0 if i == len(levels) else -1
        if at >= end:
            return -1
        sign = 1 - 2 * _bit(words, at)
        size, at = _number(words, end, at + 1, numbers, widths)
        if at < 0 or size > 1 << 22:
            return -1
        levels[i] = sign * size


@compiled(_READ)
def _read_each(words: Array, end: int, numbers: Array, widths: Array, levels: Array) -> int:
    """Read each level; return 0, or -1 if the data are no such codes."""
    at = 0
    for i in range(len(levels)):
        size, at = _number(words, end, at, numbers, widths)
        if at < 0 or size > (1 << 22) + 1:
            return -1
        if size > 1 and at >= end:
            return -1
        levels[i] = (size - 1) * (1 - 2 * _bit(words, at))
        at += int(size > 1)
    return 0
