"""Binary trees over ranks: a reduction goes up a tree, and the sum comes down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache

import numpy as np

from ringleaf.collectives.cost import AlphaBeta, Cost
from ringleaf.collectives.schedule import Columns, Op


@dataclass(frozen=True, slots=True)
class TreeEdge:
    """A child, its parent, and the child's depth; the root's depth is 0."""

    child: int
    parent: int
    depth: int


Edges = tuple[TreeEdge, ...]


def in_order_edges(ranks: int) -> Edges:
    """Return the edges of a balanced tree whose in-order numbering is 0 to `ranks` - 1.

    Nodes of even number are leaves, those of odd number are inner nodes, so a copy of the
    tree in which even and odd change places shares no inner node with it. Neighbouring
    ranks are near one another. Deepest edges come first, then by number.

    Source:
        Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast,
        reduction and scan", Parallel Computing 35(12), 2009.
    """
    edges = sorted(_subtree(0, ranks, None, 0), key=lambda edge: (-edge.depth, edge.child))
    return tuple(edges)


def _subtree(start: int, stop: int, parent: int | None, depth: int) -> Iterator[TreeEdge]:
    """Yield the edges of nodes `start` (even) to `stop` (excluded), and the one above."""
    if start == stop:
        return
    # With an even start and an odd middle, both sides start even, so odd nodes are inner ones.
    node = start if stop - start == 1 else (start + stop - 1) // 2 | 1
    if parent is not None:
        yield TreeEdge(node, parent, depth)
    yield from _subtree(start, node, node, depth + 1)
    if node > start:
        yield from _subtree(node + 1, stop, node, depth + 1)


def height(edges: Sequence[TreeEdge]) -> int:
    """Return the depth of the deepest leaf."""
    return max((edge.depth for edge in edges), default=0)


def up_and_down(edges: Sequence[TreeEdge], chunks: range, levels: int | None = None) -> Columns:
    """Return each chunk's way to the root and back, chunk by chunk and not yet sorted by step.

    The n-th of `chunks` starts at step n; all edges of one level work in the same step. `levels`
    is the height of the tree, where these are not all of its edges.
    """
    levels = height(edges) if levels is None else levels
    child, parent, depth = np.array([astuple(edge) for edge in edges], int).reshape(-1, 3).T
    start, chunk = np.arange(len(chunks))[:, None], np.array(chunks)[:, None]
    up = Columns.transfers(start + levels - depth, child, parent, chunk, Op.REDUCE)
    child, parent, depth = child[::-1], parent[::-1], depth[::-1]
    down = Columns.transfers(start + levels + depth - 1, parent, child, chunk, Op.COPY)
    both = Columns.joined([up, down])
    return both.take(np.argsort(both.start, kind="stable"))


@dataclass(frozen=True, slots=True)
class TreePipeline:
    """All that the time of a pipeline through trees depends on.

    Attributes:
        ranks: Their nodes.
        height: The depth of the deepest leaf.
        climb: The time, in segments, that the first segment takes to a root, at most.
        load: The messages per direction of the busiest port, for one segment in each tree.
    """

    ranks: int
    height: int
    climb: int
    load: int

    def cost(self, segment_bytes: float, segments: int, fabric: AlphaBeta) -> Cost:
        """Return the cost of `up_and_down` in all trees at once, with `segments` segments in each.

        The pipeline fills once, then the port with most to do sets the pace. This is
        `critical_path` up to a few segments: while it fills, that port is not idle all the time.
        """
        slots = 2 * self.climb + self.load * (segments - 1)
        return Cost(
            time_ps=2 * self.height * fabric.worst_latency_ps(self.ranks)
            + slots * fabric.port_ps(segment_bytes),
            sent_bytes=round(self.load * segments * segment_bytes),
            latency_terms=2 * self.height,
        )


@lru_cache(maxsize=64)  # builders that choose a number of segments ask again
def pipeline_of(trees: Callable[[int], Sequence[Edges]], ranks: int) -> TreePipeline:
    """Return the pipeline through the trees that a function makes for so many ranks."""
    all_edges = trees(ranks)
    return TreePipeline(
        ranks, max(map(height, all_edges)), max(map(climb, all_edges)), port_load(all_edges)
    )


def port_load(trees: Sequence[Edges]) -> int:
    """Return the messages per direction of the busiest port, for one segment in each tree."""
    ends = Counter(end for edges in trees for edge in edges for end in (edge.child, edge.parent))
    return max(ends.values(), default=0)


def climb(edges: Edges) -> int:
    """Return the time, in segments, that the first segment takes to the root.

    Siblings share their parent's port. The way down takes as long.
    """
    ready: Counter[int] = Counter()
    for edge in edges:  # deepest first
        ready[edge.parent] = max(ready[edge.parent], ready[edge.child]) + 1
    return max(ready.values(), default=0)
