"""Swing: halving and doubling with partners to and fro, so that most of them are near on a ring."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_cost
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.powers import Fold
from ringleaf.collectives.rows import Column
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks


def swing_allreduce(ranks: int) -> Schedule:
    """Return a schedule of exchanges at distances 1, -1, 3, -5, 11, ...: sums of powers of -2.

    Even ranks go one way round and odd ones the other, so that pairs match. In each step a rank
    sends what its partner, and those whom that partner will yet meet, are in charge of. With a
    number of ranks that is no power of two, the first ones pair up (`Fold`).

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        De Sensi, Bonato, Saam and Hoefler, "Swing: short-cutting rings for higher bandwidth
        allreduce", NSDI 2024 (arXiv 2401.09356), its bandwidth-optimal form in one dimension.
    """
    check_ranks("swing_allreduce", ranks)
    power = 1 << ranks.bit_length() - 1
    fold = Fold(ranks, chunks=power)
    levels, first, rank_of = fold.levels, fold.first_step, fold.rank_of
    owned = _owned(power, levels)
    parts = [fold.before()]
    for level in range(levels):
        partner = partners(power, level)
        parts.append(_moved(first + level, rank_of, partner, owned[level + 1][partner], Op.REDUCE))
    for level in reversed(range(levels)):
        partner = partners(power, level)
        step = first + 2 * levels - 1 - level
        parts.append(_moved(step, rank_of, partner, owned[level + 1], Op.COPY))
    parts.append(fold.after(first + 2 * levels))
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.ALLREDUCE, "swing", ranks, power, rows)


def partners(ranks: int, step: int) -> Column:
    """Return each rank's partner in a step: (1 - (-2)^(step+1)) / 3 further, or back if odd."""
    distance = (1 - (-2) ** (step + 1)) // 3
    i = np.arange(ranks)
    return np.asarray((i + np.where(i % 2, -distance, distance)) % ranks)


def _owned(ranks: int, levels: int) -> list[Column]:
    """Return, by the number of steps gone, the chunks that each rank is in charge of, sorted.

    At last each rank has its own chunk; before a step, also those of its partner in that step.
    """
    owned = [np.arange(ranks)[:, None]]
    for level in reversed(range(levels)):
        after = owned[0]
        owned.insert(0, np.sort(np.hstack([after, after[partners(ranks, level)]]), axis=1))
    return owned


def _moved(step: int, rank_of: Column, partner: Column, chunks: Column, op: Op) -> Columns:
    """Return the transfers of a step: row i of `chunks` goes from participant i to its partner."""
    return Columns.transfers(step, rank_of[:, None], rank_of[partner][:, None], chunks, op)


def swing_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of halving and doubling: between ports, partners' distance is the same."""
    return halving_doubling_cost(ranks, size_bytes, fabric)


ALGORITHM = Algorithm(
    "swing",
    Collective.ALLREDUCE,
    "Swing",
    lambda r: swing_allreduce(r.ranks),
    lambda r: swing_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#db1be6", "H"),
)
