"""Bucket in all directions."""

from __future__ import annotations

from ringleaf.collectives import bucket
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "bucket",
    Collective.ALLREDUCE,
    "bucket in all directions",
    lambda r: bucket.bucket_allreduce(r.ranks, r.hierarchy),
    lambda r: bucket.bucket_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric),
    look=Look("#dd8179", "1"),
    placed=True,
)
