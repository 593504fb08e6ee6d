"""Ring."""

from __future__ import annotations

from ringleaf.collectives import ring
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "ring",
    Collective.ALLREDUCE,
    "ring",
    lambda r: ring.ring_allreduce(r.ranks),
    lambda r: ring.ring_allreduce_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#3f7fd1", "o"),
)
