"""Double binary tree: two trees, half the tensor each, and no rank is inner in both."""

from __future__ import annotations

from ringleaf.collectives.algorithm import Algorithm, Look, Request
from ringleaf.collectives.algorithms.common.binary_tree import (
    Edges,
    TreeEdge,
    in_order_edges,
    pipeline_of,
    up_and_down,
)
from ringleaf.collectives.cost import AlphaBeta, Cost, best_segments, most_segments
from ringleaf.collectives.schedule import (
    ChunkRows,
    Collective,
    Columns,
    Schedule,
    check_ranks,
    check_segments,
)


def double_tree_allreduce(ranks: int, segments: int = 1) -> Schedule:
    """Return a schedule of two pipelined trees, each over half of the tensor in `segments` pieces.

    A rank that is inner in one tree is a leaf in the other, so it receives 3 S / 2 in the
    first and S / 2 in the second: the bandwidth term is 2 S / B, as good as the ring's,
    while the number of steps grows with log n only.

    Raises:
        ScheduleError: If `ranks` < 1 or `segments` < 1.

    Source:
        Sanders, Speck and Träff, Parallel Computing 35(12), 2009; used by NCCL since 2.4.
    """
    check_ranks("double_tree_allreduce", ranks)
    check_segments("double_tree_allreduce", segments)
    first, second = trees(ranks)
    halves = (range(segments), range(segments, 2 * segments))
    both = Columns.joined([up_and_down(first, halves[0]), up_and_down(second, halves[1])])
    rows = ChunkRows(both.in_steps(both.start % segments))
    return Schedule(Collective.ALLREDUCE, "doubletree", ranks, 2 * segments, rows)


def trees(ranks: int) -> tuple[Edges, Edges]:
    """Return the edges of both trees. Inner nodes are odd in the first, even in the second."""
    first = in_order_edges(ranks)

    def even_for_odd(node: int) -> int:
        # Mirrored when that swaps even and odd, else shifted by one.
        return ranks - 1 - node if ranks % 2 == 0 else (node - 1) % ranks

    second = (TreeEdge(even_for_odd(e.child), even_for_odd(e.parent), e.depth) for e in first)
    return first, tuple(second)


def double_tree_cost(ranks: int, size_bytes: int, fabric: AlphaBeta, segments: int = 1) -> Cost:
    """Return the cost of both pipelines; latency grows with log2(n), bytes tend to 2 S."""
    check_ranks("double_tree_cost", ranks)
    check_segments("double_tree_cost", segments)
    return pipeline_of(trees, ranks).cost(size_bytes / (2 * segments), segments, fabric)


def double_tree_segments(ranks: int, size_bytes: int, fabric: AlphaBeta) -> int:
    """Return the number of segments, in each tree, that the model finds best."""
    return best_segments(
        lambda segments: double_tree_cost(ranks, size_bytes, fabric, segments).time_ps,
        most_segments(size_bytes // 2, ranks, rows_per_segment=4 * (ranks - 1)),
    )


def _double_tree_segments(r: Request) -> int:
    if r.segments is None:
        return double_tree_segments(r.ranks, r.size_bytes, r.fabric)
    return r.segments


ALGORITHM = Algorithm(
    "doubletree",
    Collective.ALLREDUCE,
    "double binary tree",
    lambda r: double_tree_allreduce(r.ranks, _double_tree_segments(r)),
    lambda r: double_tree_cost(r.ranks, r.size_bytes, r.fabric, _double_tree_segments(r)),
    look=Look("#e08a2b", "D"),
)
