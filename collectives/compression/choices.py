"""Selections of a tensor's elements by magnitude, which compressors share."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.compression.selection import places_of_largest
from ringleaf.core.tensors import Array

_STRIDE, _SPARE = 61, 32
"""One of so many elements is in a sample; its threshold has so many more above it than it must."""


def magnitudes(values: Array) -> Array:
    """Return absolute values; of integers, as float64, so that none overflows."""
    return np.abs(values) if values.dtype.kind == "f" else np.abs(values.astype(np.float64))


def above(values: Array, threshold: float) -> Array:
    """Return the elements whose magnitude is `threshold` or more, else zeros."""
    return np.where(magnitudes(values) >= threshold, values, values.dtype.type(0))


def only(values: Array, chosen: Array) -> Array:
    """Return the elements at the positions `chosen`, else zeros."""
    result = np.zeros_like(values)
    result[chosen] = values[chosen]
    return result


def largest(values: Array, count: int) -> Array:
    """Return the positions of the largest magnitudes, any of equal ones; NaN is larger than all.

    A threshold from a sample leaves out most of the others, if there are many.
    """
    sizes = magnitudes(values)
    sample = sizes[::_STRIDE]
    sample_count = 2 * count // _STRIDE + _SPARE
    if sample_count >= sample.size:
        return places_of_largest(sizes, count)
    threshold = np.partition(sample, sample.size - sample_count)[sample.size - sample_count]
    places = np.flatnonzero(~(sizes < threshold))
    if places.size < count:
        return places_of_largest(sizes, count)
    return places[places_of_largest(sizes[places], count)]


def smallest_kept(values: Array, count: int) -> float:
    """Return the magnitude of the `count`-th largest element."""
    sizes = magnitudes(values)
    return float(np.partition(sizes, sizes.size - count)[sizes.size - count])


def count_above(sizes: Array, threshold: float) -> int:
    """Return how many of some magnitudes are `threshold` or more."""
    return int(np.count_nonzero(sizes >= threshold))
