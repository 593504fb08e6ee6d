"""A bit per element, where elements have two values only.

    values                bytes
    +1 and -1             the bits
    -v and +v             v (float32), the bits
    any two               the value of 0, that of 1 (float32), the bits
    others                as `levels` writes them, or as they are in memory

Bits are set for the value of 1, the positive one of a pair; the first element's is the lowest of
the first byte. A message's length tells its form, so there is no header; where another form would
have the length of one of the first three, a zero byte follows.

Source:
    Seide, Fu, Droppo, Li and Yu, "1-bit stochastic gradient descent and its application to
    data-parallel distributed training of speech DNNs", Interspeech 2014. Bernstein, Wang,
    Azizzadenesheli and Anandkumar, "signSGD: compressed optimisation for non-convex problems", ICML
    2018. They have one or two values per tensor; the form for sums is chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.packing import ArrayCodec, Bytes, bit_bytes
from ringleaf.collectives.encodings.levels import LEVELS
from ringleaf.core.tensors import Array

_SIGN = np.uint32(1 << 31)
_ONE = np.float32(1).view(np.uint32)
_FORMS = (0, 4, 8)  # bytes of values before the bits


@dataclass(frozen=True)
class Signs(ArrayCodec):
    """The codec of elements that have two values."""

    name: ClassVar[str] = "signs"

    def pack(self, values: Array) -> Bytes:
        """Return a bit per element if there are two values only, or else the form of `levels`."""
        words = values.view(np.uint32)
        two = _two(words)
        if two is None:
            other = LEVELS.pack(values)
            lengths = [bit_bytes(values.size, 1) + form for form in _FORMS]
            while other.size in lengths:
                other = np.append(other, np.uint8(0))
            return other
        bits = np.packbits(words == two[1], bitorder="little")
        return np.concatenate([_header(*two), bits])

    def unpack(self, data: Bytes, elements: int) -> Array:
        """Return the float32 values of a message, whose length tells its form."""
        form = data.size - bit_bytes(elements, 1)
        if form not in _FORMS or not elements:
            return LEVELS.unpack(data, elements)
        bits = np.unpackbits(data[form:], count=elements, bitorder="little").astype(np.bool_)
        head = data[:form].copy().view(np.uint32)
        high = head[-1] if form else _ONE
        low = head[0] if form == 8 else high ^ _SIGN
        return np.where(bits, high, low).astype(np.uint32).view(np.float32)


def _two(words: Array) -> tuple[np.uint32, np.uint32] | None:
    """Return the values of 0 and of 1, if there are no others."""
    if not words.size:
        return None
    first = words[0]
    others = words != first
    at = int(others.argmax())
    second = words[at] if others[at] else first ^ _SIGN
    if not bool(((words == second) == others).all()):
        return None
    if first ^ second == _SIGN:
        return max(first, second), min(first, second)
    return first, second


def _header(low: np.uint32, high: np.uint32) -> Bytes:
    if low ^ high != _SIGN:
        return np.array([low, high], np.uint32).view(np.uint8)
    return np.array([] if high == _ONE else [high], np.uint32).view(np.uint8)


CODEC = Signs()
