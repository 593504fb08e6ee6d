"""How far sums may be off, derived from the papers' scaling and from nothing of our code.

ATP (Lao et al., NSDI 2021) multiplies each gradient by a constant, here 2^20, and
rounds to an integer: each of n addends is off by 1/2 of 2^-20 at most, integers add up exactly, and
the result is rounded to float32, by 2^-24 of itself at most. What does not fit, the parameter
server adds in float64: each of n - 1 additions is off by 2^-53 of a partial sum, at most.

SwitchML (Sapio et al., NSDI 2021) scales each block so that n integers of its largest
magnitude don't overflow 32 bits. Here the scale is a power of two: magnitudes of a block are below
2^k, and the integers below 2^b with n 2^b <= 2^31. So each of n addends is off by half of 2^(k-b)
at most, and the result, which is below n 2^k, is rounded to float32.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Bounds = npt.NDArray[np.float64]

LEAST = 2.0**-150
"""Half of the smallest float32: what rounding among the subnormals is off by."""


def atp(parts: npt.NDArray[np.float32]) -> Bounds:
    """(workers, elements) -> (elements,)."""
    workers, count = parts.shape
    bounds = np.zeros(count)
    for element in range(count):
        values = [float(value) for value in parts[:, element]]
        before = workers * 0.5 / 2**20 + workers * 2.0**-53 * sum(map(abs, values))
        bounds[element] = before + max(2.0**-24 * (abs(math.fsum(values)) + before), LEAST)
    return bounds


def switchml(parts: npt.NDArray[np.float32], lanes: int) -> Bounds:
    """Likewise, for up to 128 workers, whose blocks are of so many elements."""
    workers, count = parts.shape
    assert workers <= 128, "rounding up the largest float32 below a power of two would overflow"
    b = 31 - math.ceil(math.log2(workers))
    bounds = np.zeros(count)
    for start in range(0, count, lanes):
        block = parts[:, start : start + lanes]
        largest = max(float(np.abs(block).max()), 2.0**-127)  # less is scaled as subnormals are
        below = 2.0 ** math.frexp(largest)[1]
        to_float = max(2.0**-24 * workers * below, LEAST)
        bounds[start : start + lanes] = workers * 0.5 * below / 2**b + to_float
    return bounds
