"""Bruck's algorithms: ceil(log2 n) steps for any number of ranks."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.powers import powers_below
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks


def bruck_all_gather(ranks: int) -> Schedule:
    """Return a schedule that doubles what each rank has, with a partner twice as far each time.

    After k steps rank r has the chunks of ranks r to r + 2^k - 1, modulo n, and sends them to rank
    r - 2^k, the last time only as many as are missing there.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for all-to-all
        communications in multiport message-passing systems", IEEE TPDS 8(11), 1997.
    """
    check_ranks("bruck_all_gather", ranks)
    parts = []
    for step, distance in enumerate(powers_below(ranks)):
        offset, src = np.ogrid[: min(distance, ranks - distance), :ranks]
        chunk, dst = (src + offset) % ranks, (src - distance) % ranks
        moved = Columns.transfers(step, src, dst, chunk, Op.COPY)
        parts.append(moved.in_steps(moved.src, moved.start))
    return Schedule(Collective.ALL_GATHER, "bruck", ranks, ranks, ChunkRows(Columns.joined(parts)))


def bruck_all_gather_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of messages of 1, 2, 4, ... chunks of S / n bytes."""
    counts = [min(distance, ranks - distance) for distance in powers_below(ranks)]
    return steps_cost(
        [1] * len(counts), [count * size_bytes / ranks for count in counts], ranks, fabric
    )


def bruck_all_to_all(ranks: int) -> Schedule:
    """Return a schedule that moves chunk d by the powers of two that d consists of.

    Chunks are in rotated order (see `Collective`), so chunk d has to go d ranks further, and all
    ranks move theirs alike. A chunk passes through up to log2(n) ranks: fewer messages than
    pairwise, and more bytes.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997, as for the all-gather.
    """
    check_ranks("bruck_all_to_all", ranks)
    parts = []
    for step, distance in enumerate(powers_below(ranks)):
        chunks = np.arange(ranks)
        src, chunk = np.arange(ranks)[:, None], chunks[chunks & distance > 0][None, :]
        parts.append(Columns.transfers(step, src, (src + distance) % ranks, chunk, Op.COPY))
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.ALL_TO_ALL, "bruck", ranks, ranks, rows)


def bruck_all_to_all_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of ceil(log2 n) steps, each of about half of the chunks."""
    chunks = np.arange(ranks)
    counts = [int(np.count_nonzero(chunks & distance)) for distance in powers_below(ranks)]
    return steps_cost(
        [1] * len(counts), [count * size_bytes / ranks for count in counts], ranks, fabric
    )
