"""The base of Ringleaf's own compressors: what a rank gives to an allreduce, and the way back.

Each rank gives `carry` of its tensor to the collective, which adds up; `result` turns the sum into
that of the tensors. Most compressors change elements only, so both have the tensor's shape; others
give fewer numbers (PowerSGD), or numbers of another basis (random rotation). `own` is the rank's
part of the result, which error feedback compares with the tensor. What a rank keeps from step to
step is in the compressor, so each rank and tensor has a compressor of its own (`Feedback`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ringleaf.collectives.codec import Codec
from ringleaf.core.tensors import FLOAT32, Array, as_array, as_tensor
from ringleaf.errors import ConfigError

if TYPE_CHECKING:
    import torch

BLOCK = 1 << 15
"""Elements that are worked on at a time, so that they stay in a core's cache."""


@dataclass
class Member:
    """A compressor; see the module's description.

    Attributes:
        codec: Writes the carried numbers, or parts of them, as bytes, and loses nothing.
        is_unbiased: Whether the expectation of `own` is the tensor.
        has_memory: Whether it keeps what it has not sent itself; else `Feedback` may.
        wants_feedback: Whether its authors use it with error feedback.
        takes_integers: Whether it works on int32 as well as on float32.
        rank: The rank that has this compressor, of `ranks`.
    """

    codec: ClassVar[Codec | None] = None
    is_unbiased: ClassVar[bool] = False
    has_memory: ClassVar[bool] = False
    wants_feedback: ClassVar[bool] = True
    takes_integers: ClassVar[bool] = False
    rank: ClassVar[int] = 0
    ranks: ClassVar[int] = 1
    name: ClassVar[str] = ""

    def take_place(self, rank: int, ranks: int) -> None:
        """Take note of the rank, and of the number of ranks."""
        self.rank, self.ranks = rank, ranks  # type: ignore[misc]

    def carry(self, values: Array, seed: int) -> Array:
        """Return a new flat array: what this rank gives to the collective; one call is one step.

        Args:
            values: (elements,), not changed.
            seed: The step's, the same on all ranks.
        """
        raise NotImplementedError

    def own(self, carried: Array, elements: int) -> Array:
        """Return the rank's part of the result, flat, from what it has carried."""
        del elements
        return carried

    def result(self, total: Array, elements: int) -> Array:
        """Return the sum of the ranks' tensors as all see it, from the sum of what they carried.

        Compressors whose steps depend on the sum take note of it here.
        """
        del elements
        return total

    def select(self, values: torch.Tensor, seed: int) -> torch.Tensor:
        """Return this rank's part of the result, for any allreduce: a new flat tensor.

        Raises:
            ConfigError: If it does not work on elements of that type.
        """
        array = as_array(values)
        return as_tensor(self.own(self.carry(self.checked(array), seed), array.size))

    def checked(self, values: Array) -> Array:
        """Return the values, whose type must be one that this compressor works on.

        Raises:
            ConfigError: If it is not.
        """
        if values.dtype != FLOAT32 and not self.takes_integers:
            raise ConfigError(
                f"compress: {self.name} needs elements of type float32, got {values.dtype}"
            )
        return values

    def chance(self, seed: int) -> np.random.Generator:
        """Return random numbers of this rank and step."""
        return np.random.Generator(np.random.SFC64([seed, self.rank, 0x52494E47]))


def short(value: float) -> np.float32:
    """Return a float32 of 12 significant bits that is not below `value` >= 0.

    Multiples of it by whole numbers below 4096 are exact in float32, and so are their sums; so
    sums do not depend on the order of additions.
    """
    mantissa, exponent = np.frexp(np.float64(value))
    return np.float32(np.ldexp(np.ceil(mantissa * 4096), exponent - 12))


def near_square(elements: int) -> tuple[int, int]:
    """Return rows and columns of the least matrix, nearly square, that holds so many elements."""
    rows = max(int(np.ceil(np.sqrt(elements))), 1)
    return rows, max(-(-elements // rows), 1)
