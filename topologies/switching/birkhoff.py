"""A matrix of rates as a sequence of matchings, each with its share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ringleaf.errors import ScheduleError

Permutation = tuple[int, ...]
"""The receiver of each sender."""


def decompose(matrix: Sequence[Sequence[Fraction]]) -> list[tuple[Fraction, Permutation]]:
    """Return permutations with weights that add up to a matrix, the heaviest first.

    Each time it takes the permutation whose least entry is the greatest.

    Args:
        matrix: Entries that are at least 0, with equal sums of all rows and columns.

    Raises:
        ScheduleError: If sums are not equal.

    Source:
        Birkhoff, "Tres observaciones sobre el algebra lineal", 1946; von Neumann, 1953.
    """
    left = [[Fraction(entry) for entry in row] for row in matrix]
    sums = {sum(row) for row in left} | {sum(column) for column in zip(*left, strict=True)}
    if len(sums) != 1:
        raise ScheduleError(f"decompose: rows and columns must have one sum, got {min(sums)}")
    parts = []
    while any(any(row) for row in left):
        permutation = _widest(left)
        weight = min(left[row][column] for row, column in enumerate(permutation))
        for row, column in enumerate(permutation):
            left[row][column] -= weight
        parts.append((weight, permutation))
    return parts


def _widest(matrix: Sequence[Sequence[Fraction]]) -> Permutation:
    """Return the permutation of positive entries whose least is the greatest."""
    levels = sorted({entry for row in matrix for entry in row if entry > 0})
    best: Permutation = ()
    low, high = 0, len(levels) - 1
    while low <= high:
        middle = (low + high) // 2
        permutation = _permutation(matrix, levels[middle])
        if permutation:
            best, low = permutation, middle + 1
        else:
            high = middle - 1
    return best


def _permutation(matrix: Sequence[Sequence[Fraction]], least: Fraction) -> Permutation:
    """Return a permutation of entries that are no less; none if there is none."""
    import networkx as nx

    size = len(matrix)
    graph: nx.Graph[tuple[int, int]] = nx.Graph()
    rows = [(0, row) for row in range(size)]
    graph.add_nodes_from(rows)
    graph.add_edges_from(
        ((0, row), (1, column))
        for row in range(size)
        for column in range(size)
        if matrix[row][column] >= least
    )
    pairs = nx.bipartite.hopcroft_karp_matching(graph, rows)
    if any(row not in pairs for row in rows):
        return ()
    return tuple(pairs[row][1] for row in rows)
