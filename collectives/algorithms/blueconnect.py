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
from ringleaf.collectives.schedule import Collective, Columns, Op, Schedule, check_ranks
from ringleaf.collectives.symmetric_rows import SymmetricRows
from ringleaf.collectives.symmetry import Symmetry
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
    levels = [(level, size) for level, size in enumerate(sizes) if size > 1]
    steps = 2 * sum(size - 1 for _, size in levels)
    chunks = [2 * (size - 1) * (ranks // prod(sizes[: level + 1])) for level, size in levels]
    rows = SymmetricRows(
        _symmetry(sizes, ranks * steps),
        lambda: _all_rings(sizes, np.arange(ranks)),
        rows=ranks * sum(chunks),
        steps=steps,
    )
    return Schedule(Collective.ALLREDUCE, "blueconnect", ranks, ranks, rows)


def _symmetry(sizes: tuple[int, ...], messages: int) -> Symmetry:
    """Return what ranks have in common: each has two neighbours in a ring of each level."""
    rank = np.arange(prod(sizes))
    neighbours = [
        _turned(rank, sizes, level, by)
        for level, size in enumerate(sizes)
        if size > 1
        for by in (1, -1)
    ]

    def rows_of(rank: int) -> Columns:
        rows = _all_rings(sizes, np.array([rank]), are_met=True)
        return rows.take((rows.src == rank) | (rows.dst == rank))

    return Symmetry(
        kind=np.zeros(len(rank), np.int64),
        peers=np.stack(neighbours or [rank], axis=1),
        rows_of=rows_of,
        is_even=True,
        messages=messages,
        is_chain=True,
    )


def _turned(rank: Column, sizes: tuple[int, ...], level: int, by: int) -> Column:
    """Return ranks with a level's digit turned."""
    size, stride = sizes[level], prod(sizes[:level])
    digit = rank // stride % size
    turned: Column = rank + ((digit + by) % size - digit) * stride
    return turned


def _all_rings(sizes: tuple[int, ...], ranks: Column, *, are_met: bool = False) -> Columns:
    """Return the rings of all levels, of these senders; and of who sends to them, if asked for."""
    parts: list[Columns] = []
    step = 0
    scatters = [(level, -1, Op.REDUCE) for level in range(len(sizes))]
    gathers = [(level, 0, Op.COPY) for level in reversed(range(len(sizes)))]
    for level, offset, op in scatters + gathers:
        src = ranks
        if are_met:
            src = np.unique([ranks, _turned(ranks, sizes, level, -1)])
        parts.append(_rings(sizes, level, src, first_step=step, offset=offset, op=op))
        step += sizes[level] - 1
    return Columns.joined(parts)


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


def _rings(
    sizes: tuple[int, ...], level: int, ranks: Column, *, first_step: int, offset: int, op: Op
) -> Columns:
    """Return a level's rings; digit d first sends block d + `offset`, then each block it got.

    `ranks` are those whose messages are wanted, in order.
    """
    size, stride = sizes[level], prod(sizes[:level])
    block = prod(sizes) // (stride * size)  # chunks that one message moves
    step, src = np.arange(size - 1)[:, None], ranks[None, :]
    digit = src // stride % size
    dst = _turned(src, sizes, level, 1)
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
    symmetric=True,
)
