"""3LC: ternary values of the largest magnitude, five to a byte, zeros in runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.encodings.base3 import CODEC as BASE3
from ringleaf.core.tensors import Array
from ringleaf.errors import ConfigError


@dataclass
class ThreeLC(Member):
    """A compressor of d/5 bytes or fewer, with a factor s from 1 to 2 (excluded).

    M is s times the largest magnitude, and each element round(g / M) M. The larger s, the more
    are zero.

    Source:
        Lim, Andersen and Kaminsky, "3LC: lightweight and effective traffic compression for
        distributed machine learning", MLSys 2019.
    """

    codec = BASE3
    name: ClassVar[str] = "threelc"
    factor: float = 1.0

    def carry(self, values: Array, seed: int) -> Array:
        """Return the ternary elements; `seed` does not matter."""
        size = np.float32(self.factor) * np.abs(values).max(initial=0)
        if not size:
            return np.zeros_like(values)
        # Half of M rounds to zero, as in C's and NumPy's rounding to even.
        return np.where(np.abs(values) > size / 2, np.copysign(size, values), np.float32(0))


def parse(text: str, where: str) -> ThreeLC:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text or "1", where)
    factor = settings.number(settings.first, 1, 2)
    if factor == 2:
        raise ConfigError(f"{where}: must be below 2, got {settings.first!r}")
    return ThreeLC(factor)


COMPRESSOR = parse
