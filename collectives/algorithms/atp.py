"""ATP."""

from __future__ import annotations

from ringleaf.collectives import aggregate
from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "atp",
    Collective.ALLREDUCE,
    "ATP",
    lambda r: aggregate.in_network_allreduce(r.ranks, "atp"),
    lambda r: aggregate.in_network_cost(r.ranks, r.size_bytes, r.fabric),
    in_network=True,
)
