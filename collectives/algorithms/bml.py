"""BML: parameter servers on all hosts, in the groups of each level of BCube, over all ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.blueconnect import first_chunk
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.grid import turned_places
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Op,
    Schedule,
    check_ranks,
)


def bml_allreduce(
    ranks: int, hierarchy: Sequence[int] = (), embedding: GridEmbedding | None = None
) -> Schedule:
    """Return a schedule that cuts the tensor in a part for each level, where hosts have a port.

    Each part is added up level by level: in a group of n, whose hosts differ in that level's digit
    only, each gets the others' data for its n-th and adds it up. Then sums go back the same way.
    Parts begin with different levels, so that all ports are in use at any time.

    Args:
        ranks: Number of participants.
        hierarchy: Sizes of the levels, if the embedding has no grid; empty for one level, which is
            co-located parameter servers.
        embedding: The grid; its dimensions are the levels.

    Raises:
        ScheduleError: If `ranks` < 1, or the product of sizes is not `ranks`.

    Source:
        Wang et al., "BML: a high-performance, low-cost gradient synchronization algorithm for DML
        training", NeurIPS 2018. Its abstract has the time and the topology; that groups of a
        level exchange directly, and the order of levels, were chosen to have that time.
    """
    check_ranks("bml_allreduce", ranks)
    sizes, order = (embedding or GridEmbedding()).grid_of("bml_allreduce", ranks, hierarchy)
    rank_at = np.array(order, np.int64)
    parts = []
    for turn in range(len(sizes)):
        place = rank_at[turned_places(sizes, turn)]
        for rows in _levels((*sizes[turn:], *sizes[:turn])):
            moved = replace(
                rows,
                src=place[rows.src],
                dst=place[rows.dst],
                start=rows.start + turn * ranks,
                stop=rows.stop + turn * ranks,
                channel=np.full_like(rows.step, turn),
            )
            parts.append(moved)
    joined = Columns.joined(parts).in_steps()
    return Schedule(Collective.ALLREDUCE, "bml", ranks, len(sizes) * ranks, ChunkRows(joined))


def _levels(sizes: tuple[int, ...]) -> Iterator[Columns]:
    """Yield the exchanges of each level: first up, to be added up, then down again."""
    count = len(sizes)
    for level in range(count):
        yield _exchange(sizes, level, step=level, op=Op.REDUCE)
    for level in reversed(range(count)):
        yield _exchange(sizes, level, step=2 * count - 1 - level, op=Op.COPY)


def _exchange(sizes: tuple[int, ...], level: int, *, step: int, op: Op) -> Columns:
    """Return the messages of all hosts to all others of their group, the next ones first.

    They carry the receiver's share up, and the sender's down.
    """
    size, stride, ranks = sizes[level], prod(sizes[:level]), prod(sizes)
    block = ranks // (stride * size)
    turn, src = np.ogrid[1:size, :ranks]
    digit = src // stride % size
    other = (digit + turn) % size
    share = other if op is Op.REDUCE else digit
    start = first_chunk(src, sizes, level) + share * block
    return Columns.transfers(step, src, src + (other - digit) * stride, start, op, size=block)


def bml_cost(
    ranks: int,
    hierarchy: Sequence[int],
    embedding: GridEmbedding,
    size_bytes: int,
    fabric: AlphaBeta,
) -> Cost:
    """Return the cost of 2 k exchanges, in which a host sends 2 (n - 1) / n of S over all ports.

    The rate is that of all ports together; with k of rate B each, bytes take 2 (n - 1) / n S / kB.
    """
    if ranks < 2:
        return Cost(0, 0, 0)
    sizes, _ = embedding.grid_of("bml_cost", ranks, hierarchy)
    messages = 2 * sum(size - 1 for size in sizes)
    sent = 2 * (ranks - 1) / ranks * size_bytes
    terms = 2 * len(sizes)
    port_ps = messages * fabric.port_ps(sent / messages)
    return Cost(terms * fabric.worst_latency_ps(ranks) + port_ps, round(sent), terms)


ALGORITHM = Algorithm(
    "bml",
    Collective.ALLREDUCE,
    "BML",
    lambda r: bml_allreduce(r.ranks, r.hierarchy, r.embedding),
    lambda r: bml_cost(r.ranks, r.hierarchy, r.embedding, r.size_bytes, r.fabric),
    look=Look("#406090", "$B$"),
    placed=True,
)
