"""SparCML, SSAR recursive doubling."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.sparse import sparcml

ALGORITHM = Algorithm(
    "ssar-double",
    Collective.ALLREDUCE,
    "SparCML, SSAR recursive doubling",
    lambda r: sparcml.recursive_doubling(r.ranks),
    lambda r: sparcml.recursive_doubling_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#b8a11e", "<"),
    sparse=True,
)
