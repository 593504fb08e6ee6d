"""All pairs."""

from __future__ import annotations

from ringleaf.collectives import allpairs
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "allpairs",
    Collective.ALLREDUCE,
    "all pairs",
    lambda r: allpairs.all_pairs_allreduce(r.ranks),
    lambda r: allpairs.all_pairs_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#6eafc8", "x"),
)
