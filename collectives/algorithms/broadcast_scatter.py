"""Broadcast by scatter and all-gather."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.common import scatter_gather
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "broadcast-scatter",
    Collective.BROADCAST,
    "broadcast by scatter and all-gather",
    lambda r: scatter_gather.scatter_broadcast(r.ranks, r.root),
    lambda r: scatter_gather.scatter_broadcast_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#3f7fd1", "o"),
)
