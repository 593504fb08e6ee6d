"""Recursive doubling: log2(n) exchanges of whole tensors, the fewest steps of any allreduce."""

from __future__ import annotations

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.powers import Fold
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks


def recursive_doubling_allreduce(ranks: int) -> Schedule:
    """Return a schedule in which pairs exchange tensors, ever farther apart, and both add.

    With a number of ranks that is no power of two, the first ones pair up (`Fold`). Each exchange
    sends from one of two places, the tensor and a layer of scratch memory, and adds in the other,
    which has a copy by then: what was sent must not change until the peer has acknowledged it, and
    no exchange waits for that.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
        in MPICH", IJHPCA 19(1), 2005.
    """
    check_ranks("recursive_doubling_allreduce", ranks)
    fold = Fold(ranks, chunks=1)
    first, rank_of, i = fold.first_step, fold.rank_of, np.arange(fold.power)
    parts = [fold.before()]
    if (
        fold.levels % 2
    ):  # the first of these exchanges sends the copy, so the last adds in the tensor
        parts.append(Columns.transfers(first, rank_of, rank_of + ranks, 0, Op.COPY))
        first += 1
    for level in range(fold.levels):
        step, partner = first + level, rank_of[i ^ (1 << level)]
        here = ranks * ((fold.levels - level) % 2)
        there = ranks - here
        if level > 0 or here == 0:
            parts.append(Columns.transfers(step, rank_of + here, rank_of + there, 0, Op.COPY))
        parts.append(Columns.transfers(step, rank_of + here, partner + there, 0, Op.REDUCE))
    parts.append(fold.after(first + fold.levels))
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.ALLREDUCE, "recursivedoubling", ranks, 1, rows, scratch=1)


def recursive_doubling_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost: ceil(log2 n) messages of S, and one more if n is no power of two."""
    levels = ranks.bit_length() - 1
    extra = ranks > 1 << levels
    cost = steps_cost([levels + 2 * extra], [size_bytes], ranks, fabric)
    return Cost(cost.time_ps, (levels + extra) * size_bytes, cost.latency_terms)


ALGORITHM = Algorithm(
    "recursivedoubling",
    Collective.ALLREDUCE,
    "recursive doubling",
    lambda r: recursive_doubling_allreduce(r.ranks),
    lambda r: recursive_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#24af17", "8"),
)
