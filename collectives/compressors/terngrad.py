"""TernGrad: each element is minus the scale, zero or the scale, at random and without bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import short
from ringleaf.collectives.compression.rounding import rounded_at_random
from ringleaf.collectives.compression.scaled import ScaledCompressor
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.encodings.levels import LEVELS
from ringleaf.core.tensors import Array

CLIP = 2.5
"""Elements are clipped to so many standard deviations; what is left has no bias."""


@dataclass
class TernGrad(ScaledCompressor):
    """A compressor of 2 bits per element and 4 bytes.

    The scale is the largest magnitude of all ranks, so sums are whole multiples of it from -n to
    n, and take ceil(log2(2 n + 1)) bits. It is rounded up to 12 bits.

    Source:
        Wen et al., "TernGrad: ternary gradients to reduce communication in distributed deep
        learning", NIPS 2017: gradient clipping and scaler sharing.
    """

    codec = LEVELS
    is_unbiased: ClassVar[bool] = True
    wants_feedback: ClassVar[bool] = False
    name: ClassVar[str] = "terngrad"
    shares: bool = True
    clip: float = CLIP

    def scale(self, values: Array) -> float:
        """Return the largest magnitude after clipping."""
        most = float(np.abs(values).max(initial=0))
        return min(most, self._edge(values)) if self.clip else most

    def _edge(self, values: Array) -> float:
        return self.clip * float(values.std()) if values.size else 0.0

    def carry(self, values: Array, seed: int) -> Array:
        """Return the ternary elements."""
        unit = short(self.scale_of(values))  # of all values: clipped ones deviate less
        if self.clip:
            edge = np.float32(self._edge(values))
            values = np.clip(values, -edge, edge)
        return rounded_at_random(values, unit, 1, seed, self.rank)


def parse(text: str, where: str) -> TernGrad:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where, shared="yes", clip=str(CLIP))
    clip = settings.number(settings.named["clip"], 0, 1e6)
    return TernGrad(shares="shared" in settings.words, clip=clip)


COMPRESSOR = parse
