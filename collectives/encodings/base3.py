"""Five elements per byte, where elements are -M, 0 and M, and runs of zeros in one byte.

    bytes 0:4     M (float32); 0xFFFFFFFF: the elements follow as they are in memory
    0 to 242      five elements, each value / M + 1 a digit to the base 3, the highest first
    243 to 255    2 to 14 bytes 121, each of which is five zeros

Source:
    Lim, Andersen and Kaminsky, "3LC: lightweight and effective traffic compression for distributed
    machine learning", MLSys 2019: quartic and zero-run encoding. The base and the runs are those of
    a survey; the order of digits is chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.packing import ArrayCodec, Bytes, plain
from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ProtocolError

ZEROS = 121
"""The byte of five zeros."""

_PLAIN = np.uint32(0xFFFFFFFF)
_FIRST_RUN, _LONGEST = 243, 14


@dataclass(frozen=True)
class Base3(ArrayCodec):
    """The codec of ternary values with long runs of zeros."""

    name: ClassVar[str] = "base3"

    def pack(self, values: Array) -> Bytes:
        """Return ternary values packed; values of another kind go as they are, behind a mark."""
        words = values.view(np.uint32)
        size = words & np.uint32(0x7FFFFFFF)
        unit = size.max(initial=0)
        is_zero = words == 0
        if not ((size == unit) & (size != 0) | is_zero).all():
            return np.concatenate([np.array([_PLAIN]).view(np.uint8), values.view(np.uint8)])
        padded = -(-values.size // 5) * 5
        digits = np.ones(padded, np.uint8)
        digits[: values.size] += np.sign(values).astype(np.int8).view(np.uint8)
        five = digits.reshape(-1, 5)
        data = five[:, 0].copy()
        for place in range(1, 5):
            data *= np.uint8(3)
            data += five[:, place]
        short = np.empty(data.size, np.uint8)
        count = int(_squeeze(data, short))
        return np.concatenate([np.array([unit]).view(np.uint8), short[:count]])

    def unpack(self, data: Bytes, elements: int) -> Array:
        """Return the float32 values of a message.

        Raises:
            ProtocolError: If the message has no header, or holds another number of elements.
        """
        if data.size < 4:
            raise ProtocolError(f"base3: needs a header, got {format_count(data.size, 'byte')}")
        unit = data[:4].copy().view(np.uint32)[0]
        if unit == _PLAIN:
            return plain(data[4:], elements, "base3").view(np.float32)
        long = np.empty(-(-elements // 5), np.uint8)
        if int(_stretch(np.ascontiguousarray(data[4:]), long)) != long.size:
            raise ProtocolError(
                f"base3: must hold {format_count(elements, 'element')}, got more or fewer"
            )
        values: Array = _DIGITS[long].reshape(-1)[:elements] * unit.view(np.float32)
        return values


def _digits() -> Array:
    code = np.arange(243)[:, None] // 3 ** np.arange(4, -1, -1) % 3
    return (code - 1).astype(np.float32)


_DIGITS = _digits()


@compiled(types.int64(types.uint8[::1], types.uint8[::1]))
def _squeeze(data: Bytes, out: Bytes) -> int:
    """Write bytes with runs of zeros in one; return their number."""
    at, i = 0, 0
    while i < len(data):
        run = 0
        while run < _LONGEST and i + run < len(data) and data[i + run] == ZEROS:
            run += 1
        if run > 1:
            out[at] = np.uint8(_FIRST_RUN + run - 2)
            i += run
        else:
            out[at] = data[i]
            i += 1
        at += 1
    return at


@compiled(types.int64(types.uint8[::1], types.uint8[::1]))
def _stretch(data: Bytes, out: Bytes) -> int:
    """Write bytes with runs in full; return their number, or -1 if they don't fit."""
    at = 0
    for i in range(len(data)):
        run = 1
        if data[i] >= _FIRST_RUN:
            run = int(data[i]) - _FIRST_RUN + 2
        if at + run > len(out):
            return -1
        for _ in range(run):
            out[at] = np.uint8(ZEROS) if run > 1 else data[i]
            at += 1
    return at


CODEC = Base3()
