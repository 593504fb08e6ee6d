"""Series of several regions become one, whatever the widths of their bins."""

from __future__ import annotations

import numpy as np

from ringleaf.networks.virtual.meter import join_bins


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
