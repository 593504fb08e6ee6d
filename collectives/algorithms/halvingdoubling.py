"""Recursive halving, then recursive doubling: 2 log2(n) steps, and no byte more than a ring."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.powers import Fold
from ringleaf.collectives.rows import Column
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks
from ringleaf.collectives.symmetric_rows import SymmetricRows
from ringleaf.collectives.symmetry import Symmetry


def halving_doubling_allreduce(ranks: int) -> Schedule:
    """Return a schedule that exchanges halves with ever farther partners, then gives sums back.

    Neighbours exchange the largest halves. With a number of ranks that is no power of two,
    the first ones pair up (`Fold`).

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
        in MPICH", IJHPCA 19(1), 2005.
    """
    check_ranks("halving_doubling_allreduce", ranks)
    fold = Fold(ranks, chunks=_power_of_two(ranks))

    def make() -> Columns:
        after = fold.after(fold.first_step + 2 * fold.levels)
        return Columns.joined([fold.before(), *_exchange(fold), after])

    if ranks == fold.power > 1:
        rows: ChunkRows = SymmetricRows(
            _symmetry(fold), make, rows=2 * ranks * (ranks - 1), steps=2 * fold.levels
        )
    else:
        rows = ChunkRows(make())
    return Schedule(Collective.ALLREDUCE, "halvingdoubling", ranks, fold.power, rows)


def _symmetry(fold: Fold) -> Symmetry:
    """Return what ranks have in common if all take part from the beginning."""
    rank, ranks = np.arange(fold.power), fold.power

    def rows_of(rank: int) -> Columns:
        return Columns.joined(_exchange(fold, rank))

    return Symmetry(
        kind=np.zeros(ranks, np.int64),
        peers=rank[:, None] ^ (1 << np.arange(fold.levels)),
        rows_of=rows_of,
        is_even=True,
        messages=2 * ranks * fold.levels,
        is_chain=True,
    )


def _power_of_two(ranks: int) -> int:
    """Return the largest power of two that is no more than `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def _exchange(fold: Fold, only: int | None = None) -> Iterator[Columns]:
    """Yield the steps; in each, participants exchange blocks with a partner.

    With `only`, each step has that participant and its partner.
    """
    power, levels, rank_of, first_step = fold.power, fold.levels, fold.rank_of, fold.first_step
    i = np.arange(power)
    for level in range(levels):
        if only is not None:
            i = np.sort([only, only ^ (1 << level)])
        partner, size = i ^ (1 << level), power >> (level + 1)
        start = _first_chunk(partner, level + 1, power)
        step = first_step + level
        yield Columns.transfers(step, rank_of[i], rank_of[partner], start, Op.REDUCE, size=size)
    for level in reversed(range(levels)):
        if only is not None:
            i = np.sort([only, only ^ (1 << level)])
        partner, size = i ^ (1 << level), power >> (level + 1)
        start = _first_chunk(i, level + 1, power)
        step = first_step + 2 * levels - 1 - level
        yield Columns.transfers(step, rank_of[i], rank_of[partner], start, Op.COPY, size=size)


def _first_chunk(i: Column, levels: int, power: int) -> Column:
    """Return the first chunks that participants are still in charge of after some halvings.

    Bit k of `i` picks the half at level k.
    """
    start = np.zeros_like(i)
    for level in range(levels):
        start += (power >> (level + 1)) * (i >> level & 1)
    return start


def halving_doubling_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost: 2 log2(p) messages, 2 (p - 1) / p S bytes for p = 2^i; else 2 of S more."""
    power = _power_of_two(ranks)
    halves = [size_bytes / (2 << level) for level in range(power.bit_length() - 1)]
    fold = [(2, float(size_bytes))] if ranks > power else []
    steps = fold + [(2, half) for half in halves]
    cost = steps_cost([count for count, _ in steps], [size for _, size in steps], ranks, fabric)
    # In a pair, one sends the tensor before and the other after: nobody sends it twice.
    return Cost(cost.time_ps, cost.sent_bytes - len(fold) * size_bytes, cost.latency_terms)


ALGORITHM = Algorithm(
    "halvingdoubling",
    Collective.ALLREDUCE,
    "recursive halving-doubling",
    lambda r: halving_doubling_allreduce(r.ranks),
    lambda r: halving_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#1f9d8b", "^"),
    symmetric=True,
)
