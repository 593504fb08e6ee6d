"""Binary tree, pipelined: sums go up segment by segment, and totals come down behind them."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms.common.binary_tree import (
    in_order_edges,
    pipeline_cost,
    up_and_down,
)
from ringleaf.collectives.cost import AlphaBeta, Cost, best_segments, most_segments
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Schedule,
    check_ranks,
    check_segments,
)


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
    rows = ChunkRows(up_and_down(in_order_edges(ranks), range(segments)).in_steps())
    return Schedule(Collective.ALLREDUCE, "tree", ranks, segments, rows)


def tree_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int = 1) -> Cost:
    """Return the cost of the pipeline; latency grows with log2(n), bytes tend to 3 S."""
    check_ranks("tree_cost", ranks)
    check_segments("tree_cost", segments)
    return pipeline_cost([in_order_edges(ranks)], ranks, size_bytes / segments, segments, fabric)


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
)
