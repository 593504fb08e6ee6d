"""Recursive halving-doubling."""

from __future__ import annotations

from ringleaf.collectives import halving_doubling
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "halvingdoubling",
    Collective.ALLREDUCE,
    "recursive halving-doubling",
    lambda r: halving_doubling.halving_doubling_allreduce(r.ranks),
    lambda r: halving_doubling.halving_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#1f9d8b", "^"),
)
