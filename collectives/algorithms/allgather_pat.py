"""All-gather by parallel aggregated trees."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms.common import pat
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "allgather-pat",
    Collective.ALL_GATHER,
    "all-gather by parallel aggregated trees",
    lambda r: pat.pat_all_gather(r.ranks),
    lambda r: pat.pat_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#9467bd", "v"),
)
