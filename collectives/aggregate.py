"""In-network allreduce: switches add up what the ranks send, and multicast the sum."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost, in_network_bound_ps
from ringleaf.collectives.schedule import Aggregate, Collective, Schedule, check_ranks


def in_network_allreduce(ranks: int, algorithm: str = "switchml") -> Schedule:
    """Return a schedule of one row, the whole tensor; the system itself decides how to slice it.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Sapio et al., "Scaling distributed machine learning with in-network aggregation",
        NSDI 2021.
    """
    check_ranks("in_network_allreduce", ranks)
    rows = (Aggregate(0, tuple(range(ranks)), 0),) if ranks > 1 else ()
    return Schedule(Collective.ALLREDUCE, algorithm, ranks, 1, rows)


def in_network_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return S / B and one round trip: the sum streams down while the rest streams up."""
    time_ps = in_network_bound_ps(ranks, size_bytes, fabric)
    return Cost(time_ps, size_bytes, 1) if ranks > 1 else Cost(0, 0, 0)


def in_network_algorithm(name: str, title: str, look: Look | None = None) -> Algorithm:
    """Return the algorithm that has an aggregation system do an allreduce.

    Args:
        name: The system's name.
        title: Its name in texts.
        look: Its look in figures; None: chosen by its name.
    """
    return Algorithm(
        name,
        Collective.ALLREDUCE,
        title,
        lambda r: in_network_allreduce(r.ranks, name),
        lambda r: in_network_cost(r.ranks, r.size_bytes, r.fabric),
        in_network=True,
        look=look,
    )
