"""Reduce-scatter by parallel aggregated trees."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.common import pat
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "reducescatter-pat",
    Collective.REDUCE_SCATTER,
    "reduce-scatter by parallel aggregated trees",
    lambda r: pat.pat_reduce_scatter(r.ranks),
    lambda r: pat.pat_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#e08a2b", "v"),
)
