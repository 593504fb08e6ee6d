"""Broadcast as scatter and all-gather, reduce as reduce-scatter and gather: for large tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.collectives.algorithms.common.pat import pat_reduce_scatter
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


def scatter_broadcast(ranks: int, root: int = 0) -> Schedule:
    """Return a schedule that scatters the tensor by a binomial tree, and gathers it in a ring.

    Ranks of the tree have the chunks of all below them, so the ring leaves out what is there.

    Raises:
        ScheduleError: If `ranks` < 1, or `root` is none of the ranks.

    Source:
        van de Geijn's algorithm; Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005, section 4.2.
    """
    check_ranks("scatter_broadcast", ranks)
    check_root("scatter_broadcast", root, ranks)
    parts = []
    has = np.zeros((ranks, ranks), bool)  # by distance from the root: which chunks
    has[0] = True
    step = 0
    for distance, near in _tree(ranks):
        for place in near.tolist():
            stop = min(place + 2 * distance, ranks)
            parts.append(_one(step, place, place + distance, stop, root, ranks, Op.COPY))
            has[place + distance, place + distance : stop] = True
        step += 1
    place = np.arange(ranks)
    for turn in range(ranks - 1):
        chunk, dst = (place - turn) % ranks, (place + 1) % ranks
        lacks = ~has[dst, chunk]
        src = place[lacks]
        parts.append(
            Columns.transfers(
                step + turn,
                (root + src) % ranks,
                (root + dst[lacks]) % ranks,
                chunk[lacks],
                Op.COPY,
            )
        )
        has[dst[lacks], chunk[lacks]] = True
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.BROADCAST, "scatter-allgather", ranks, ranks, rows, root)


def gather_reduce(ranks: int, root: int = 0) -> Schedule:
    """Return a schedule that reduce-scatters by parallel trees, and gathers by a binomial tree.

    Raises:
        ScheduleError: If `ranks` < 1, or `root` is none of the ranks.

    Source:
        Rabenseifner's algorithm for reduce, with another reduce-scatter; Thakur, Rabenseifner and
        Gropp, IJHPCA 19(1), 2005, section 4.4.
    """
    check_ranks("gather_reduce", ranks)
    check_root("gather_reduce", root, ranks)
    scattered = pat_reduce_scatter(ranks)
    rows = scattered.columns
    moved = Columns(
        rows.step,
        (rows.src + root) % ranks,
        (rows.dst + root) % ranks,
        rows.start,
        rows.stop,
        rows.op,
        rows.channel,
    )
    parts, step = [moved], scattered.steps
    for distance, near in reversed(list(_tree(ranks))):
        for place in near.tolist():
            stop = min(place + 2 * distance, ranks)
            parts.append(_one(step, place + distance, place, stop, root, ranks, Op.COPY))
        step += 1
    rows_of = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.REDUCE, "reduce-scatter-gather", ranks, ranks, rows_of, root)


def _one(step: int, src: int, dst: int, stop: int, root: int, ranks: int, op: Op) -> Columns:
    """Return the transfer of the farther one's chunks, up to `stop`; ranks are from the root."""
    first = max(src, dst)
    ends = [(root + src) % ranks], [(root + dst) % ranks]
    return Columns.transfers(step, *ends, [first], op, size=stop - first)


def _tree(ranks: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the lengths of a binomial tree's edges, longest first, and where they begin."""
    for distance in reversed(powers_below(ranks)):
        yield distance, binomial_parents(ranks, distance)


def scatter_broadcast_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost: a tree that halves, then n - 1 messages of S / n bytes, one by one.

    The root sends all chunks but its own twice.
    """
    rounds = ranks - 1
    chunk_bytes = size_bytes / max(ranks, 1)
    tree_ps, levels = _tree_ps(ranks, size_bytes, fabric)
    ring_ps = rounds * (fabric.worst_latency_ps(ranks) + fabric.port_ps(chunk_bytes))
    return Cost(tree_ps + ring_ps, round(2 * rounds * chunk_bytes), levels + rounds)


def gather_reduce_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of two trees, of (n - 1) / n S bytes each at the busiest port.

    The rank with the largest part of the gathering tree below it sends most.
    """
    tree_ps, levels = _tree_ps(ranks, size_bytes, fabric)
    gathered = max((min(1 << k, ranks - (1 << k)) for k in range(levels)), default=0)
    sent_bytes = (ranks - 1 + gathered) * size_bytes / max(ranks, 1)
    return Cost(2 * tree_ps, round(sent_bytes), 2 * levels)


def _tree_ps(ranks: int, size_bytes: int, fabric: AlphaBeta) -> tuple[int, int]:
    """Return the time of a tree's messages, one after the other, and their number."""
    levels = (ranks - 1).bit_length()
    counts = [min(1 << level, ranks - (1 << level)) for level in range(levels)]
    alpha_ps = fabric.worst_latency_ps(ranks)
    time_ps = sum(alpha_ps + fabric.port_ps(count * size_bytes / ranks) for count in counts)
    return time_ps, levels
