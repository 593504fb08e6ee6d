"""Pairwise all-to-all."""

from __future__ import annotations

from ringleaf.collectives import alltoall
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "alltoall",
    Collective.ALL_TO_ALL,
    "pairwise all-to-all",
    lambda r: alltoall.pairwise_all_to_all(r.ranks),
    lambda r: alltoall.pairwise_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#9467bd", "o"),
)
