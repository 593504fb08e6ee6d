"""The places of ranks in a topology: which rank does which part of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.rank_order import reordered
from ringleaf.experiments.spec.kinds import GIVEN, SHUFFLED, TOPOLOGY
from ringleaf.topologies.rank_order import around, host_cycles, host_grid

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.collectives.schedule import Schedule
    from ringleaf.topologies.switching.plan import Circuits


def embedding_of(graph: nx.Graph[str], ranks: int) -> GridEmbedding:
    """Return the cycles and grid of a topology, whose first hosts are the ranks."""
    sizes, order = host_grid(graph, ranks)
    is_torus = bool(sizes) and graph.graph["routing"] == "dimension_order"
    return GridEmbedding(host_cycles(graph, ranks), sizes, order, is_torus)


def on_rings(racks: Sequence[int], circuits: Circuits) -> GridEmbedding:
    """Return the ways of ranks round all rings that circuits make for their racks; if any.

    Args:
        racks: The rack of each rank.
        circuits: The circuits that are up.
    """
    group = tuple(sorted(set(racks)))
    own = [[place for place, each in enumerate(racks) if each == rack] for rack in group]
    strides = circuits.rings.get(group, ())
    return GridEmbedding(tuple(around(own, stride) for stride in strides))


def placed(
    build: Callable[[int], Schedule],
    algorithm: Algorithm,
    rank_order: str,
    embedding: GridEmbedding,
    *,
    ranks: int,
    seed: int,
) -> Schedule:
    """Return an algorithm's schedule with ranks in another order.

    Args:
        build: Returns the schedule for a root.
        algorithm: The algorithm; if its ranks have places of their own, only `random` moves them.
            In the network ranks have no order.
        rank_order: One of `RANK_ORDERS` (`ringleaf.experiments.workloads.collective.spec`).
        embedding: The topology's.
        ranks: Number of ranks.
        seed: Of the random order.

    Raises:
        ScheduleError: If the algorithm's ranks can't change places.
    """
    is_placed = algorithm.in_network or (rank_order == TOPOLOGY and algorithm.placed)
    if rank_order == GIVEN or is_placed:
        return build(0)
    order = list(embedding.cycles[0])
    if rank_order == SHUFFLED:
        order = list(range(ranks))
        Random(f"rank order {seed}").shuffle(order)
    return reordered(build(order.index(0)), order)
