"""Float32 to int32 and back, block by block (block floating point).

The workers agree on the largest exponent e (biased) among all their blocks of one number, so
each magnitude is below 2^(e - 126). A block is multiplied by 2^(bits - (e - 126)), where `bits`
(`headroom_bits`) is as large as n such values can be added without overflow, and rounded to the
nearest integer, ties to even; the sum is multiplied by the inverse. Both products are exact
in float64, so the error is at most

- n halves of a unit 2^(e - 126 - bits), by rounding to integers, and
- half of a unit in the last place of the result, by rounding to float32: at most 2^-24 of
  n * 2^(e - 126), or 2^-150 among the subnormals.

Zeros and subnormals have e = 0, and need no case of their own. If the largest exponent is 255,
a worker has an infinity or a NaN in that block, and the whole block comes back as NaN, to all. A
sum beyond the range of float32 comes back as an infinity.

Integer tensors are added as they are and wrap around.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import External, inline
from ringleaf.core.headers import get32, put32
from ringleaf.errors import ConfigError

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]

_MAX_INT32 = (1 << 31) - 1
_BIAS = 126
"""A magnitude of biased exponent e is below 2^(e - 126)."""

_ldexp = External("ldexp", types.float64(types.float64, types.int32))


def headroom_bits(workers: int) -> int:
    """Return the largest b so that `workers` float32 below 1, times 2^b and rounded, sum to int32.

    The largest float32 below 1 is 1 - 2^-24.

    Raises:
        ConfigError: If `workers` < 1, or too many for any bit.
    """
    for bits in range(31, 0, -1):
        most = round((1 - 2.0**-24) * 2**bits)
        if 0 < workers <= _MAX_INT32 // most:
            return bits
    raise ConfigError(f"switchml: workers must be 1 to {_MAX_INT32 // 2}, got {workers!r}")


def error_bounds(parts: npt.NDArray[np.float32], lanes: int) -> npt.NDArray[np.float64]:
    """Return how far each element of a result can be from the exact sum of the workers' elements.

    Args:
        parts: The workers' tensors, shaped (workers, elements), without infinities and NaNs.
        lanes: Values in a packet, and so in a block.
    """
    workers, count = parts.shape
    largest = np.abs(np.maximum(parts.max(axis=0), -parts.min(axis=0)))
    largest = np.pad(largest, (0, -count % lanes)).reshape(-1, lanes).max(axis=1)
    limit = np.ldexp(1.0, (largest.view(np.int32) >> 23) - _BIAS)  # of a block's magnitudes
    to_integer = workers * limit * 2.0 ** -(headroom_bits(workers) + 1)
    to_float = np.maximum(workers * limit * 2.0**-24, 2.0**-150)
    bounds: npt.NDArray[np.float64] = np.repeat(to_integer + to_float, lanes)[:count]
    return bounds


@inline
def shift_of(exponent: int, bits: int) -> int:
    """Return the power of two to scale a block of this largest exponent by, as an exponent."""
    return bits + _BIAS - exponent


def fixed_exponent(fraction_bits: int, bits: int) -> int:
    """Return the exponent whose blocks are scaled by 2^fraction_bits."""
    return bits + _BIAS - fraction_bits


@inline
def max_exponent(values: Floats) -> int:
    """Return the biased exponent of the largest magnitude; 255 if there is an infinity or NaN."""
    words = values.view(np.int32)
    most = np.int32(0)
    for i in range(words.size):
        most = max(most, np.int32(words[i] & np.int32(0x7FFFFFFF)))
    return int(most) >> 23


@inline
def quantise(values: Floats, lanes: Bytes, shift: int) -> None:
    """Write the first values of a block as big-endian int32, scaled by 2^shift."""
    scale = _ldexp(1.0, int(shift))
    for i in range(values.size):
        put32(lanes, 4 * i, int(np.int32(np.rint(np.float64(values[i]) * scale))))


@inline
def dequantise(lanes: Bytes, values: Floats, shift: int) -> None:
    """Undo `quantise` of as many lanes as there are values."""
    scale = _ldexp(1.0, -int(shift))
    for i in range(values.size):
        lane = np.uint32(get32(lanes, 4 * i)).view(np.int32)
        values[i] = np.float32(np.float64(lane) * scale)


@inline
def fill_nan(values: Floats) -> None:
    """Set all values of a block to NaN, as its largest exponent is that of infinities and NaNs."""
    for i in range(values.size):
        values[i] = np.nan


@inline
def pack(values: Integers, lanes: Bytes) -> None:
    """Write integers as big-endian lanes of 32 bits."""
    for i in range(values.size):
        put32(lanes, 4 * i, values[i])


@inline
def unpack(lanes: Bytes, values: Integers) -> None:
    """Read integers from big-endian lanes of 32 bits."""
    for i in range(values.size):
        values[i] = np.uint32(get32(lanes, 4 * i)).view(np.int32)


@inline
def write_signs(values: Floats, lanes: Bytes) -> int:
    """Write a bit per value, 1 where it is not below zero; return the number of bytes."""
    size = (values.size + 7) // 8
    for i in range(size):
        lanes[i] = 0
    for i in range(values.size):
        if values[i] >= 0:
            lanes[i >> 3] |= 1 << (i & 7)
    return int(size)


@inline
def read_signs(lanes: Bytes, values: Floats) -> None:
    """Write +1 for each bit that is set, and -1 for the others."""
    for i in range(values.size):
        values[i] = np.float32(2 * (int(lanes[i >> 3]) >> (i & 7) & 1) - 1)
