"""Threshold: send the elements whose magnitude is some number or more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ringleaf.collectives.compression.choices import above
from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array


@dataclass
class Threshold(Member):
    """A compressor with one threshold for all steps; how much is sent depends on the data.

    Source:
        Dutta et al., "On the discrepancy between the theoretical analysis and practical
        implementations of compressed communication for distributed deep learning", AAAI 2020
        (hard thresholds).
    """

    codec = SPARSE_STREAM
    takes_integers: ClassVar[bool] = True
    name: ClassVar[str] = "threshold"
    least: float

    def carry(self, values: Array, seed: int) -> Array:
        """Return the elements that are large enough; `seed` does not matter."""
        return above(values, self.least)


def parse(text: str, where: str) -> Threshold:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text, where)
    return Threshold(settings.number(settings.first, 1e-30, 1e30))


COMPRESSOR = parse
