"""QSGD: magnitudes as random whole levels of the tensor's norm, without bias."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import BLOCK, short
from ringleaf.collectives.compression.rounding import rounded_at_random
from ringleaf.collectives.compression.scaled import ScaledCompressor
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.encodings.levels import LEVELS
from ringleaf.core.tensors import Array


@dataclass
class QSGD(ScaledCompressor):
    """A compressor to s levels of the 2-norm; with s below 128 a tensor takes d + 4 bytes or less.

    With few levels most are zero, and Elias' codes are shorter. The unit, norm / s, is rounded up
    to 12 bits, so that multiples and their sums are exact; the result is unbiased with any unit.

    Source:
        Alistarh, Grubic, Li, Tomioka and Vojnovic, "QSGD: communication-efficient SGD via
        gradient quantization and encoding", NIPS 2017, section 3.1.
    """

    codec = LEVELS
    is_unbiased: ClassVar[bool] = True
    wants_feedback: ClassVar[bool] = False
    name: ClassVar[str] = "qsgd"
    levels: int = 127
    shares: bool = False

    def scale(self, values: Array) -> float:
        """Return the norm."""
        blocks = (values[at : at + BLOCK] for at in range(0, values.size, BLOCK))
        return sqrt(sum(float(np.square(block).sum(dtype=np.float64)) for block in blocks))

    def carry(self, values: Array, seed: int) -> Array:
        """Return the levels times the unit."""
        unit = short(self.scale_of(values) / self.levels)
        return rounded_at_random(values, unit, self.levels, seed, self.rank)


def parse(text: str, where: str) -> QSGD:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text or "127", where, shared="no")
    levels = settings.whole(settings.first or "127", 1, 2047)
    return QSGD(levels=levels, shares="shared" in settings.words)


COMPRESSOR = parse
