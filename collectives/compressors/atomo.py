"""ATOMO: a few singular triples of a matrix, drawn at random, so that the result is unbiased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ringleaf.collectives.compression.member import Member, near_square
from ringleaf.collectives.compression.settings import parse_settings
from ringleaf.collectives.sparse.stream import SPARSE_STREAM
from ringleaf.core.tensors import Array


def probabilities(sizes: Array, budget: int) -> Array:
    """Return each atom's probability: in proportion to its size, at most 1, `budget` together.

    Args:
        sizes: (atoms,), at least 0, at least `budget` of them above 0.
        budget: The sum of all probabilities.
    """
    chances = np.zeros(sizes.size)
    rest = np.arange(sizes.size)
    left = float(budget)
    while rest.size and left > 0:
        shares = sizes[rest] * (left / sizes[rest].sum())
        full = shares >= 1
        if not full.any():
            chances[rest] = shares
            break
        chances[rest[full]] = 1
        left -= np.count_nonzero(full)
        rest = rest[~full]
        rest = rest[sizes[rest] > 0]
    return chances


def draw(chances: Array, start: float) -> Array:
    """Return the atoms whose interval holds `start` plus a whole number: systematic sampling.

    Each is drawn with its probability, and as many as probabilities add up to, if that is whole.
    """
    ends = np.cumsum(chances)
    ends[-1:] = np.round(ends[-1:], 9)
    return np.flatnonzero(np.ceil(ends - start) > np.ceil(ends - chances - start))


@dataclass
class ATOMO(Member):
    """A compressor to s singular triples; each that is drawn is divided by its probability.

    Ranks' triples differ, so each rank carries numbers for all ranks, of which only its own are
    not zero; their sum is everybody's. Atoms are drawn exactly s at a time (chosen; ATOMO draws
    each by itself): the probabilities are the same, and so is the variance, as singular vectors
    are orthogonal.

    Source:
        Wang, Sievert, Liu, Charles, Papailiopoulos and Wright, "ATOMO: communication-efficient
        learning via atomic sparsification", NeurIPS 2018, algorithm 1 and section 4.
    """

    codec = SPARSE_STREAM
    is_unbiased: ClassVar[bool] = True
    wants_feedback: ClassVar[bool] = False
    name: ClassVar[str] = "atomo"
    budget: int = 3

    def carry(self, values: Array, seed: int) -> Array:
        """Return (ranks, s, rows + columns) numbers, flat: those of this rank, else zeros."""
        rows, columns = near_square(values.size)
        padded = np.zeros(rows * columns, np.float32)
        padded[: values.size] = values
        left, sizes, right = np.linalg.svd(padded.reshape(rows, columns), full_matrices=False)
        budget = self._atoms(values.size)
        filled = min(budget, int(np.count_nonzero(sizes)))
        carried = np.zeros((self.ranks, budget, rows + columns), np.float32)
        if filled:
            chances = probabilities(sizes.astype(np.float64), filled)
            for place, atom in enumerate(draw(chances, self.chance(seed).random())[:budget]):
                size = sizes[atom] / np.float32(chances[atom])
                carried[self.rank, place, :rows] = left[:, atom] * size
                carried[self.rank, place, rows:] = right[atom]
        return carried.reshape(-1)

    def own(self, carried: Array, elements: int) -> Array:
        """Return the sum of all triples' matrices that are there."""
        rows, columns = near_square(elements)
        atoms = carried.reshape(-1, rows + columns)
        return np.ascontiguousarray((atoms[:, :rows].T @ atoms[:, rows:]).reshape(-1)[:elements])

    def result(self, total: Array, elements: int) -> Array:
        """Return the sum of all ranks' matrices."""
        return self.own(total, elements)

    def _atoms(self, elements: int) -> int:
        return min(self.budget, *near_square(elements))


def parse(text: str, where: str) -> ATOMO:
    """Return the compressor for the text behind the colon; errors begin with `where`."""
    settings = parse_settings(text or "3", where)
    return ATOMO(settings.whole(settings.first, 1, 1 << 16))


COMPRESSOR = parse
