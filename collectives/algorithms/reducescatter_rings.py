"""Reduce-scatter on edge-disjoint cycles."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms.common import edge_disjoint_rings as rings
from ringleaf.collectives.schedule import Collective


def _segments(r: Request) -> int:
    best = rings.rings_segments
    return best(r.ranks, r.size_bytes, r.fabric, r.embedding) if r.segments is None else r.segments


ALGORITHM = Algorithm(
    "reducescatter-rings",
    Collective.REDUCE_SCATTER,
    "reduce-scatter on edge-disjoint cycles",
    lambda r: rings.rings_reduce_scatter(r.ranks, r.embedding, _segments(r)),
    lambda r: rings.rings_cost(r.ranks, r.size_bytes, r.fabric, _segments(r), rounds=1),
    look=Look("#9810f0", "$O$"),
    placed=True,
)
