"""Double binary tree."""

from __future__ import annotations

from ringleaf.collectives import double_tree
from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.schedule import Collective


def _double_tree_segments(r: Request) -> int:
    best = double_tree.double_tree_segments
    return best(r.ranks, r.size_bytes, r.fabric) if r.segments is None else r.segments


ALGORITHM = Algorithm(
    "doubletree",
    Collective.ALLREDUCE,
    "double binary tree",
    lambda r: double_tree.double_tree_allreduce(r.ranks, _double_tree_segments(r)),
    lambda r: double_tree.double_tree_cost(
        r.ranks, r.size_bytes, r.fabric, _double_tree_segments(r)
    ),
    look=Look("#e08a2b", "D"),
)
