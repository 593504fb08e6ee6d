"""Bruck all-to-all."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.common import bruck
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "alltoall-bruck",
    Collective.ALL_TO_ALL,
    "Bruck all-to-all",
    lambda r: bruck.bruck_all_to_all(r.ranks),
    lambda r: bruck.bruck_all_to_all_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#e08a2b", "^"),
)
