"""Bucket on the topology's grid."""

from __future__ import annotations

from dataclasses import replace

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms import bucket
from ringleaf.collectives.schedule import Collective, Schedule


def _schedule(r: Request) -> Schedule:
    """Return the bucket schedule, with the grid of the embedding for its dimensions."""
    schedule = bucket.bucket_allreduce(r.ranks, r.hierarchy, r.embedding)
    return replace(schedule, algorithm="bucket-2d")


ALGORITHM = Algorithm(
    "bucket-2d",
    Collective.ALLREDUCE,
    "bucket on the topology's grid",
    _schedule,
    lambda r: bucket.bucket_cost(r.ranks, r.hierarchy, r.size_bytes, r.fabric, r.embedding),
    look=Look("#10b050", "$2$"),
    placed=True,
)
