"""Reduce by reduce-scatter and gather."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.common import scatter_gather
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "reduce-gather",
    Collective.REDUCE,
    "reduce by reduce-scatter and gather",
    lambda r: scatter_gather.gather_reduce(r.ranks, r.root),
    lambda r: scatter_gather.gather_reduce_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#3f7fd1", "o"),
)
