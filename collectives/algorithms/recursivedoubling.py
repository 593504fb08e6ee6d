"""Recursive doubling."""

from __future__ import annotations

from ringleaf.collectives import doubling
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "recursivedoubling",
    Collective.ALLREDUCE,
    "recursive doubling",
    lambda r: doubling.recursive_doubling_allreduce(r.ranks),
    lambda r: doubling.recursive_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#24af17", "8"),
)
