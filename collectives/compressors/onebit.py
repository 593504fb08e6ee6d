"""1-bit SGD: a bit per element, and the mean of those below zero and of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import nothing
from ringleaf.collectives.encodings.signs import CODEC as SIGNS
from ringleaf.core.tensors import Array


@dataclass
class OneBit(Member):
    """A compressor that needs error feedback; a tensor of d elements takes d/8 + 8 bytes.

    Source:
        Seide, Fu, Droppo, Li and Yu, "1-bit stochastic gradient descent and its application to
        data-parallel distributed training of speech DNNs", Interspeech 2014. It has two values
        per column; as GRACE does, one tensor has two here.
    """

    codec = SIGNS
    name: ClassVar[str] = "onebit"

    def carry(self, values: Array, seed: int) -> Array:
        """Return each element's mean of its sign; `seed` does not matter."""
        positive = values >= 0
        count = int(np.count_nonzero(positive))
        # np.add.reduce with where= is slow: the sum and that of magnitudes give both.
        total, sizes = (
            float(values.sum(dtype=np.float64)),
            float(np.abs(values).sum(dtype=np.float64)),
        )
        high = (sizes + total) / 2 / max(count, 1)
        low = (total - sizes) / 2 / max(values.size - count, 1)
        return np.where(positive, np.float32(high), np.float32(low))


def parse(text: str, where: str) -> OneBit:
    """Return the compressor; errors begin with `where`."""
    nothing(text, where)
    return OneBit()


COMPRESSOR = parse
