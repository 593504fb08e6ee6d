"""BlueConnect: a ring in every level of the hierarchy, on ever smaller parts of the tensor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import gcd, prod
from operator import mul

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.rows import Column
from ringleaf.collectives.schedule import ChunkRows, Collective, Columns, Op, Schedule, check_ranks
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError


def blueconnect_allreduce(ranks: int, hierarchy: Sequence[int] = ()) -> Schedule:
    """Return a schedule that reduce-scatters level by level, innermost first, and gathers back.

    A rank is a number whose digits, innermost first, have the bases of `hierarchy`. In each
    level those ranks form a ring that differ in that level's digit only; each of them takes
    its share of what its group has reduced so far to the next level. Outer levels, where
    links are often fewer or slower, thus carry small parts only.

    Args:
        ranks: Number of participants.
        hierarchy: Sizes of the levels, innermost first, whose product is `ranks`; empty for
            a single level, which is a plain ring.

    Raises:
        ScheduleError: If `ranks` < 1, or the product is not `ranks`.

    Source:
        Cho, Finkler, Kung and Hunter, "BlueConnect: decomposing all-reduce for deep
        learning on heterogeneous network hierarchy", MLSys 2019.
    """
    check_ranks("blueconnect_allreduce", ranks)
    sizes = _check_hierarchy(ranks, hierarchy)
    parts: list[Columns] = []
    step = 0
    for level, size in enumerate(sizes):
        parts.append(_rings(sizes, level, first_step=step, offset=-1, op=Op.REDUCE))
        step += size - 1
    for level in reversed(range(len(sizes))):
        parts.append(_rings(sizes, level, first_step=step, offset=0, op=Op.COPY))
        step += sizes[level] - 1
    rows = ChunkRows(Columns.joined(parts))
    return Schedule(Collective.ALLREDUCE, "blueconnect", ranks, ranks, rows)


def fit_hierarchy(hierarchy: Sequence[int], ranks: int) -> tuple[int, ...]:
    """Return a hierarchy of `ranks` ranks like `hierarchy`, for a job on part of the hosts.

    Innermost first, each level keeps the greatest common divisor of its size and the ranks not
    yet divided up; the factor that remains becomes an outermost level. Levels of one are left out.
    """
    check_ranks("fit_hierarchy", ranks)
    left, sizes = ranks, []
    for size in hierarchy:
        sizes.append(gcd(size, left))
        left //= sizes[-1]
    return tuple(size for size in (*sizes, left) if size > 1)


def _check_hierarchy(ranks: int, hierarchy: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(hierarchy) or (ranks,)
    if min(sizes) < 1 or prod(sizes) != ranks:
        raise ScheduleError(
            "blueconnect_allreduce: product of hierarchy must be "
            f"{format_count(ranks, 'rank')}, got {sizes}"
        )
    return sizes


def _rings(sizes: tuple[int, ...], level: int, *, first_step: int, offset: int, op: Op) -> Columns:
    """Return a level's rings; digit d first sends block d + `offset`, then each block it got."""
    size, stride, ranks = sizes[level], prod(sizes[:level]), prod(sizes)
    block = ranks // (stride * size)  # chunks that one message moves
    step, src = np.ogrid[: size - 1, :ranks]
    digit = src // stride % size
    dst = src + ((digit + 1) % size - digit) * stride
    start = first_chunk(src, sizes, level) + (digit + offset - step) % size * block
    return Columns.transfers(first_step + step, src, dst, start, op, size=block)


def first_chunk(rank: Column, sizes: tuple[int, ...], levels: int) -> Column:
    """Return the first chunks that ranks are still in charge of after some reduce-scatters."""
    chunk, block = np.zeros_like(rank), prod(sizes)
    for size in sizes[:levels]:
        block //= size
        chunk = chunk + rank % size * block
        rank = rank // size
    return chunk


def blueconnect_cost(
    ranks: int, hierarchy: Sequence[int], size_bytes: int, fabrics: AlphaBeta | Sequence[AlphaBeta]
) -> Cost:
    """Return the sum of the rings' costs, level i on `size_bytes` / (p_0 ... p_(i-1)).

    `fabrics` may have a network of its own for each level.
    """
    sizes = _check_hierarchy(ranks, hierarchy)
    levels = [fabrics] * len(sizes) if isinstance(fabrics, AlphaBeta) else list(fabrics)
    if len(levels) != len(sizes):
        raise ScheduleError(
            f"blueconnect_cost: needs a fabric for each of {format_count(len(sizes), 'level')}, "
            f"got {len(levels)}"
        )
    time_ps, sent, terms = 0, 0.0, 0
    for size, part, fabric in zip(sizes, accumulate(sizes, mul), levels, strict=True):
        rounds, payload_bytes = 2 * (size - 1), size_bytes / part
        time_ps += rounds * (fabric.worst_latency_ps(ranks) + fabric.port_ps(payload_bytes))
        sent += rounds * payload_bytes
        terms += rounds
    return Cost(time_ps, round(sent), terms)


ALGORITHM = Algorithm(
    "blueconnect",
    Collective.ALLREDUCE,
    "BlueConnect",
    lambda r: blueconnect_allreduce(r.ranks, r.hierarchy),
    lambda r: blueconnect_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric),
    look=Look("#9467bd", "v"),
    placed=True,
)
