"""Ring: every rank sends to the next one only, and no link is ever loaded twice."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.rows import COPY, REDUCE, Columns
from ringleaf.collectives.schedule import Collective, Schedule, check_ranks


def ring_allreduce(ranks: int) -> Schedule:
    """Return a schedule that reduce-scatters round the ring, then all-gathers round the ring.

    The tensor is cut into one chunk per rank; each chunk's sum is formed on its way round,
    one addition per step, and is copied on from the rank that completes it.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
        workstations", JPDC 69(2), 2009.
    """
    check_ranks("ring_allreduce", ranks)
    rows = _rounds(ranks, reductions=ranks - 1, copies=ranks - 1)
    return Schedule(Collective.ALLREDUCE, "ring", ranks, ranks, rows)


def ring_reduce_scatter(ranks: int) -> Schedule:
    """Return a schedule that leaves the sum of chunk r on rank r, and partial sums elsewhere.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("ring_reduce_scatter", ranks)
    rows = _rounds(ranks, reductions=ranks - 1, offset=-1)
    return Schedule(Collective.REDUCE_SCATTER, "ring", ranks, ranks, rows)


def ring_all_gather(ranks: int) -> Schedule:
    """Return a schedule that gives chunk r of rank r to all ranks.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("ring_all_gather", ranks)
    rows = _rounds(ranks, copies=ranks - 1)
    return Schedule(Collective.ALL_GATHER, "ring", ranks, ranks, rows)


def _rounds(ranks: int, *, reductions: int = 0, copies: int = 0, offset: int = 0) -> CirculantRows:
    """Return rows in which rank r first sends chunk r + `offset`, then what it got last.

    Args:
        ranks: Ranks, and chunks.
        reductions: Steps that add what they bring; those of `copies` follow.
        copies: Steps that copy.
        offset: The first chunk that rank 0 sends.
    """
    step = np.arange(reductions + copies)
    none, chunk = np.zeros_like(step), (offset - step) % ranks
    op = np.where(step < reductions, REDUCE, COPY)
    first = Columns(step, none, none + 1, chunk, chunk + 1, op, none)
    return CirculantRows(first, ranks)


def ring_allreduce_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of 2 (n - 1) messages of S / n bytes, each waiting for the one before."""
    return steps_cost([2 * (ranks - 1)], [size_bytes / ranks], ranks, fabric)


def ring_half_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of reduce-scatter or all-gather, where S is the size of the whole tensor."""
    return steps_cost([ranks - 1], [size_bytes / ranks], ranks, fabric)


ALGORITHM = Algorithm(
    "ring",
    Collective.ALLREDUCE,
    "ring",
    lambda r: ring_allreduce(r.ranks),
    lambda r: ring_allreduce_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#3f7fd1", "o"),
    symmetric=True,
)
