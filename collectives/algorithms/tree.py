"""Binary tree."""

from __future__ import annotations

from ringleaf.collectives import tree
from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.schedule import Collective


def _tree_segments(r: Request) -> int:
    best = tree.tree_segments
    return best(r.ranks, r.size_bytes, r.fabric) if r.segments is None else r.segments


ALGORITHM = Algorithm(
    "tree",
    Collective.ALLREDUCE,
    "binary tree",
    lambda r: tree.tree_allreduce(r.ranks, _tree_segments(r)),
    lambda r: tree.tree_cost(r.ranks, r.size_bytes, r.fabric, _tree_segments(r)),
    look=Look("#92703c", "s"),
)
