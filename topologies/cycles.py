"""Edge-disjoint Hamiltonian cycles of grids whose dimensions close into rings.

Source:
    Two cycles in every two-dimensional torus: Bae, AlBdaiwi and Bose, "Edge-disjoint Hamiltonian
    cycles in two-dimensional torus", IJMMS 2004:25, which gives formulas. Here a search finds
    them for any number of dimensions: it begins with the rings of each dimension, and exchanges
    the opposite edges of squares until all rings of a kind are one cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod
from random import Random

Cycle = tuple[int, ...]
"""All places of a grid, in the order of a closed way; it begins with place 0."""

SHORTEST = 3
"""Servers of the shortest ring; two are joined by one link, which is no ring."""

TRIES = 200
"""The squares that are looked at, for each place of the grid, before the search begins again.

Grids of up to 1024 places took up to 15.
"""

SEARCHES = 5
"""The searches before there is none. Of 654 grids of up to 200 places (2, 5, 3) took two."""

MOST_PLACES = 4096
"""A search among more places would take minutes."""


@lru_cache(maxsize=64)
def grid_cycles(sizes: tuple[int, ...]) -> tuple[Cycle, ...]:
    """Return cycles through all places of a grid that share no link; there may be none.

    A grid of d rings has d such cycles. A dimension of two places adds none, as each place has one
    link there, but joins two halves.

    Args:
        sizes: Places of each dimension, in the order in which places are numbered: place
            p has coordinate p % sizes[0] in dimension 0.
    """
    places = prod(sizes)
    if places < SHORTEST or places > MOST_PLACES:
        return ()
    rings, pairs = _rings(sizes)
    if not rings:
        return ()
    searches = (
        _Search(places, rings, pairs).run(Random(places + 1000 * i)) for i in range(SEARCHES)
    )
    return next(filter(None, searches), ())


Steps = list[int]
"""The place that follows each place in a dimension."""


def _rings(sizes: Sequence[int]) -> tuple[list[Steps], list[Steps]]:
    """Return the steps along dimensions that are rings, and along those of two places."""
    steps = [(size, _steps(sizes, axis)) for axis, size in enumerate(sizes)]
    return (
        [each for size, each in steps if size >= SHORTEST],
        [each for size, each in steps if size == 2],
    )


def _steps(sizes: Sequence[int], axis: int) -> Steps:
    stride, size = prod(sizes[:axis]), sizes[axis]
    coordinates = [place // stride % size for place in range(prod(sizes))]
    return [place + ((at + 1) % size - at) * stride for place, at in enumerate(coordinates)]


class _Search:
    """Links in as many kinds as there are rings; each kind's links are closed ways.

    Links of a dimension of two places are another kind, of which each place has one.
    """

    def __init__(self, places: int, rings: list[Steps], pairs: list[Steps]) -> None:
        self._steps = [*rings, *pairs]
        self._kinds = len(rings)
        self._peers: list[list[list[int]]] = [[[] for _ in range(places)] for _ in self._steps]
        self._kind: dict[tuple[int, int], int] = {}
        for kind, steps in enumerate(self._steps):
            for place, peer in enumerate(steps):
                if (place, peer) not in self._kind:
                    self._join(kind, place, peer)
        self._parts = [self._count(kind) for kind in range(len(self._steps))]

    def run(self, draw: Random) -> tuple[Cycle, ...]:
        """Return one cycle of each kind; none if the search finds no way."""
        places = len(self._peers[0])
        dimensions = list(product(range(len(self._steps)), repeat=2))
        for _ in range(TRIES * places):
            if sum(self._parts[: self._kinds]) == self._kinds:
                return tuple(self._cycle(kind) for kind in range(self._kinds))
            self._try(draw.randrange(places), *draw.choice(dimensions))
        return ()

    def _try(self, place: int, axis: int, other: int) -> None:
        """Exchange the edges of a square, unless that makes more cycles of them."""
        right, up = self._steps[axis][place], self._steps[other][place]
        corner = self._steps[other][right]
        if self._steps[axis][up] != corner or len({place, right, up, corner}) < 4:
            return
        across, along = ((place, right), (up, corner)), ((place, up), (right, corner))
        first, second = self._kind[across[0]], self._kind[along[0]]
        if first == second or (self._kind[across[1]], self._kind[along[1]]) != (first, second):
            return
        self._exchange(first, across, second, along)
        parts = self._count(first), self._count(second)
        if sum(parts) > self._parts[first] + self._parts[second]:
            self._exchange(first, along, second, across)
        else:
            self._parts[first], self._parts[second] = parts

    def _exchange(
        self,
        first: int,
        ours: tuple[tuple[int, int], ...],
        second: int,
        theirs: tuple[tuple[int, int], ...],
    ) -> None:
        for kind, edges in ((first, ours), (second, theirs)):
            for a, b in edges:
                self._peers[kind][a].remove(b)
                self._peers[kind][b].remove(a)
        for kind, edges in ((first, theirs), (second, ours)):
            for a, b in edges:
                self._join(kind, a, b)

    def _join(self, kind: int, a: int, b: int) -> None:
        self._peers[kind][a].append(b)
        self._peers[kind][b].append(a)
        self._kind[a, b] = self._kind[b, a] = kind

    def _count(self, kind: int) -> int:
        """Return the number of closed ways of a kind; 0 for the kind that has none."""
        if kind >= self._kinds:
            return 0
        left = set(range(len(self._peers[kind])))
        count = 0
        while left:
            left.difference_update(self._follow(kind, next(iter(left))))
            count += 1
        return count

    def _cycle(self, kind: int) -> Cycle:
        return tuple(self._follow(kind, 0))

    def _follow(self, kind: int, start: int) -> list[int]:
        peers = self._peers[kind]
        way: list[int] = []
        before, here = -1, start
        while not way or here != start:
            way.append(here)
            a, b = peers[here]
            before, here = here, (a if a != before else b)
        return way
