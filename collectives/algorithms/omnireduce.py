"""OmniReduce."""

from __future__ import annotations

from ringleaf.collectives import aggregate
from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "omnireduce",
    Collective.ALLREDUCE,
    "OmniReduce",
    lambda r: aggregate.in_network_allreduce(r.ranks, "omnireduce"),
    lambda r: aggregate.in_network_cost(r.ranks, r.size_bytes, r.fabric),
    in_network=True,
)
