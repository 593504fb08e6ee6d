"""The values that an array has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the different values of an array, sorted.

    `np.unique` returns the same, but loads masked arrays first, which take as long as all packets
    of a small run.
    """
    ordered = np.sort(values, axis=None)
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    chosen: npt.NDArray[np.int64] = ordered[is_new]
    return chosen
