"""Pipelined chain: for broadcasts and reductions of large tensors."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.cost import AlphaBeta, Cost, best_segments, most_segments
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
    check_root,
    check_segments,
)


def chain_broadcast(ranks: int, segments: int = 1, root: int = 0) -> Schedule:
    """Return a schedule that passes the tensor from rank to rank, in `segments` pieces.

    Raises:
        ScheduleError: If `ranks` < 1, `segments` < 1, or `root` is none of the ranks.
    """
    _check("chain_broadcast", ranks, segments, root)
    rows = _chain(ranks, segments, root, Op.COPY)
    return Schedule(Collective.BROADCAST, "chain", ranks, segments, rows, root)


def chain_reduce(ranks: int, segments: int = 1, root: int = 0) -> Schedule:
    """Return a schedule that adds up the tensor along the chain to `root`, its last rank.

    Raises:
        ScheduleError: If `ranks` < 1, `segments` < 1, or `root` is none of the ranks.
    """
    _check("chain_reduce", ranks, segments, root)
    rows = _chain(ranks, segments, root + 1, Op.REDUCE)
    return Schedule(Collective.REDUCE, "chain", ranks, segments, rows, root)


def _check(where: str, ranks: int, segments: int, root: int) -> None:
    check_ranks(where, ranks)
    check_segments(where, segments)
    check_root(where, root, ranks)


def _chain(ranks: int, segments: int, first: int, op: Op) -> ChunkRows:
    """Return the rows by step: segment s makes hop h in step s + h."""
    segment, hop = np.ogrid[:segments, : ranks - 1]
    src = first + hop
    rows = Columns.transfers(segment + hop, src % ranks, (src + 1) % ranks, segment, op)
    return ChunkRows(rows.in_steps(rows.start))


def chain_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int) -> Cost:
    """Return the cost of filling the chain of n - 1 hops, and of one segment after the other."""
    if ranks < 2:
        return Cost(0, 0, 0)
    hops = ranks - 1
    segment_ps = fabric.port_ps(size_bytes / segments)
    time_ps = hops * fabric.worst_latency_ps(ranks) + (hops + segments - 1) * segment_ps
    return Cost(time_ps, size_bytes, hops)


def chain_allreduce(ranks: int, segments: int = 1) -> Schedule:
    """Return a schedule that adds up along a chain, and passes sums back along it, in pieces.

    Raises:
        ScheduleError: If `ranks` < 1 or `segments` < 1.
    """
    _check("chain_allreduce", ranks, segments, 0)
    segment, hop = np.ogrid[:segments, : ranks - 1]
    step = segment + hop
    up = Columns.transfers(step, hop, hop + 1, segment, Op.REDUCE)
    src = ranks - 1 - hop
    down = Columns.transfers(ranks - 1 + step, src, src - 1, segment, Op.COPY)
    both = Columns.joined([up, down])
    return Schedule(
        Collective.ALLREDUCE, "chain", ranks, segments, ChunkRows(both.in_steps(both.start))
    )


def chain_allreduce_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int) -> Cost:
    """Return the cost of a chain that is twice as long, whose middle ranks send all pieces twice.

    Once sums come back, a port has to send pieces of both ways in turn, which holds up either; the
    term for that, a third of the chain's turns, is fitted to `critical_path`.
    """
    if ranks < 2:
        return Cost(0, 0, 0)
    hops = 2 * (ranks - 1)
    segment_ps = fabric.port_ps(size_bytes / segments)
    turns = hops + segments - 1
    if ranks > 2:
        turns = max(turns, 2 * segments + 2 * hops // 3)
    time_ps = hops * fabric.worst_latency_ps(ranks) + turns * segment_ps
    return Cost(time_ps, size_bytes * (2 if ranks > 2 else 1), hops)


def chain_segments(ranks: int, size_bytes: int, fabric: AlphaBeta) -> int:
    """Return the number of pieces that takes least time by the cost model."""
    most = most_segments(size_bytes, ranks, 2 * (ranks - 1))
    return best_segments(
        lambda segments: chain_allreduce_cost(ranks, size_bytes, fabric, segments).time_ps, most
    )


def _segments(r: Request) -> int:
    if r.segments is None:
        return chain_segments(r.ranks, r.size_bytes, r.fabric)
    return r.segments


ALGORITHM = Algorithm(
    "chain",
    Collective.ALLREDUCE,
    "chain",
    lambda r: chain_allreduce(r.ranks, _segments(r)),
    lambda r: chain_allreduce_cost(r.ranks, r.size_bytes, r.fabric, _segments(r)),
    look=Look("#6cb67e", "3"),
)
