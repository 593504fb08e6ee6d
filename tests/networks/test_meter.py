"""Series of several regions become one, whatever the widths of their bins."""

from __future__ import annotations

import numpy as np

from ringleaf.disciplines import CLASSES
from ringleaf.networks.virtual.meter import fuller, join_bins


def test_bins_are_brought_to_the_widest() -> None:
    """By hand: bins of 10 ps and of 40 ps over the same 160 ps."""
    fine = np.array([[1, 2, 3, 4, 5, 6, 7, 8]])
    wide = np.array([[10, 20, 0, 0, 0, 0, 0, 0]])
    summed, width = join_bins([(fine, 10), (wide, 40)], np.add)
    assert (summed.tolist(), width) == ([[20, 46, 0, 0, 0, 0, 0, 0]], 40)
    most, width = join_bins([(fine, 10), (wide, 40)], np.maximum)
    assert (most.tolist(), width) == ([[10, 20, 0, 0, 0, 0, 0, 0]], 40)


def test_one_region_s_bins_are_as_they_are() -> None:
    bins = np.array([[3, 1]])
    alone, width = join_bins([(bins, 5)], np.add)
    assert (alone.tolist(), width) == ([[3, 1]], 5)


def test_of_two_bins_the_one_that_holds_more_is_kept_whole() -> None:
    """By hand: a port's eight classes; bins with 5 + 3 and 1 + 8 bytes, then 2 + 2 and 4 + 0."""
    bins = np.zeros((CLASSES, 4), np.int64)
    bins[0], bins[7] = (5, 1, 2, 4), (3, 8, 2, 0)
    wide = np.zeros((CLASSES, 4), np.int64)

    joined, width = join_bins([(bins, 10), (wide, 20)], fuller)

    assert width == 20
    assert joined[[0, 7]].tolist() == [[1, 2, 0, 0], [8, 2, 0, 0]]
