"""Binomial tree: fewest steps, for broadcasts and reductions of small tensors."""

from __future__ import annotations

from dataclasses import replace

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.powers import binomial_parents, powers_below
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
    check_root,
)


def binomial_broadcast(ranks: int, root: int = 0) -> Schedule:
    """Return a schedule in which each rank that has the tensor sends it to one that has not.

    Raises:
        ScheduleError: If `ranks` < 1, or `root` is none of the ranks.
    """
    check_ranks("binomial_broadcast", ranks)
    check_root("binomial_broadcast", root, ranks)
    parts = []
    for step, distance in enumerate(reversed(powers_below(ranks))):
        near = binomial_parents(ranks, distance)
        src, dst = (root + near) % ranks, (root + near + distance) % ranks
        parts.append(Columns.transfers(step, src, dst, 0, Op.COPY))
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.BROADCAST, "binomial", ranks, 1, rows, root)


def binomial_reduce(ranks: int, root: int = 0) -> Schedule:
    """Return a schedule in which, in each step, half of the ranks with a sum add it to another's.

    Raises:
        ScheduleError: If `ranks` < 1, or `root` is none of the ranks.
    """
    check_ranks("binomial_reduce", ranks)
    check_root("binomial_reduce", root, ranks)
    parts = []
    for step, distance in enumerate(powers_below(ranks)):
        near = binomial_parents(ranks, distance)
        src, dst = (root + near + distance) % ranks, (root + near) % ranks
        parts.append(Columns.transfers(step, src, dst, 0, Op.REDUCE))
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.REDUCE, "binomial", ranks, 1, rows, root)


def binomial_broadcast_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of ceil(log2 n) messages of S, all of them sent by the root."""
    return _cost(ranks, size_bytes, fabric, busiest_sends=len(powers_below(ranks)))


def binomial_reduce_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of ceil(log2 n) messages of S in sequence; each rank sends one at most."""
    return _cost(ranks, size_bytes, fabric, busiest_sends=min(1, ranks - 1))


def _cost(ranks: int, size_bytes: int, fabric: AlphaBeta, busiest_sends: int) -> Cost:
    steps = len(powers_below(ranks))
    step_ps = fabric.worst_latency_ps(ranks) + fabric.port_ps(size_bytes)
    return Cost(steps * step_ps, busiest_sends * size_bytes, steps)


def binomial_allreduce(ranks: int) -> Schedule:
    """Return a schedule that reduces to rank 0 by a binomial tree, and broadcasts by the same one.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    up, down = binomial_reduce(ranks), binomial_broadcast(ranks)
    later = replace(down.columns, step=down.columns.step + up.steps)
    rows = ChunkRows(Columns.joined([up.columns, later]))
    return Schedule(Collective.ALLREDUCE, "binomial", ranks, 1, rows)


def binomial_allreduce_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of a reduce and a broadcast."""
    up = binomial_reduce_cost(ranks, size_bytes, fabric)
    down = binomial_broadcast_cost(ranks, size_bytes, fabric)
    return Cost(up.time_ps + down.time_ps, down.sent_bytes, up.latency_terms + down.latency_terms)


ALGORITHM = Algorithm(
    "binomial",
    Collective.ALLREDUCE,
    "binomial tree",
    lambda r: binomial_allreduce(r.ranks),
    lambda r: binomial_allreduce_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#594ddd", "+"),
)
