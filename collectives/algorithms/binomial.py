"""Binomial tree."""

from __future__ import annotations

from ringleaf.collectives import binomial
from ringleaf.collectives.algorithm import Algorithm, Look
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "binomial",
    Collective.ALLREDUCE,
    "binomial tree",
    lambda r: binomial.binomial_allreduce(r.ranks),
    lambda r: binomial.binomial_allreduce_cost(r.ranks, r.size_bytes, r.fabric),
    look=Look("#594ddd", "+"),
)
