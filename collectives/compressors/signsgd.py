"""signSGD with majority vote: a bit per element up, and the sign of most ranks as the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import nothing
from ringleaf.collectives.encodings.signs import CODEC as SIGNS
from ringleaf.core.tensors import Array

_ONE = np.float32(1)


@dataclass
class SignSGD(Member):
    """A compressor of d/8 bytes; hosts count votes as they add, and ties are +1.

    The result is the sign times the number of ranks, so that a mean over ranks is the sign.

    Source:
        Bernstein, Zhao, Azizzadenesheli and Anandkumar, "signSGD with majority vote is
        communication efficient and fault tolerant", ICLR 2019; ties as in GRACE.
    """

    codec = SIGNS
    wants_feedback: ClassVar[bool] = False
    name: ClassVar[str] = "signsgd"

    def carry(self, values: Array, seed: int) -> Array:
        """Return the signs, +1 for zero; `seed` does not matter."""
        return np.where(values >= 0, _ONE, -_ONE)

    def result(self, total: Array, elements: int) -> Array:
        """Return the majority's signs, times the ranks."""
        return np.where(total >= 0, np.float32(self.ranks), np.float32(-self.ranks))


def parse(text: str, where: str) -> SignSGD:
    """Return the compressor; errors begin with `where`."""
    nothing(text, where)
    return SignSGD()


COMPRESSOR = parse
