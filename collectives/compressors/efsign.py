"""EF-signSGD: signs times the mean magnitude, with error feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member
from ringleaf.collectives.compression.settings import nothing
from ringleaf.collectives.encodings.signs import CODEC as SIGNS
from ringleaf.core.tensors import Array


def scaled_signs(values: Array) -> Array:
    """Return the signs (+1 for zero) times the mean magnitude."""
    size = np.float32(np.abs(values).mean(dtype=np.float64)) if values.size else np.float32(0)
    return np.where(values >= 0, size, -size)


@dataclass
class EFSign(Member):
    """A compressor of d/8 + 4 bytes.

    Source:
        Karimireddy, Rebjock, Stich and Jaggi, "Error feedback fixes SignSGD and other gradient
        compression schemes", ICML 2019, algorithm 1.
    """

    codec = SIGNS
    name: ClassVar[str] = "efsign"

    def carry(self, values: Array, seed: int) -> Array:
        """Return the scaled signs; `seed` does not matter."""
        return scaled_signs(values)


def parse(text: str, where: str) -> EFSign:
    """Return the compressor; errors begin with `where`."""
    nothing(text, where)
    return EFSign()


COMPRESSOR = parse
