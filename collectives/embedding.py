"""The places of ranks in a topology, for algorithms that know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class GridEmbedding:
    """Cycles and a grid whose neighbours are neighbours in the topology, too.

    Attributes:
        cycles: Each has all ranks, in the order of a closed way. Ways share no link.
        sizes: Ranks in each dimension of a grid; empty: there is no grid. In a dimension, ranks
            that differ by one are neighbours, and so are the first and the last.
        ranks: The rank at each place of the grid; place p is at p % sizes[0] in dimension 0.
        is_torus: Whether its dimensions are rings of single links, so that there are two ways to
            the opposite rank, of which packets take one. Else switches join them, or may.
    """

    cycles: tuple[tuple[int, ...], ...] = ()
    sizes: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    is_torus: bool = False

    def cycles_of(self, where: str, ranks: int) -> tuple[tuple[int, ...], ...]:
        """Return the cycles; a single one in the order of ranks, if none are known.

        Raises:
            ScheduleError: If a cycle does not have each rank once.
        """
        cycles = self.cycles or (tuple(range(ranks)),)
        for cycle in cycles:
            check_order(where, cycle, ranks)
        return cycles

    def grid_of(
        self, where: str, ranks: int, hierarchy: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return sizes and ranks of the grid; that of the hierarchy, if none is known.

        Dimensions of one are left out; there is at least one dimension.

        Raises:
            ScheduleError: If the grid does not have each rank once.
        """
        sizes = tuple(size for size in self.sizes or hierarchy if size > 1) or (ranks,)
        if prod(sizes) != ranks:
            raise ScheduleError(
                f"{where}: product of hierarchy must be {format_count(ranks, 'rank')}, got {sizes}"
            )
        order = self.ranks if self.sizes and self.ranks else tuple(range(ranks))
        check_order(where, order, ranks)
        return sizes, order


def check_order(where: str, order: Sequence[int], ranks: int) -> None:
    """Raise ScheduleError unless an order has each rank once."""
    if sorted(order) != list(range(ranks)):
        raise ScheduleError(
            f"{where}: order must have each of {format_count(ranks, 'rank')} once, got {order!r}"
        )
