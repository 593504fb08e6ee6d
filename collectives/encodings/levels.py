"""Whole multiples of one unit, with few bits each or in Elias codes.

    bytes   packed                          Elias                           as they are
    0:4     unit, its lowest byte: width    its lowest byte: 0xFD or 0xFE   0xFFFFFFFF
    4:      levels + 2^(width-1)            Elias' omega codes              float32 values

The unit is a float32 whose lowest byte is zero, the largest of which all elements are multiples
(found from them, so sums of tensors with one unit are written well, too). A packed level has the
least width that holds all, 2 to 24 bits. Elias' codes are of the distance to the next element that
is not zero, its sign, and its magnitude (0xFE); or, if many are not zero, of each magnitude plus
one, and a sign (0xFD). A shorter form is taken if there is one; what is no multiple of a unit goes
as it is.

Source:
    Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD: communication-efficient SGD via gradient
    quantization and encoding", NIPS 2017, appendix A.2. Elias, "Universal codeword sets and
    representations of the integers", IEEE Transactions on Information Theory 21(2), 1975: omega.
    The paper writes the first distance and then levels; lengths and headers are chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.packing import (
    ArrayCodec,
    Bytes,
    bit_bytes,
    pack_bits,
    plain,
    unpack_bits,
)
from ringleaf.collectives.compression.rounding import LOWEST, find_unit
from ringleaf.core.tensors import Array
from ringleaf.core.units import format_count
from ringleaf.errors import ProtocolError

HEADER_BYTES = 4
WIDEST = 24
_PLAIN = np.uint32(0xFFFFFFFF)
_EACH, _SPARSE = 0xFD, 0xFE
_LOWEST = np.uint32(LOWEST)
_DENSE = 0.3  # share of elements that are not zero from which on each has a code
_MORE_BITS = 3  # that a level of 1 takes in Elias' code, more than a zero


@dataclass(frozen=True)
class Levels(ArrayCodec):
    """The codec of multiples of a unit."""

    name: ClassVar[str] = "levels"

    def pack(self, values: Array) -> Bytes:
        """Return levels packed or in Elias codes, the shorter one, or the values as they are."""
        pair = find_levels(values)
        if pair is None:
            return np.concatenate([_word(_PLAIN), values.view(np.uint8)])
        unit, levels = pair
        width = width_for(max(int(levels.max(initial=0)), -int(levels.min(initial=0))))
        head = np.float32(unit).view(np.uint32)
        size = bit_bytes(levels.size, width)
        filled = int(np.count_nonzero(levels))
        is_sparse = filled < _DENSE * levels.size
        if is_sparse or levels.size + _MORE_BITS * filled < width * levels.size:
            from ringleaf.collectives.compression.elias import elias_bytes  # compiles

            shorter = elias_bytes(levels, size, is_sparse=is_sparse)
            if shorter is not None:
                tag = _SPARSE if is_sparse else _EACH
                return np.concatenate([_word(head | np.uint32(tag)), shorter])
        if size >= values.nbytes:
            return np.concatenate([_word(_PLAIN), values.view(np.uint8)])
        numbers = levels + np.int32(1 << (width - 1))
        return np.concatenate([_word(head | np.uint32(width)), pack_bits(numbers, width)])

    def unpack(self, data: Bytes, elements: int) -> Array:
        """Return the float32 values of a message: levels times the unit in its header.

        Raises:
            ProtocolError: If the message has no header.
        """
        if data.size < HEADER_BYTES:
            raise ProtocolError(f"levels: needs a header, got {format_count(data.size, 'byte')}")
        head, body = data[:HEADER_BYTES].copy().view(np.uint32)[0], data[HEADER_BYTES:]
        if head == _PLAIN:
            return plain(body[: 4 * elements], elements, "levels").view(np.float32)
        width, unit = int(head & _LOWEST), (head & ~_LOWEST).view(np.float32)
        if width in (_EACH, _SPARSE):
            from ringleaf.collectives.compression.elias import elias_levels

            levels = elias_levels(body, elements, is_sparse=width == _SPARSE)
        else:
            levels = _packed_levels(body, elements, width)
        values: Array = levels.astype(np.float32) * unit
        return values


def _packed_levels(body: Bytes, elements: int, width: int) -> Array:
    if not 1 < width <= WIDEST:
        raise ProtocolError(f"levels: width must be in [2, {WIDEST}], got {width}")
    size = bit_bytes(elements, width)
    if body.size < size:
        raise ProtocolError(
            f"levels: {format_count(elements, 'level')} of {format_count(width, 'bit')} take "
            f"{format_count(size, 'byte')}, got {body.size}"
        )
    return unpack_bits(body[:size], elements, width) - np.int32(1 << (width - 1))


def width_for(largest: int) -> int:
    """Return the bits of a level: from -largest to largest, and at least 2."""
    return max((2 * largest).bit_length(), 2)


def find_levels(values: Array) -> tuple[np.float32, Array] | None:
    """Return the unit and each element's multiple of it (int32); None if there is no such unit."""
    levels = np.empty(values.size, np.int32)
    unit = find_unit(values, levels)
    return (unit, levels) if unit else None


def _word(word: np.uint32) -> Bytes:
    return np.array([word], np.uint32).view(np.uint8)


LEVELS = CODEC = Levels()
