"""Ring reduce-scatter."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms import ring
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "reducescatter",
    Collective.REDUCE_SCATTER,
    "ring reduce-scatter",
    lambda r: ring.ring_reduce_scatter(r.ranks),
    lambda r: ring.ring_half_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#3f7fd1", "H"),
    symmetric=True,
)
