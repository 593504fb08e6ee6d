"""SIDCo: thresholds from distributions that are fitted in stages."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array
from ringleaf.errors import choose

FIRST = 0.25
"""The share that the first stage keeps."""
PERIOD, ALLOWED = 5, 0.2
"""Stages change after so many steps if the achieved share is off by more: both are chosen here."""
FITS = EXPONENTIAL, PARETO = ("exponential", "pareto")


@dataclass
class SIDCo(Member):
    """A compressor that estimates the threshold in linear time.

    Magnitudes are taken to be exponential: -mean ln(share) is the threshold of a share. Later
    stages fit those that are above the last threshold, by their excess over it: with the
    exponential, or with a generalised Pareto distribution by its first two moments.

    Source:
        Abdelmoniem, Elzanaty, Alouini and Canini, "An efficient statistical-based gradient
        compression technique for distributed training systems", MLSys 2021; and its released code.
    """

    codec = SPARSE_STREAM
    name: ClassVar[str] = "sidco"
    share: Density
    fit: str = EXPONENTIAL
    stages: int = 2
    steps: int = 0
    achieved: float = 0.0

    def carry(self, values: Array, seed: int) -> Array:
        """Return the elements above the threshold; `seed` does not matter."""
        if not values.size:
            return values.copy()
        share = self.share.of(values.size) / values.size
        sizes = np.abs(values)
        # At least one element is sent, of however few large ones there are (chosen).
        threshold = min(self._threshold(sizes, share), float(sizes.max())) if share < 1 else 0.0
        kept = sizes >= threshold
        self._adapt(np.count_nonzero(kept) / values.size, share)
        return np.where(kept, values, np.float32(0))

    def _threshold(self, sizes: Array, share: float) -> float:
        stages = self.stages if share < FIRST else 1
        first = FIRST if stages > 1 else share
        threshold = -float(sizes.mean()) * log(first)
        rest = (share / first) ** (1 / (stages - 1)) if stages > 1 else 1.0
        for _ in range(stages - 1):
            sizes = sizes[sizes >= threshold]
            if not sizes.size:
                break
            threshold += self._excess(sizes - np.float32(threshold), rest)
        return threshold

    def _excess(self, excesses: Array, share: float) -> float:
        mean, variance = float(excesses.mean()), float(excesses.var())
        if self.fit == EXPONENTIAL or not variance:
            return -mean * log(share)
        ratio = mean * mean / variance
        scale, shape = mean / 2 * (ratio + 1), (ratio - 1) / 2
        # Moments give -shape of the usual parametrisation.
        return scale * (1 - share**shape) / shape if abs(shape) > 1e-6 else -scale * log(share)

    def _adapt(self, achieved: float, share: float) -> None:
        self.steps += 1
        self.achieved += achieved / share / PERIOD
        if self.steps % PERIOD:
            return
        most = max(ceil(log(share) / log(0.5)), 1)
        if self.achieved > 1 + ALLOWED:
            self.stages = min(self.stages + 1, most)
        elif self.achieved < 1 - ALLOWED:
            self.stages = max(self.stages - 1, 1)
        self.achieved = 0.0


def parse(text: str, where: str) -> SIDCo:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, fit=EXPONENTIAL, stages="2")
    choose(where, "fit", settings.named["fit"], FITS)
    stages = settings.whole(settings.named["stages"], 1, 30)
    return SIDCo(parse_share(settings.first, where), settings.named["fit"], stages)


COMPRESSOR = parse
