"""Codecs on arrays, and whole numbers of a few bits as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.codec import OnArrays
from ringleaf.core.tensors import Array, ElementType
from ringleaf.core.units import format_count
from ringleaf.errors import ProtocolError

Bytes = Array
"""(bytes,) uint8."""


@dataclass(frozen=True)
class ArrayCodec(OnArrays):
    """A lossless codec of float32, which writes some contents in few bytes, and all others, too.

    Decoding gives the same bits.
    """

    name: ClassVar[str] = ""
    is_lossless: ClassVar[bool] = True
    most_extra: ClassVar[int] = 16
    """The bytes that a message takes at most beyond the elements themselves."""

    def pack(self, values: Array) -> Bytes:
        """Return the bytes of a flat array, which is not changed."""
        raise NotImplementedError

    def unpack(self, data: Bytes, elements: int) -> Array:
        """Return the float32 elements that `data` encodes.

        Raises:
            ProtocolError: If `data` is not a valid encoding of them.
        """
        raise NotImplementedError

    def encode_array(self, values: Array) -> Bytes:
        """Return the bytes of a flat array; of another type than float32, as in memory."""
        if values.dtype != np.float32:
            return values.copy().view(np.uint8)
        return self.pack(np.ascontiguousarray(values))

    def decode_array(self, data: Bytes, elements: int, dtype: ElementType) -> Array:
        """Return the elements that the whole of `data` encodes.

        Raises:
            ProtocolError: If `data` is not a valid encoding of them.
        """
        if dtype != np.float32:
            return plain(data, elements, self.name, dtype.itemsize).view(dtype)
        return self.unpack(data, elements)

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        """Return the largest number of bytes that `elements` elements can take."""
        return elements * item_bytes + self.most_extra


def plain(data: Bytes, elements: int, where: str, item_bytes: int = 4) -> Bytes:
    """Return a copy of bytes that must be so many elements as they are in memory.

    Raises:
        ProtocolError: If there are more or fewer bytes.
    """
    if data.size != elements * item_bytes:
        raise ProtocolError(
            f"{where}: {format_count(elements, 'element')} of {format_count(item_bytes, 'byte')} "
            f"take {format_count(elements * item_bytes, 'byte')}, got {data.size}"
        )
    return data.copy()


def bit_bytes(elements: int, width: int) -> int:
    """Return the bytes that so many numbers of `width` bits take."""
    return (elements * width + 7) // 8


def pack_bits(numbers: Array, width: int) -> Bytes:
    """Return whole numbers below 2^width one after the other, each with its lowest bit first."""
    if width == 1:
        return np.packbits(numbers.astype(np.uint8), bitorder="little")
    if width in (2, 4):
        return _pack_evenly(numbers.astype(np.uint8), width)
    if width in (8, 16):
        whole: Bytes = numbers.astype(f"<u{width // 8}").view(np.uint8)
        return whole
    if width < 8:
        return _pack_eights(numbers.astype(np.uint8), width)
    bits = (numbers.astype(np.uint32)[:, None] >> np.arange(width, dtype=np.uint32)) & 1
    return np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little")


def unpack_bits(data: Bytes, elements: int, width: int) -> Array:
    """Return the whole numbers (int32) that `pack_bits` wrote; `data` has as many as it needs."""
    if width == 1:
        return np.unpackbits(data, count=elements, bitorder="little").astype(np.int32)
    if width in (2, 4):
        return _unpack_evenly(data, elements, width)
    if width in (8, 16):
        return data.copy().view(f"<u{width // 8}").astype(np.int32)
    if width < 8:
        return _unpack_eights(data, elements, width)
    bits = np.unpackbits(data, count=elements * width, bitorder="little").reshape(-1, width)
    weights = np.left_shift(1, np.arange(width), dtype=np.int32)
    numbers: Array = (bits.astype(np.int32) * weights).sum(axis=1, dtype=np.int32)
    return numbers


def _pack_evenly(numbers: Array, width: int) -> Bytes:
    """Pack numbers of which a byte holds several, without taking them apart into bits."""
    each = 8 // width
    rows = np.zeros((-(-numbers.size // each), each), np.uint8)
    rows.reshape(-1)[: numbers.size] = numbers
    packed = rows[:, 0].copy()
    for place in range(1, each):
        packed |= rows[:, place] << np.uint8(width * place)
    return packed


def _unpack_evenly(data: Bytes, elements: int, width: int) -> Array:
    each, mask = 8 // width, np.uint8((1 << width) - 1)
    rows = np.empty((data.size, each), np.int32)
    for place in range(each):
        rows[:, place] = data >> np.uint8(width * place) & mask
    return rows.reshape(-1)[:elements]


def _pack_eights(numbers: Array, width: int) -> Bytes:
    """Pack numbers, eight of which are `width` whole bytes, by way of 64-bit words."""
    rows = np.zeros((-(-numbers.size // 8), 8), np.uint8)
    rows.reshape(-1)[: numbers.size] = numbers
    words = np.zeros(len(rows), "<u8")
    for place in range(8):
        words |= rows[:, place].astype("<u8") << np.uint64(width * place)
    packed = words.view(np.uint8).reshape(-1, 8)[:, :width].reshape(-1)
    return packed[: bit_bytes(numbers.size, width)]


def _unpack_eights(data: Bytes, elements: int, width: int) -> Array:
    padded = np.zeros((-(-elements // 8), width), np.uint8)
    padded.reshape(-1)[: data.size] = data
    rows = np.zeros((len(padded), 8), np.uint8)
    rows[:, :width] = padded
    words, mask = rows.view("<u8").reshape(-1), np.uint64((1 << width) - 1)
    numbers = np.empty((len(words), 8), np.int32)
    for place in range(8):
        numbers[:, place] = words >> np.uint64(width * place) & mask
    return numbers.reshape(-1)[:elements]
