"""Hierarchical all-to-all."""

from __future__ import annotations

from ringleaf.collectives.algorithm import NOWHERE, Algorithm, Look
from ringleaf.collectives.algorithms.common import alltoall_grid as grid
from ringleaf.collectives.schedule import Collective

ALGORITHM = Algorithm(
    "alltoall-hier",
    Collective.ALL_TO_ALL,
    "hierarchical all-to-all",
    lambda r: grid.grid_all_to_all(r.ranks, r.hierarchy, turns=1),
    lambda r: grid.grid_all_to_all_cost(r.ranks, r.hierarchy, NOWHERE, r.size_bytes, r.fabric),
    look=Look("#406090", "d"),
    placed=True,
)
