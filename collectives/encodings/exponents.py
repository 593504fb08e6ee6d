"""A byte per element, where elements are powers of two or zero.

The highest bit is the sign, the others are 0 for zero, or the float32's exponent less 18: 1 to 127
are exponents 19 to 145, or 2^-108 to 2^18. Anything else goes as it is in memory, which the length
tells.

Source:
    Horvath, Ho, Horvath, Sahu, Canini and Richtarik, "Natural compression for distributed deep
    learning", MSML 2022. It has 9 bits; 8 are the released framework GRACE's, which clips
    exponents to 18..145. That zero has a code of its own is chosen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.packing import ArrayCodec, Bytes, plain
from ringleaf.core.tensors import Array

LOWEST, HIGHEST = 19, 145
"""The exponents of float32 that have a code."""

_OFFSET = np.uint32(LOWEST - 1)
_MANTISSA = np.uint32((1 << 23) - 1)


@dataclass(frozen=True)
class Exponents(ArrayCodec):
    """The codec of powers of two."""

    name: ClassVar[str] = "exponents"

    def pack(self, values: Array) -> Bytes:
        """Return a byte per element, or all elements as they are if one does not fit."""
        words = values.view(np.uint32)
        exponent = words >> np.uint32(23) & np.uint32(0xFF)
        is_zero = words == 0
        fits = (words & _MANTISSA == 0) & (exponent >= LOWEST) & (exponent <= HIGHEST) | is_zero
        if not fits.all():
            return values.copy().view(np.uint8)
        code = (words >> np.uint32(24) & np.uint32(0x80)) | (exponent - _OFFSET)
        code[is_zero] = 0
        return code.astype(np.uint8)

    def unpack(self, data: Bytes, elements: int) -> Array:
        """Return the float32 values of a message, whose length tells its form."""
        if data.size != elements:
            return plain(data, elements, "exponents").view(np.float32)
        return _VALUES[data]


def _values() -> Array:
    """Return the value of each byte; a negative zero's is never written."""
    code = np.arange(256, dtype=np.uint32)
    words = (code >> np.uint32(7)) << np.uint32(31)
    exponent = np.where(code & 0x7F, (code & np.uint32(0x7F)) + _OFFSET, 0).astype(np.uint32)
    return (words | exponent << np.uint32(23)).view(np.float32)


_VALUES = _values()

CODEC = Exponents()
