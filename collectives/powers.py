"""Powers of two: distances of exchanges, and the fold of ranks beyond the largest power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.collectives.rows import Column
from ringleaf.collectives.schedule import Columns, Op


def powers_below(ranks: int) -> list[int]:
    """Return the powers of two below `ranks`, smallest first: ceil(log2 ranks) of them."""
    return [1 << level for level in range((ranks - 1).bit_length())]


def binomial_parents(ranks: int, distance: int) -> Column:
    """Return the places in a binomial tree that have a child `distance`, a power of two, further.

    Places are distances from the root.
    """
    return np.arange(0, ranks - distance, 2 * distance)


@dataclass(frozen=True, slots=True)
class Fold:
    """Participants of an allreduce among a power of two of ranks.

    With another number of ranks, the first ones pair up: the odd one of a pair adds its tensor to
    the even one's before, and gets the result after.

    Attributes:
        ranks: The number of ranks, at least 1.
        chunks: The number of chunks of the tensor.

    Source:
        Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
        in MPICH", IJHPCA 19(1), 2005.
    """

    ranks: int
    chunks: int

    @property
    def power(self) -> int:
        """The number of participants: the largest power of two that is no more than `ranks`."""
        return 1 << self.levels

    @property
    def levels(self) -> int:
        """The number of exchanges in which all participants meet: log2 of their number."""
        return self.ranks.bit_length() - 1

    @property
    def first_step(self) -> int:
        """The step of the first exchange: 1 if ranks pair up before it, else 0."""
        return 1 if self.ranks > self.power else 0

    @property
    def rank_of(self) -> Column:
        """The participants' ranks."""
        i, extra = np.arange(self.power), self.ranks - self.power
        return np.where(i < extra, 2 * i, i + extra)

    def before(self) -> Columns:
        """Return the transfers in which odd ranks of pairs give their tensors."""
        even = self._even()
        return Columns.transfers(0, even + 1, even, 0, Op.REDUCE, size=self.chunks)

    def after(self, step: int) -> Columns:
        """Return the transfers in which odd ranks of pairs get the result, in the given step."""
        even = self._even()
        return Columns.transfers(step, even, even + 1, 0, Op.COPY, size=self.chunks)

    def _even(self) -> Column:
        return 2 * np.arange(self.ranks - self.power)
