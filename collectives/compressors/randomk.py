"""Random-k: send elements at random positions, the same ones on all ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.choices import only
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array


@dataclass
class RandomK(Member):
    """A compressor whose positions come from the step's seed, so sums are as sparse as the addends.

    Values are not scaled up: error feedback makes up for the elements that are not sent.

    Source:
        Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018.
    """

    codec = SPARSE_STREAM
    takes_integers: ClassVar[bool] = True
    name: ClassVar[str] = "randomk"
    share: Density

    def carry(self, values: Array, seed: int) -> Array:
        """Return the elements of `values` that `seed` picks."""
        chance = np.random.Generator(np.random.SFC64([seed, 0x524B]))
        count = self.share.of(values.size)
        return only(values, chance.choice(values.size, count, replace=False, shuffle=False))


def parse(text: str, where: str) -> RandomK:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return RandomK(parse_share(text, where))


COMPRESSOR = parse
