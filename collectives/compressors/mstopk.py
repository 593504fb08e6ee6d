"""MSTopK: top-k by a search for the threshold, exactly k elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.choices import count_above, only
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array

STEPS = 30
"""Halvings of the range between the mean and the largest magnitude (from memory)."""


def choose(values: Array, count: int, steps: int = STEPS) -> Array:
    """Return the positions of `count` elements: those above a threshold, and some just below it.

    Args:
        values: (elements,) float32.
        count: 1 to the number of elements.
        steps: The number of halvings.

    Source:
        Shi et al., "Towards scalable distributed training of deep learning on public cloud
        clusters", MLSys 2021. The search is from memory; neighbouring elements of those between
        the two nearest thresholds fill up to k.
    """
    sizes = np.abs(values)
    mean, most = float(sizes.mean()), float(sizes.max())
    low, high = 0.0, np.inf  # thresholds with at least, and with at most, `count` elements
    start, stop = 0.0, 1.0
    for _ in range(steps):
        middle = (start + stop) / 2
        threshold = mean + middle * (most - mean)
        number_above = count_above(sizes, threshold)
        if number_above <= count:
            high, stop = threshold, middle
        else:
            low, start = threshold, middle
        if number_above == count:
            break
    sure = np.flatnonzero(sizes >= high)
    between = np.flatnonzero((sizes >= low) & (sizes < high))
    return np.concatenate([sure, between[: count - sure.size]])


@dataclass
class MSTopK(Member):
    """A compressor that sends exactly k elements, nearly the largest ones.

    Source:
        Shi et al., "Towards scalable distributed training of deep learning on public cloud
        clusters", MLSys 2021.
    """

    codec = SPARSE_STREAM
    name: ClassVar[str] = "mstopk"
    share: Density

    def carry(self, values: Array, seed: int) -> Array:
        """Return k elements; `seed` does not matter."""
        return only(values, choose(values, self.share.of(values.size))) if values.size else values


def parse(text: str, where: str) -> MSTopK:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return MSTopK(parse_share(text, where))


COMPRESSOR = parse
