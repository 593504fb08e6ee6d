"""Rings of several strides, one way round each."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms.common import edge_disjoint_rings as rings
from ringleaf.collectives.schedule import Collective


def _segments(r: Request) -> int:
    if r.segments is not None:
        return r.segments
    return rings.rings_segments(r.ranks, r.size_bytes, r.fabric, r.embedding, one_way=True)


ALGORITHM = Algorithm(
    "strides",
    Collective.ALLREDUCE,
    "one-way rings of several strides",
    lambda r: rings.strides_allreduce(r.ranks, r.embedding, _segments(r)),
    lambda r: rings.rings_cost(r.ranks, r.size_bytes, r.fabric, _segments(r)),
    look=Look("#9558f8", "$Z$"),
    placed=True,
)
