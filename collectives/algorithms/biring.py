"""Bidirectional ring."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms import bucket
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "biring",
    Collective.ALLREDUCE,
    "bidirectional ring",
    lambda r: bucket.bidirectional_ring_allreduce(r.ranks),
    lambda r: bucket.bucket_cost(r.ranks, (), r.size_bytes, r.fabric),
    look=Look("#a32eb2", "2"),
)
