"""All-to-all along the dimensions of the topology's grid."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms.common import alltoall_grid as grid
from ringleaf.collectives.schedule import Collective, Schedule


def _schedule(r: Request) -> Schedule:
    sizes, _ = r.embedding.grid_of("alltoall-2d", r.ranks, r.hierarchy)
    turns = grid.turns_for(r.ranks, r.size_bytes, len(sizes))
    return grid.grid_all_to_all(r.ranks, sizes, r.embedding, turns=turns)


ALGORITHM = Algorithm(
    "alltoall-2d",
    Collective.ALL_TO_ALL,
    "all-to-all along the topology's grid",
    _schedule,
    lambda r: grid.grid_all_to_all_cost(r.ranks, r.hierarchy, r.embedding, r.size_bytes, r.fabric),
    look=Look("#d16fc4", "$E$"),
    placed=True,
)
