"""Random rotation: a tensor is rotated, so that its elements are alike, and then quantised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import BLOCK, short
from ringleaf.collectives.compression.rounding import rounded_at_random
from ringleaf.collectives.compression.scaled import ScaledCompressor
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.encodings.levels import LEVELS
from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, inline
from ringleaf.core.tensors import Array


def hadamard(values: Array) -> Array:
    """Return the orthonormal Walsh-Hadamard transform of 2^i elements, its own inverse."""
    result = values * np.float32(1 / np.sqrt(values.size))
    if result.size > 1:
        _butterflies(result)
    return result


@inline
def _cross(values: Array, start: int, stop: int, half: int) -> None:
    """Add and subtract elements at distances from `half` on, two distances in a pass."""
    while 2 * half < stop - start:
        for first in range(start, stop, 4 * half):
            for i in range(first, first + half):
                a, b = values[i], values[i + half]
                c, d = values[i + 2 * half], values[i + 3 * half]
                a, b, c, d = a + b, a - b, c + d, c - d
                values[i], values[i + half] = a + c, b + d
                values[i + 2 * half], values[i + 3 * half] = a - c, b - d
        half *= 4
    if half < stop - start:
        for i in range(start, start + half):
            low, high = values[i], values[i + half]
            values[i], values[i + half] = low + high, low - high


@compiled(types.void(types.float32[::1]))
def _butterflies(values: Array) -> None:
    """Transform in place: first blocks that fit a cache, then across them."""
    near = min(len(values), BLOCK)
    for start in range(0, len(values), near):
        _cross(values, start, start + near, 1)
    _cross(values, 0, len(values), near)


@dataclass
class Rotation(ScaledCompressor):
    """A compressor that carries random levels of the rotated tensor, and rotates the sum back.

    The rotation is by random signs, the same on all ranks, and a Hadamard transform. Levels are
    multiples of one unit, the largest rotated magnitude of all ranks over `levels`.

    Source:
        Suresh, Yu, Kumar and McMahan, "Distributed mean estimation with limited communication",
        ICML 2017, section 3. It has levels between each rank's least and largest element; one
        unit for all ranks is chosen here, so that sums are levels, too.
    """

    codec = LEVELS
    is_unbiased: ClassVar[bool] = True
    wants_feedback: ClassVar[bool] = False
    name: ClassVar[str] = "rotation"
    levels: int = 7
    shares: bool = True
    signs: int = 0  # the seed of the step's signs

    def scale(self, values: Array) -> float:
        """Return the largest magnitude that rotating can leave: of the rotated tensor."""
        return float(np.abs(self._rotated(values)).max(initial=0))

    def carry(self, values: Array, seed: int) -> Array:
        """Return the levels of the rotated tensor, padded to the next power of two."""
        self.signs = seed
        rotated = self._rotated(values)
        scale = float(np.abs(rotated).max(initial=0)) if self.agreed is None else self.agreed
        return rounded_at_random(rotated, short(scale / self.levels), self.levels, seed, self.rank)

    def own(self, carried: Array, elements: int) -> Array:
        """Return the levels, rotated back."""
        return (hadamard(carried) * self._signs(carried.size))[:elements]

    def result(self, total: Array, elements: int) -> Array:
        """Return the sum, rotated back."""
        return self.own(total, elements)

    def prepare(self, seed: int) -> None:
        """Take note of the step's seed before `scale` is asked for."""
        self.signs = seed

    def _rotated(self, values: Array) -> Array:
        padded = np.zeros(1 << max(values.size - 1, 0).bit_length(), np.float32)
        padded[: values.size] = values
        return hadamard(padded * self._signs(padded.size))

    def _signs(self, elements: int) -> Array:
        bits = np.random.Generator(np.random.SFC64([self.signs, 0x524F54])).bytes(-(-elements // 8))
        drawn = np.unpackbits(np.frombuffer(bits, np.uint8), count=elements)
        return drawn.astype(np.float32) * 2 - 1


def parse(text: str, where: str) -> Rotation:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text or "7", where, shared="yes")
    levels = settings.whole(settings.first or "7", 1, 2047)
    return Rotation(levels=levels, shares="shared" in settings.words)


COMPRESSOR = parse
