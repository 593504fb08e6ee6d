"""SparCML's allreduce algorithms: dense ones, whose messages are sparse streams.

Messages grow from step to step, as the ranks' non-zero elements are seldom the same; each message
is as sparse as its data, and dense where that is smaller.

Source:
    Renggli, Ashkboos, Aghagolzadeh, Alistarh and Hoefler, "SparCML: high-performance sparse
    communication for machine learning", SC '19, section 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost, steps_cost
from ringleaf.collectives.schedule import (
    ALL_OPS,
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
)
from ringleaf.collectives.sparse.stream import SPARSE_STREAM


def recursive_doubling(ranks: int) -> Schedule:
    """Return SSAR_Recursive_double: ranks exchange all they have at distances 1, 2, 4, ...

    With a number of ranks that is no power of two, the first ones pair up: the odd one of a
    pair adds its tensor to the even one's before, and gets the result after.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("recursive_doubling", ranks)
    rows = ChunkRows(Columns.joined(_doubling(ranks)))
    return Schedule(Collective.ALLREDUCE, "ssar-double", ranks, 1, rows, codec=SPARSE_STREAM)


def split_allgather(ranks: int, *, dense_result: bool = False) -> Schedule:
    """Return SSAR_Split_allgather, or DSAR_Split_allgather if the result is taken to be dense.

    Each rank gets its part of everybody's tensor and adds them up; then all gather the sums,
    twice as many in each step (Bruck et al.'s concatenation, which is as good for numbers
    of ranks that are no powers of two). A dense result goes as it is.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    check_ranks("split_allgather", ranks)
    name = "dsar-split" if dense_result else "ssar-split"
    coded = frozenset({Op.REDUCE}) if dense_result else ALL_OPS
    rows = ChunkRows(Columns.joined([_split(ranks), *_allgather(ranks, first_step=ranks - 1)]))
    return Schedule(
        Collective.ALLREDUCE, name, ranks, ranks, rows, codec=SPARSE_STREAM, coded=coded
    )


def recursive_doubling_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of log2(p) messages of S for p = 2^i, else two more, if nothing is zero."""
    power = 1 << (ranks.bit_length() - 1)
    fold = 2 if ranks > power else 0
    cost = steps_cost([power.bit_length() - 1 + fold], [size_bytes], ranks, fabric)
    # In a pair, one sends the tensor before and the other after: nobody sends it twice.
    return Cost(cost.time_ps, cost.sent_bytes - fold // 2 * size_bytes, cost.latency_terms)


def split_allgather_cost(ranks: int, size_bytes: int, fabric: AlphaBeta) -> Cost:
    """Return the cost of 2 (p - 1) / p S bytes, if nothing is zero.

    The p - 1 messages of the split need not wait for one another, so they count one latency
    where the paper counts p - 1.
    """
    part = size_bytes / ranks
    distances = [1 << i for i in range((ranks - 1).bit_length())]
    parts = [min(distance, ranks - distance) * part for distance in distances]
    gather = steps_cost([1] * len(parts), parts, ranks, fabric)
    split_ps = (ranks - 1) * fabric.port_ps(part) + fabric.worst_latency_ps(ranks)
    return Cost(
        gather.time_ps + (split_ps if ranks > 1 else 0),
        gather.sent_bytes + round((ranks - 1) * part),
        gather.latency_terms + (ranks > 1),
    )


def _doubling(ranks: int) -> Iterator[Columns]:
    power = 1 << (ranks.bit_length() - 1)
    extra, levels = ranks - power, power.bit_length() - 1
    even, i = 2 * np.arange(extra), np.arange(power)
    rank_of = np.where(i < extra, 2 * i, i + extra)
    yield Columns.transfers(0, even + 1, even, 0, Op.REDUCE)
    first_step = 1 if extra else 0
    for level in range(levels):
        partner = rank_of[i ^ (1 << level)]
        yield Columns.transfers(first_step + level, rank_of, partner, 0, Op.REDUCE)
    yield Columns.transfers(first_step + levels, even, even + 1, 0, Op.COPY)


def _split(ranks: int) -> Columns:
    """Return the transfers of every chunk c to rank c, in rotated order."""
    step, src = np.ogrid[: ranks - 1, :ranks]
    dst = (src + step + 1) % ranks
    return Columns.transfers(step, src, dst, dst, Op.REDUCE)


def _allgather(ranks: int, first_step: int) -> Iterator[Columns]:
    """Yield steps of distance 1, 2, 4, ... that bring rank r, which has chunk r, those after it."""
    step, distance = first_step, 1
    while distance < ranks:
        src, ahead = np.ogrid[:ranks, : min(distance, ranks - distance)]
        chunks = np.sort((src + ahead) % ranks, axis=1)
        yield Columns.transfers(step, src, (src - distance) % ranks, chunks, Op.COPY)
        step, distance = step + 1, 2 * distance
