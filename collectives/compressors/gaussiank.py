"""Gaussian-k: send the elements above a threshold that a normal distribution suggests."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.choices import above, count_above
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array

STEPS, FACTOR = 20, 1.02
FEWEST, MOST = 3 / 4, 5 / 4
"""A threshold is moved by 2 % at most 20 times, until 3/4 to 5/4 of k elements are above it."""


@dataclass
class GaussianK(Member):
    """A compressor that finds about k elements without sorting.

    Source:
        Shi, Chu, Cheung and See, "Understanding top-k sparsification in distributed deep
        learning", arXiv 1911.08772, 2019; steps as in Ok-Topk's released baseline.
    """

    codec = SPARSE_STREAM
    name: ClassVar[str] = "gaussiank"
    share: Density

    def carry(self, values: Array, seed: int) -> Array:
        """Return the elements above the threshold; `seed` does not matter."""
        target = self.share.of(values.size)
        if target >= values.size:
            return values.copy()
        mean, deviation = float(values.mean()), float(values.std())
        share = target / values.size
        threshold = abs(mean) + deviation * NormalDist().inv_cdf(1 - share / 2)
        sizes = np.abs(values)
        for _ in range(STEPS):
            count = count_above(sizes, threshold)
            if count < FEWEST * target:
                threshold /= FACTOR
            elif count > MOST * target:
                threshold *= FACTOR
            else:
                break
        return above(values, threshold)


def parse(text: str, where: str) -> GaussianK:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return GaussianK(parse_share(text, where))


COMPRESSOR = parse
