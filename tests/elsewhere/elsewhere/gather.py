"""An allreduce that nobody would want: all send to rank 0, which adds up and tells all."""

from __future__ import annotations

from elsewhere.halves import CODEC
from ringleaf.collectives.algorithm import Algorithm, Request
from ringleaf.collectives.cost import Cost
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer


def build(request: Request) -> Schedule:
    others = range(1, request.ranks)
    rows = [Transfer(0, rank, 0, 0, Op.REDUCE) for rank in others]
    rows += [Transfer(1, 0, rank, 0, Op.COPY) for rank in others]
    name = "gather-at-the-first-rank"
    return Schedule(Collective.ALLREDUCE, name, request.ranks, 1, tuple(rows), codec=CODEC)


def cost(request: Request) -> Cost:
    size_bytes = (request.ranks - 1) * request.size_bytes
    return Cost(round(2 * request.fabric.port_ps(size_bytes)), size_bytes, 2)


ALGORITHM = Algorithm(
    "gather-at-the-first-rank", Collective.ALLREDUCE, "gather and tell", build, cost
)
