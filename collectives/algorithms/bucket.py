"""Bucket algorithms: rings in all directions of a torus at once, each on a part of the tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.blueconnect import blueconnect_allreduce, blueconnect_cost
from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.grid import turned_places
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Schedule,
    check_ranks,
)


def bucket_allreduce(
    ranks: int, hierarchy: Sequence[int] = (), embedding: GridEmbedding | None = None
) -> Schedule:
    """Return a schedule that cuts the tensor in a part for each direction of each dimension.

    Each part reduce-scatters in a ring of one dimension after the other, and gathers back. Parts
    begin with different dimensions, and half of them go the other way round, so that in a torus
    each link carries one part at a time in each direction.

    Args:
        ranks: Number of participants.
        hierarchy: Sizes of the dimensions, whose product is `ranks`; one ring, if it is not.
        embedding: A grid that is taken instead, if it has one: HammingMesh's rows and columns go
            on from board to board.

    Raises:
        ScheduleError: If `ranks` < 1.

    Source:
        Jain and Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus
        interconnects", ICS 2010; Sack and Gropp, "Collective algorithms for multiported torus
        networks", ACM TOPC 1(2), 2015.
    """
    check_ranks("bucket_allreduce", ranks)
    sizes, order = _dimensions(ranks, hierarchy, embedding)
    rank_at = np.array(order, np.int64)
    parts = []
    for number, (turn, mirrored) in enumerate(_turns(sizes)):
        turned = (*sizes[turn:], *sizes[:turn])
        rows = blueconnect_allreduce(ranks, turned).columns
        back = rank_at[turned_places(sizes, turn, mirrored=mirrored)]
        parts.append(
            Columns(
                rows.step,
                back[rows.src],
                back[rows.dst],
                rows.start + number * ranks,
                rows.stop + number * ranks,
                rows.op,
                np.full_like(rows.step, number),
            )
        )
    rows = Columns.joined(parts).in_steps()
    chunks = len(parts) * ranks
    return Schedule(Collective.ALLREDUCE, "bucket", ranks, chunks, ChunkRows(rows))


def bidirectional_ring_allreduce(ranks: int) -> Schedule:
    """Return a schedule of two rings, one each way round, on half of the tensor each.

    Raises:
        ScheduleError: If `ranks` < 1.
    """
    schedule = bucket_allreduce(ranks)
    return Schedule(Collective.ALLREDUCE, "biring", ranks, schedule.chunks, schedule.rows)


def bucket_cost(
    ranks: int,
    hierarchy: Sequence[int],
    size_bytes: int,
    fabric: AlphaBeta,
    embedding: GridEmbedding | None = None,
) -> Cost:
    """Return the cost where ranks have one port: all parts share it, and wait at the same times.

    On a torus, whose ranks have a port for each direction, bytes take a part of that time.
    """
    sizes, _ = _dimensions(ranks, hierarchy, embedding)
    whole = blueconnect_cost(ranks, sizes, size_bytes, fabric)
    return Cost(whole.time_ps, whole.sent_bytes, whole.latency_terms)


def _dimensions(
    ranks: int, hierarchy: Sequence[int], embedding: GridEmbedding | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sizes of the dimensions that have more than one rank, and ranks by place."""
    fits = prod(hierarchy) == ranks
    return (embedding or GridEmbedding()).grid_of("bucket", ranks, hierarchy if fits else ())


def _turns(sizes: tuple[int, ...]) -> list[tuple[int, bool]]:
    """Return for each part the dimension that it begins with, and whether it goes backwards."""
    return [(turn, mirrored) for mirrored in (False, True) for turn in range(len(sizes))]


ALGORITHM = Algorithm(
    "bucket",
    Collective.ALLREDUCE,
    "bucket in all directions",
    lambda r: bucket_allreduce(r.ranks, r.hierarchy),
    lambda r: bucket_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric),
    look=Look("#dd8179", "1"),
    placed=True,
)
