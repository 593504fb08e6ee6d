"""Top-k: send the elements of largest magnitude, each rank its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ringleaf.collectives.compression.choices import largest, only
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.share import Density, parse_share
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array


@dataclass
class TopK(Member):
    """A compressor that takes the largest magnitudes, any of equal ones; NaN is larger than all.

    Source:
        Aji and Heafield, "Sparse communication for distributed gradient descent", EMNLP 2017.
    """

    codec = SPARSE_STREAM
    takes_integers: ClassVar[bool] = True
    name: ClassVar[str] = "topk"
    share: Density

    def carry(self, values: Array, seed: int) -> Array:
        """Return the largest elements of `values`; `seed` does not matter."""
        return only(values, largest(values, self.share.of(values.size)))


def parse(text: str, where: str) -> TopK:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    return TopK(parse_share(text, where))


COMPRESSOR = parse
