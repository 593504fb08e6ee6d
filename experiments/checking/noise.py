"""Random values by place: each depends on a seed, a rank and its element's number alone.

So any part of any rank's tensor can be made at any time, in any order, by any thread, and made
again where a copy would have to be kept.

A value is made from 32 random bits: the element's number (its low 32 bits) goes through the two
multiplications of MurmurHash3's 32-bit finalizer. The first key is xored into the number, the
second is added between the multiplications. Keys come from seed, rank and the number's high bits by
splitmix64.

- Integers: uniform, of magnitude 1 to 2^20, either sign; so sums of 2,000 ranks do not overflow.
- Floats: nearly standard normal. With u uniform in (-1, 1) and v = u^2, the value is
  u (A + B v + C v^2) / (1 + D v + E v^2), in float32. That is the normal distribution's quantile
  function as a rational function, fitted by least squares: mean 0, variance 0.9999, kurtosis 2.998,
  at most 3.94. Its quantiles are within 0.011 of the normal ones from 5% to 95%, and within 0.04
  from 0.5% to 99.5%.

No value is zero, which systems that leave zeros out rely on.

`ringleaf.core.chance` has both, with their sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.chance import scrambled, spread64
from ringleaf.core.compiled import UNCOMPILED, compiled, inline, signed
from ringleaf.core.views import window

Keys = npt.NDArray[np.uint32]
"""(segments, ranks, 2): two keys for each rank and 2^32 elements."""

LARGEST = 1 << 20  # magnitude of integers

_SEGMENT_BITS = 32
_SEGMENT = 1 << _SEGMENT_BITS

# Of the quantile function.
_A, _B, _C, _D, _E = map(np.float32, (1.28716, -2.11226, 0.82754, -1.81436, 0.81498))
_ONE, _UNIT = np.float32(1), np.float32(2.0**-31)

_11, _BIT = map(np.uint32, (11, 1))


def make_keys(seed: int, ranks: int, elements: int) -> Keys:
    """Return the keys of all ranks for tensors of so many elements."""
    segments = max(-(-elements // _SEGMENT), 1)
    words = [
        [spread64(spread64(spread64(seed) ^ rank) ^ segment) for rank in range(ranks)]
        for segment in range(segments)
    ]
    halves = [[(word >> 32, word & 0xFFFFFFFF) for word in row] for row in words]
    return np.array(halves, np.uint32).reshape(segments, ranks, 2)


def fill(keys: Keys, start: int, out: npt.NDArray[Any]) -> None:
    """Write values of all ranks that have keys.

    Args:
        keys: The ranks' keys, as `make_keys` returns them; a slice of ranks will do.
        start: The first element.
        out: (ranks, elements), contiguous, float32 or int32.
    """
    make = _make_normals if out.dtype == np.float32 else _make_integers
    if UNCOMPILED:
        make = _make_plainly
    make(np.ascontiguousarray(keys), start, out.shape[1], out.reshape(-1))


def _make_plainly(keys: Keys, start: int, width: int, out: npt.NDArray[Any]) -> None:
    """Write values without Numba, a row at a time."""
    element = np.arange(start, start + width)
    value = normal if out.dtype == np.float32 else integer
    for rank in range(keys.shape[1]):
        first, second = np.moveaxis(keys[element >> _SEGMENT_BITS, rank], -1, 0)
        bits = scrambled(element.astype(np.uint32), first, second)
        out[rank * width : (rank + 1) * width] = value(bits)


@inline
def normal(bits: Any) -> Any:
    """Return the float32 that 32 bits stand for."""
    u = np.float32(np.int32(bits | _BIT)) * _UNIT
    v = u * u
    return u * (_A + v * (_B + v * _C)) / (_ONE + v * (_D + v * _E))


@inline
def integer(bits: Any) -> Any:
    """Return the int32 that 32 bits stand for: their 21 highest, without zero."""
    value = np.int32(bits >> _11) - np.int32(LARGEST)
    return np.int32(value + np.int32(value >= 0))


def _maker(item: Any, value: Any) -> Any:
    """Return the compiled function that writes values of one type."""
    signature = types.void(types.uint32[:, :, ::1], types.uint64, types.int64, item[::1])

    def make(keys: Keys, start: Any, width: int, out: npt.NDArray[Any]) -> None:
        for rank in range(keys.shape[1]):
            at = 0
            while at < width:
                element = start + np.uint64(at)
                segment = signed(element >> np.uint64(_SEGMENT_BITS))
                low = np.uint32(element)
                count = min(width - at, _SEGMENT - signed(low))
                first, second = keys[segment, rank, 0], keys[segment, rank, 1]
                line = window(out, rank * width + at, count)
                for i in range(count):
                    line[i] = value(scrambled(np.uint32(low + np.uint32(i)), first, second))
                at += count

    return compiled(signature, nogil=True)(make)


_make_normals = _maker(types.float32, normal)
_make_integers = _maker(types.int32, integer)
