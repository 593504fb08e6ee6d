"""Binomial or chain reduce."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.algorithms import broadcast as rooted
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "reduce",
    Collective.REDUCE,
    "binomial or chain reduce",
    lambda r: rooted.reduce(r.ranks, r.size_bytes, r.fabric, r.segments, r.root),
    lambda r: rooted.reduce_cost(r.ranks, r.size_bytes, r.fabric, r.segments),
    look=Look("#d62f5c", "s"),
)
