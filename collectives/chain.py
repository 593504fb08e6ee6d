"""Pipelined chain: for broadcasts and reductions of large tensors."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.schedule import (
    Collective,
    Columns,
    Op,
    Rows,
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


def _chain(ranks: int, segments: int, first: int, op: Op) -> Rows:
    """Return the rows by step: segment s makes hop h in step s + h."""
    segment, hop = np.ogrid[:segments, : ranks - 1]
    src = first + hop
    rows = Columns.transfers(segment + hop, src % ranks, (src + 1) % ranks, segment, op)
    return Rows(rows.in_steps(rows.start))


def chain_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int) -> Cost:
    """Return the cost of filling the chain of n - 1 hops, and of one segment after the other."""
    if ranks < 2:
        return Cost(0, 0, 0)
    hops = ranks - 1
    segment_ps = fabric.port_ps(size_bytes / segments)
    time_ps = hops * fabric.worst_latency_ps(ranks) + (hops + segments - 1) * segment_ps
    return Cost(time_ps, size_bytes, hops)
