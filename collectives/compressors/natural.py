"""Natural compression: each element becomes one of the two powers of two next to it, unbiased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.rounding import powers_at_random
from ringleaf.collectives.compression.settings import nothing
from ringleaf.collectives.encodings.exponents import CODEC as EXPONENTS
from ringleaf.collectives.encodings.exponents import HIGHEST, LOWEST
from ringleaf.core.tensors import Array


@dataclass
class Natural(Member):
    """A compressor of one byte per element: the exponent, one more with probability mantissa/2^23.

    Magnitudes that no byte stands for become zero or the nearest that one does (2^-108 to 2^18).

    Source:
        Horvath, Ho, Horvath, Sahu, Canini and Richtarik, "Natural compression for distributed
        deep learning", MSML 2022.
    """

    codec = EXPONENTS
    is_unbiased: ClassVar[bool] = True
    wants_feedback: ClassVar[bool] = False
    name: ClassVar[str] = "natural"

    def carry(self, values: Array, seed: int) -> Array:
        """Return powers of two."""
        return powers_at_random(values, LOWEST, HIGHEST, seed, self.rank)


def parse(text: str, where: str) -> Natural:
    """Return the compressor; errors begin with `where`."""
    nothing(text, where)
    return Natural()


COMPRESSOR = parse
