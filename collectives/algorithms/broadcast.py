"""Broadcast and reduce: a binomial tree for small tensors, a pipelined chain for large ones."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.binomial import (
    binomial_broadcast,
    binomial_broadcast_cost,
    binomial_reduce,
    binomial_reduce_cost,
)
from ringleaf.collectives.algorithms.chain import chain_broadcast, chain_cost, chain_reduce
from ringleaf.collectives.cost import AlphaBeta, Cost, best_segments, most_segments
from ringleaf.collectives.schedule import Collective, Schedule, check_ranks


def broadcast(
    ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int | None = None, root: int = 0
) -> Schedule:
    """Return the schedule that the model finds faster, or a chain of `segments` if given.

    Raises:
        ScheduleError: If `ranks` < 1, `segments` < 1, or `root` is none of the ranks.
    """
    pieces = _chain_segments(ranks, size_bytes, fabric, segments)
    if pieces is None:
        return binomial_broadcast(ranks, root)
    return chain_broadcast(ranks, pieces, root)


def reduce(
    ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int | None = None, root: int = 0
) -> Schedule:
    """Return the schedule that the model finds faster, or a chain of `segments` if given.

    Raises:
        ScheduleError: If `ranks` < 1, `segments` < 1, or `root` is none of the ranks.
    """
    pieces = _chain_segments(ranks, size_bytes, fabric, segments)
    if pieces is None:
        return binomial_reduce(ranks, root)
    return chain_reduce(ranks, pieces, root)


def broadcast_cost(
    ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int | None = None
) -> Cost:
    """Return the cost of the schedule that `broadcast` returns."""
    pieces = _chain_segments(ranks, size_bytes, fabric, segments)
    if pieces is None:
        return binomial_broadcast_cost(ranks, size_bytes, fabric)
    return chain_cost(ranks, size_bytes, fabric, pieces)


def reduce_cost(
    ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int | None = None
) -> Cost:
    """Return the cost of the schedule that `reduce` returns."""
    pieces = _chain_segments(ranks, size_bytes, fabric, segments)
    if pieces is None:
        return binomial_reduce_cost(ranks, size_bytes, fabric)
    return chain_cost(ranks, size_bytes, fabric, pieces)


def _chain_segments(
    ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int | None
) -> int | None:
    """Return the number of pieces of the tensor for a chain, or None for a binomial tree."""
    check_ranks("broadcast, reduce", ranks)
    if segments is not None:
        return segments
    pieces = best_segments(
        lambda pieces: chain_cost(ranks, size_bytes, fabric, pieces).time_ps,
        most_segments(size_bytes, ranks, rows_per_segment=ranks - 1),
    )
    binomial_ps = binomial_broadcast_cost(ranks, size_bytes, fabric).time_ps
    return pieces if chain_cost(ranks, size_bytes, fabric, pieces).time_ps < binomial_ps else None


ALGORITHM = Algorithm(
    "broadcast",
    Collective.BROADCAST,
    "binomial or chain broadcast",
    lambda r: broadcast(r.ranks, r.size_bytes, r.fabric, r.segments, r.root),
    lambda r: broadcast_cost(r.ranks, r.size_bytes, r.fabric, r.segments),
    look=Look("#e08a2b", "d"),
)
