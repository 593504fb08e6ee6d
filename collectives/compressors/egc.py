"""Adaptive sparsification: the more even a tensor's magnitudes, the more of them are sent."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.choices import largest, only
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array

BINS = 64
"""Bins of the histogram of magnitudes whose entropy is taken: chosen."""


def entropy(sizes: Array) -> float:
    """Return the entropy of magnitudes in a histogram of equal bins, as a share of its most."""
    most = float(sizes.max(initial=0))
    if not most:
        return 0.0
    places = np.minimum((sizes * np.float32(BINS / most)).astype(np.uint8), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    parts = counts[counts > 0] / sizes.size
    return float(-(parts * np.log2(parts)).sum() / log2(BINS))


@dataclass
class EGC(Member):
    """A compressor whose share follows the entropy of the gradient.

    The share is the given one, times the entropy over its mean so far, from half to twice the
    given one. Systems of this kind (EGC by entropy, MIPD by the distribution of magnitudes)
    differ in the rule, which is not fixed by a source here: rule, bins and range are chosen.

    Source:
        Kuang et al., "Entropy-based gradient compression for distributed deep learning", HPCC
        2019 (the idea); Zhang and Wang, "MIPD", IEEE TPDS 33(11), 2022 (adaptive shares).
    """

    codec = SPARSE_STREAM
    name: ClassVar[str] = "egc"
    share: Density
    steps: int = 0
    total: float = 0.0

    def carry(self, values: Array, seed: int) -> Array:
        """Return the largest elements; `seed` does not matter."""
        count = self.share.of(values.size)
        if not count:
            return values.copy()
        entropy_now = entropy(np.abs(values))
        self.steps, self.total = self.steps + 1, self.total + entropy_now
        factor = min(max(entropy_now * self.steps / self.total, 0.5), 2.0) if self.total else 1.0
        return only(values, largest(values, min(max(round(factor * count), 1), values.size)))


def parse(text: str, where: str) -> EGC:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return EGC(parse_share(text, where))


COMPRESSOR = parse
