"""Numbers of the places of a grid, whose dimensions are counted in another order."""

from __future__ import annotations

from math import prod

import numpy as np

from ringleaf.collectives.rows import Column


def turned_places(sizes: tuple[int, ...], turn: int, *, mirrored: bool = False) -> Column:
    """Return the place of each number whose digits begin with dimension `turn`, then the next.

    Args:
        sizes: The dimensions; place p is at p % sizes[0] in the first.
        turn: The dimension of the fastest digit.
        mirrored: Whether digits count backwards, modulo their dimension.
    """
    number = np.arange(prod(sizes))
    place = np.zeros_like(number)
    for dimension in (*range(turn, len(sizes)), *range(turn)):
        size = sizes[dimension]
        digit = number % size
        place += (-digit % size if mirrored else digit) * prod(sizes[:dimension])
        number //= size
    return place
