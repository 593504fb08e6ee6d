"""Deep gradient compression: sampled top-k, with momentum that is kept back together with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.choices import (
    above,
    count_above,
    largest,
    only,
    smallest_kept,
)
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array

SAMPLED = 0.01
FEWEST, MOST, TRIES = 0.8, 1.3, 10
"""The threshold is adapted up to 10 times until 0.8 to 1.3 of the wanted elements are above it."""
_STEP = 0.05  # share by which a try moves the threshold: chosen


@dataclass
class DGC(Member):
    """A compressor with momentum correction, momentum factor masking and warm-up.

    u = m u + g, v = v + u; elements of v above a threshold are sent, and both are zero there.
    The threshold is the smallest of the largest share of a sample of 1 %. In a warm-up of w
    steps, step e sends share^((e + 1) / (w + 1)).

    Source:
        Lin, Han, Mao, Wang and Dally, "Deep gradient compression", ICLR 2018; numbers of its
        released code, which warms up by epochs.
    """

    codec = SPARSE_STREAM
    has_memory: ClassVar[bool] = True
    name: ClassVar[str] = "dgc"
    share: Density
    momentum: float = 0.9
    warmup: int = 0
    steps: int = 0
    velocity: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    left: Array = field(default_factory=lambda: np.zeros(0, np.float32))

    def carry(self, values: Array, seed: int) -> Array:
        """Return the elements of v that are sent; `seed` places the sample."""
        if self.velocity.size != values.size:
            self.velocity, self.left = np.zeros_like(values), np.zeros_like(values)
        self.velocity = np.float32(self.momentum) * self.velocity + values
        self.left = self.left + self.velocity
        sent = self._choose(self._target(values.size), seed) if values.size else values
        kept = sent == 0
        self.velocity *= kept
        self.left = np.where(kept, self.left, np.float32(0))
        return sent

    def _target(self, elements: int) -> int:
        count = self.share.of(elements)
        step, self.steps = min(self.steps, self.warmup), self.steps + 1
        share = (count / elements) ** ((step + 1) / (self.warmup + 1)) if elements else 1.0
        return min(max(round(share * elements), 1), elements)

    def _choose(self, target: int, seed: int) -> Array:
        values = self.left
        stride = max(int(SAMPLED * values.size) and round(1 / SAMPLED), 1)
        start = int(self.chance(seed).integers(stride))
        sample = np.ascontiguousarray(values[start::stride])
        count = min(max(round(target / values.size * sample.size), 1), sample.size)
        threshold, sizes = smallest_kept(sample, count), np.abs(values)
        for _ in range(TRIES):
            number_above = count_above(sizes, threshold)
            if number_above < FEWEST * target:
                threshold *= 1 - _STEP
            elif number_above > MOST * target:
                threshold *= 1 + _STEP
            else:
                break
        sent = above(values, threshold)
        if np.count_nonzero(sent) > MOST * target:
            sent = only(values, largest(values, target))
        return sent


def parse(text: str, where: str) -> DGC:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, momentum="0.9", warmup="0")
    return DGC(
        parse_share(settings.first, where),
        settings.number(settings.named["momentum"], 0, 1),
        settings.whole(settings.named["warmup"], 0, 1 << 30),
    )


COMPRESSOR = parse
