"""SparCML, DSAR split and all-gather."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.sparse import sparcml

ALGORITHM = Algorithm(
    "dsar-split",
    Collective.ALLREDUCE,
    "SparCML, DSAR split and all-gather",
    lambda r: sparcml.split_allgather(r.ranks, dense_result=True),
    lambda r: sparcml.split_allgather_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#c23b22", "p"),
    sparse=True,
)
