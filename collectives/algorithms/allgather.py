"""Ring all-gather."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms import ring
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "allgather",
    Collective.ALL_GATHER,
    "ring all-gather",
    lambda r: ring.ring_all_gather(r.ranks),
    lambda r: ring.ring_half_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#1f9d8b", "8"),
    symmetric=True,
)
