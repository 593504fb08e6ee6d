"""Hierarchical ring: reduce-scatter inside each machine, a ring across them, all-gather inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.blueconnect import blueconnect_allreduce, blueconnect_cost
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.schedule import Collective, Schedule


def hierarchical_ring_allreduce(ranks: int, hierarchy: Sequence[int] = ()) -> Schedule:
    """Return a schedule of two levels: the innermost groups of ranks, and all groups.

    The ranks of a group reduce-scatter in a ring. Ranks with the same number in their groups then
    form a ring across all groups, on their part of the tensor; a group's rings run beside each
    other, so that all NICs of a machine work. At last each group gathers. It is BlueConnect on
    the innermost level and the rest, whatever levels the rest may have.

    Args:
        ranks: Number of participants.
        hierarchy: Sizes of the levels, innermost first, whose product is `ranks`; empty for
            a single group, which is a plain ring.

    Raises:
        ScheduleError: If `ranks` < 1, or the product is not `ranks`.

    Source:
        Horovod's hierarchical allreduce (HOROVOD_HIERARCHICAL_ALLREDUCE), which does the same with
        NCCL inside machines and MPI across them.
    """
    whole = blueconnect_allreduce(ranks, hierarchy)
    if len(hierarchy) > 2:
        whole = blueconnect_allreduce(ranks, two_levels(ranks, hierarchy))
    return replace(whole, algorithm="hierring")


def two_levels(ranks: int, hierarchy: Sequence[int]) -> tuple[int, ...]:
    """Return the innermost level, and one of all others, of a hierarchy of so many ranks."""
    return (hierarchy[0], ranks // hierarchy[0]) if hierarchy else ()


def hierarchical_ring_cost(
    ranks: int, hierarchy: Sequence[int], size_bytes: int, fabric: AlphaBeta
) -> Cost:
    """Return the sum of both levels' rings' costs."""
    return blueconnect_cost(ranks, two_levels(ranks, hierarchy), size_bytes, fabric)


ALGORITHM = Algorithm(
    "hierring",
    Collective.ALLREDUCE,
    "hierarchical ring",
    lambda r: hierarchical_ring_allreduce(r.ranks, r.hierarchy),
    lambda r: hierarchical_ring_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric),
    look=Look("#6f9a1e", "d"),
    placed=True,
    symmetric=True,
)
