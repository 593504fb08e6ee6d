"""Bruck all-gather."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.common import bruck
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "allgather-bruck",
    Collective.ALL_GATHER,
    "Bruck all-gather",
    lambda r: bruck.bruck_all_gather(r.ranks),
    lambda r: bruck.bruck_all_gather_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#e08a2b", "^"),
)
