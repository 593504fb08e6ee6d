"""Numbers that switches can add: fixed-point, with saturation as the sign of overflow.

A float32 is multiplied by 2^20 and rounded to the nearest integer, ties to even. (The published
code multiplies by 10^6; to agree on exponents block by block is SwitchML's way.) Sums of such
numbers saturate at -2^31 and 2^31 - 1 in switches, and stay there; these two values therefore mean
overflow, and the parameter server then asks for the block's raw values. Workers send raw values
from the start if a block does not fit: magnitudes from 2048 on, infinities and NaNs. The server
adds fixed-point sums as integers, and raw values as float64.

The error of a sum of n float32 is at most

- n halves of a unit, 2^-20, by rounding to fixed point,
- or, of raw values, n halves of a unit in the last place (2^-53) of float64 sums no larger than
  the sum of magnitudes; and
- half of a unit in the last place of the result, by rounding to float32: at most 2^-24 of its
  magnitude, or 2^-150 among the subnormals.

Integer tensors are exact: a block that overflows is asked for raw, and wraps around as int32 do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Lanes, Words
from ringleaf.core.compiled import inline

FRACTION_BITS = 20
SCALE = float(1 << FRACTION_BITS)
MOST = (1 << 31) - 1
"""The least magnitude of a saturated sum; those of other sums are smaller."""

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int32]


def error_bounds(parts: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return how far each element of a result can be from the exact sum of the workers' elements.

    Args:
        parts: The workers' tensors, shaped (workers, elements), without infinities and NaNs.
    """
    workers = len(parts)
    wide = parts.astype(np.float64)
    most = np.abs(wide).sum(axis=0)
    sums = workers * 2.0 ** -(FRACTION_BITS + 1) + workers * 2.0**-53 * most
    bounds: npt.NDArray[np.float64] = sums + np.maximum(
        (np.abs(wide.sum(axis=0)) + sums) * 2.0**-24, 2.0**-150
    )
    return bounds


@inline
def quantise(values: Floats, lanes: Integers) -> bool:
    """Write fixed-point numbers; False if any does not fit."""
    fit = True
    for i in range(values.size):
        scaled = np.rint(np.float64(values[i]) * SCALE)
        if abs(scaled) < MOST:
            lanes[i] = np.int32(scaled)
        else:  # NaN comes here, too
            fit = False
    return fit


@inline
def copy_integers(values: Integers, lanes: Integers) -> bool:
    """Write integers as they are; False if any would count as overflow."""
    fit = True
    for i in range(values.size):
        lanes[i] = values[i]
        if abs(np.int64(values[i])) >= MOST:
            fit = False
    return fit


@inline
def has_overflowed(lanes: Integers) -> bool:
    """Return whether a switch's sum is saturated in any lane."""
    overflowed = False
    for i in range(lanes.size):
        if abs(np.int64(lanes[i])) >= MOST:
            overflowed = True
    return overflowed


@inline
def add_integers(sums: Words, lanes: Integers) -> None:
    """Add lanes to a block's sums; these have 64 bits, so that no addition overflows."""
    for i in range(lanes.size):
        sums[i] += np.int64(lanes[i])


@inline
def add_floats(sums: npt.NDArray[np.float64], lanes: Floats) -> None:
    """Add a block's raw values to its sums, in float64."""
    for i in range(lanes.size):
        sums[i] += np.float64(lanes[i])


@inline
def wrap(sums: Words, results: Lanes) -> None:
    """Write integer sums as int32 that wrap around."""
    for i in range(results.size):
        results[i] = np.uint32(sums[i] & 0xFFFFFFFF)


@inline
def dequantise(sums: Words, results: Floats) -> None:
    """Write fixed-point sums as float32."""
    for i in range(results.size):
        results[i] = np.float32(np.float64(sums[i]) / SCALE)


@inline
def narrow(sums: npt.NDArray[np.float64], results: Floats) -> None:
    """Write float64 sums as float32."""
    for i in range(results.size):
        results[i] = np.float32(sums[i])
