"""Ring: every rank sends to the next one only, and no link is ever loaded twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.rows import COPY, REDUCE, Column, Columns
from ringleaf.collectives.rules import RuledRows
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
    rows = RuledRows(_Rounds(ranks, reductions=ranks - 1, copies=ranks - 1))
    return Schedule(Collective.ALLREDUCE, "ring", ranks, ranks, rows)


def ring_reduce_scatter(ranks: int) -> Schedule:
    """Return a schedule that leaves the sum of chunk r on rank r, and partial sums elsewhere.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("ring_reduce_scatter", ranks)
    rows = RuledRows(_Rounds(ranks, reductions=ranks - 1, offset=-1))
    return Schedule(Collective.REDUCE_SCATTER, "ring", ranks, ranks, rows)


def ring_all_gather(ranks: int) -> Schedule:
    """Return a schedule that gives chunk r of rank r to all ranks.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("ring_all_gather", ranks)
    rows = RuledRows(_Rounds(ranks, copies=ranks - 1))
    return Schedule(Collective.ALL_GATHER, "ring", ranks, ranks, rows)


@dataclass(frozen=True, slots=True)
class _Rounds:
    """A rule: rank r first sends chunk r + `offset`, then in each step the chunk that it got last.

    Attributes:
        ranks: Ranks, and chunks.
        reductions: Steps that add what they bring; those of `copies` follow.
        copies: Steps that copy.
        offset: The first chunk that rank 0 sends.
    """

    ranks: int
    reductions: int = 0
    copies: int = 0
    offset: int = 0

    @property
    def steps(self) -> int:
        return self.reductions + self.copies

    @property
    def count(self) -> int:
        return self.steps * self.ranks

    def at(self, numbers: Column) -> Columns:
        step, src = np.divmod(numbers, self.ranks)
        chunk = (src + self.offset - step) % self.ranks
        op = np.where(step < self.reductions, REDUCE, COPY)
        dst = src + 1
        dst[dst == self.ranks] = 0
        return Columns(step, src, dst, chunk, chunk + 1, op, np.zeros_like(step))

    def of_chunk(self, chunk: int) -> Column:
        step = np.arange(self.steps)
        return step * self.ranks + (chunk - self.offset + step) % self.ranks


def ring_allreduce_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of 2 (n - 1) messages of S / n bytes, each waiting for the one before."""
    return steps_cost([2 * (ranks - 1)], [size_bytes / ranks], ranks, fabric)


def ring_half_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of reduce-scatter or all-gather, where S is the size of the whole tensor."""
    return steps_cost([ranks - 1], [size_bytes / ranks], ranks, fabric)
