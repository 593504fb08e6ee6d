"""SparCML, SSAR split and all-gather."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.sparse import sparcml

ALGORITHM = Algorithm(
    "ssar-split",
    Collective.ALLREDUCE,
    "SparCML, SSAR split and all-gather",
    lambda r: sparcml.split_allgather(r.ranks),
    lambda r: sparcml.split_allgather_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#5fae4b", ">"),
    sparse=True,
)
