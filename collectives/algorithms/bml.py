"""BML."""

from __future__ import annotations

from ringleaf.collectives import bml
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "bml",
    Collective.ALLREDUCE,
    "BML",
    lambda r: bml.bml_allreduce(r.ranks, r.hierarchy, r.embedding),
    lambda r: bml.bml_cost(r.ranks, r.hierarchy, r.embedding, r.size_bytes, r.fabric),
    look=Look("#406090", "$B$"),
    placed=True,
)
