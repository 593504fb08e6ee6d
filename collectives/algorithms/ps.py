"""Parameter servers."""

from __future__ import annotations

from ringleaf.collectives import parameter_server
from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.schedule import Collective


def _ps_segments(r: Request) -> int:
    best = parameter_server.parameter_server_segments
    return best(r.ranks, r.size_bytes, r.fabric, r.servers) if r.segments is None else r.segments


ALGORITHM = Algorithm(
    "ps",
    Collective.ALLREDUCE,
    "parameter servers",
    lambda r: parameter_server.parameter_server_allreduce(r.ranks, r.servers, _ps_segments(r)),
    lambda r: parameter_server.parameter_server_cost(
        r.ranks, r.size_bytes, r.fabric, r.servers, _ps_segments(r)
    ),
    look=Look("#7b8794", "X"),
)
