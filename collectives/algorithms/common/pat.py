"""Parallel aggregated trees: a binomial tree for each chunk, whose farthest edges come first.

In Bruck's all-gather the last and farthest messages are the largest; here they are the smallest,
so that most bytes stay near.
"""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.powers import binomial_parents, powers_below
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks


def pat_all_gather(ranks: int) -> Schedule:
    """Return a schedule in which chunk c goes from rank c to c + 2^k, ..., c + 1, from all at once.

    Rank c + o, with o a multiple of 2^(k+1), passes chunk c on to c + o + 2^k.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
        arXiv 2506.20252, 2025; without its limit of buffers, as these ranks gather in place.
    """
    check_ranks("pat_all_gather", ranks)
    farthest_first = reversed(powers_below(ranks))
    parts = [_edges(ranks, distance, step, Op.COPY) for step, distance in enumerate(farthest_first)]
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.ALL_GATHER, "pat", ranks, ranks, rows)


def pat_reduce_scatter(ranks: int) -> Schedule:
    """Return the all-gather backwards: sums of chunk c go up its tree to rank c.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Jeaugey, "PAT", arXiv 2506.20252, 2025, as for the all-gather.
    """
    check_ranks("pat_reduce_scatter", ranks)
    parts = [
        _edges(ranks, distance, step, Op.REDUCE)
        for step, distance in enumerate(powers_below(ranks))
    ]
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.REDUCE_SCATTER, "pat", ranks, ranks, rows)


def _edges(ranks: int, distance: int, step: int, op: Op) -> Columns:
    """Return all trees' edges of one length: down to copy, up to reduce."""
    near, src = binomial_parents(ranks, distance)[None, :], np.arange(ranks)[:, None]
    chunk, dst = (src - near) % ranks, (src + distance) % ranks
    ends = (src, dst) if op is Op.COPY else (dst, src)
    return Columns.transfers(step, *ends, chunk, op)


def pat_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of messages with the chunks of all trees that pass there."""
    counts = [len(binomial_parents(ranks, distance)) for distance in powers_below(ranks)[::-1]]
    return steps_cost(
        [1] * len(counts), [count * size_bytes / ranks for count in counts], ranks, fabric
    )
