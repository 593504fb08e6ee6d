"""Hierarchical ring."""

from __future__ import annotations

from ringleaf.collectives import hierarchical_ring
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "hierring",
    Collective.ALLREDUCE,
    "hierarchical ring",
    lambda r: hierarchical_ring.hierarchical_ring_allreduce(r.ranks, r.hierarchy),
    lambda r: hierarchical_ring.hierarchical_ring_cost(
        r.ranks, r.hierarchy, r.size_bytes, r.fabric
    ),
    look=Look("#6f9a1e", "d"),
    placed=True,
)
