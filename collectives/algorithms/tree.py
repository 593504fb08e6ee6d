"""Binary tree, pipelined: sums go up segment by segment, and totals come down behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms.common.binary_tree import (
    Edges,
    TreeEdge,
    height,
    in_order_edges,
    pipeline_of,
    up_and_down,
)
from ringleaf.collectives.cost import AlphaBeta, Cost, best_segments, most_segments
from ringleaf.collectives.pipelined_rows import PipelinedRows, pipelined
from ringleaf.collectives.schedule import (
    Collective,
    Columns,
    Schedule,
    check_ranks,
    check_segments,
)
from ringleaf.collectives.symmetry import Symmetry


def tree_allreduce(ranks: int, segments: int = 1) -> Schedule:
    """Return a schedule that reduces to the root of a balanced binary tree and broadcasts from it.

    Both form one pipeline. An inner node receives three times its tensor (two children, and the
    total) and sends it three times, so the bandwidth term is 3 S / B: the double tree's is two
    thirds of that.

    Raises:
        ScheduleError: If `ranks` < 1 or `segments` < 1.
    """
    check_ranks("tree_allreduce", ranks)
    check_segments("tree_allreduce", segments)
    edges, levels = in_order_edges(ranks), height(in_order_edges(ranks))

    def way(chosen: Sequence[TreeEdge]) -> Columns:
        return up_and_down(chosen, range(1), levels).in_steps()

    symmetry = _symmetry(
        ranks, edges, lambda own: pipelined(way(own), segments), 2 * len(edges) * segments
    )
    rows = PipelinedRows(symmetry, way(edges), segments)
    return Schedule(Collective.ALLREDUCE, "tree", ranks, segments, rows)


def _symmetry(
    ranks: int,
    edges: Sequence[TreeEdge],
    make: Callable[[Sequence[TreeEdge]], Columns],
    messages: int,
) -> Symmetry:
    """Return what ranks have in common: a parent or none, and as many children."""
    of_rank: list[list[TreeEdge]] = [[] for _ in range(ranks)]
    peers = np.repeat(np.arange(ranks)[:, None], 3, axis=1)
    for edge in edges:
        of_rank[edge.child].append(edge)
        children = [each for each in of_rank[edge.parent] if each.parent == edge.parent]
        of_rank[edge.parent].append(edge)
        peers[edge.child, 0], peers[edge.parent, 1 + len(children)] = edge.parent, edge.child
    has = peers != np.arange(ranks)[:, None]
    _, kind = np.unique(has @ [1, 2, 4], return_inverse=True)
    return Symmetry(
        kind=kind,
        peers=peers,
        rows_of=lambda rank: make(of_rank[rank]),
        is_even=False,
        messages=messages,
        is_chain=False,
        alike=(0, 1, 1),
    )


def tree_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int = 1) -> Cost:
    """Return the cost of the pipeline; latency grows with log2(n), bytes tend to 3 S."""
    check_ranks("tree_cost", ranks)
    check_segments("tree_cost", segments)
    return pipeline_of(_one_tree, ranks).cost(size_bytes / segments, segments, fabric)


def _one_tree(ranks: int) -> tuple[Edges]:
    return (in_order_edges(ranks),)


def tree_segments(ranks: int, size_bytes: int, fabric: AlphaBeta) -> int:
    """Return the number of segments that the model finds best."""
    return best_segments(
        lambda segments: tree_cost(ranks, size_bytes, fabric, segments).time_ps,
        most_segments(size_bytes, ranks, rows_per_segment=2 * (ranks - 1)),
    )


def _tree_segments(r: Request) -> int:
    if r.segments is None:
        return tree_segments(r.ranks, r.size_bytes, r.fabric)
    return r.segments


ALGORITHM = Algorithm(
    "tree",
    Collective.ALLREDUCE,
    "binary tree",
    lambda r: tree_allreduce(r.ranks, _tree_segments(r)),
    lambda r: tree_cost(r.ranks, r.size_bytes, r.fabric, _tree_segments(r)),
    look=Look("#92703c", "s"),
    symmetric=True,
)
