"""Binomial or chain broadcast."""

from __future__ import annotations

from ringleaf.collectives import rooted
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "broadcast",
    Collective.BROADCAST,
    "binomial or chain broadcast",
    lambda r: rooted.broadcast(r.ranks, r.size_bytes, r.fabric, r.segments, r.root),
    lambda r: rooted.broadcast_cost(r.ranks, r.size_bytes, r.fabric, r.segments),
    look=Look("#e08a2b", "d"),
)
