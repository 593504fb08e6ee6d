"""Chain."""

from __future__ import annotations

from ringleaf.collectives import chain
from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.schedule import Collective


def _segments(r: Request) -> int:
    best = chain.chain_segments
    return best(r.ranks, r.size_bytes, r.fabric) if r.segments is None else r.segments


ALGORITHM = Algorithm(
    "chain",
    Collective.ALLREDUCE,
    "chain",
    lambda r: chain.chain_allreduce(r.ranks, _segments(r)),
    lambda r: chain.chain_allreduce_cost(r.ranks, r.size_bytes, r.fabric, _segments(r)),
    look=Look("#6cb67e", "3"),
)
