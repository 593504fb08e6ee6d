"""Spanning trees that share a network's links: many by multiplicative weights, then few.

A tree is the parent of each rank; the root's is -1. A packing gives each tree a rate, so that no
link has to carry more than it can.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ringleaf.collectives.synthesis.flow import Capacity, broadcast_rate, max_flow
from ringleaf.collectives.wires import Pair

Tree = tuple[int, ...]

EPSILON = 0.2  # by which a link's length grows when a tree takes all of it
CLOSE = 0.95  # of the optimum, at which many trees are enough
MOST_TREES = 1000  # that are looked for


@dataclass(frozen=True, slots=True)
class TreePacking:
    """Trees with their rates, and the most that there can be.

    Attributes:
        trees: Tree -> its rate, a whole number.
        optimum: The most that the rates can add up to.
        many: Number of trees that multiplicative weights took.
        many_rate: The rate that these reach together.
    """

    trees: dict[Tree, int]
    optimum: int
    many: int
    many_rate: float

    @property
    def rate(self) -> int:
        """The rate of all trees together."""
        return sum(self.trees.values())


def pack(
    capacity: Capacity, ranks: int, root: int, limit_s: float, *, low: bool = True
) -> TreePacking:
    """Return few trees, whose rates add up to the optimum exactly.

    Multiplicative weights find many trees first (Garg and Koenemann). Trees are then grown link by
    link (Lovasz): a link may be taken if what it leaves still lets as much pass to its end as the
    trees to come need. Links that the many trees use come first, or, for low trees, those near the
    root.

    Args:
        capacity: Whole numbers by (src, dst); every rank must be within reach of the root.
        ranks: The number of ranks.
        root: The root of all trees.
        limit_s: Time that multiplicative weights may take.
        low: Whether trees are to be low.

    Source:
        Wang et al., Blink, MLSys 2020; Lovasz, "On two minimax theorems in graph", JCTB 1976.
    """
    optimum = broadcast_rate(capacity, ranks, root)
    used, many, many_rate = _many(capacity, ranks, root, optimum, limit_s)
    left, rate = dict(capacity), optimum
    trees: dict[Tree, int] = {}
    while rate:
        tree = _grow(left, ranks, root, rate, used, low)
        weight = _weight(left, tree, ranks, root, rate)
        _take(left, tree, weight)
        trees[tree] = trees.get(tree, 0) + weight
        rate -= weight
    return TreePacking(trees, optimum, many, many_rate)


def _many(
    capacity: Capacity, ranks: int, root: int, optimum: int, limit_s: float
) -> tuple[dict[Pair, float], int, float]:
    """Return the load of each link, and the number and rate of trees, of a packing of many."""
    until = time.monotonic() + limit_s
    length = {pair: 1 / amount for pair, amount in capacity.items() if amount}
    load = dict.fromkeys(length, 0.0)
    trees: set[Tree] = set()
    total, rate = 0.0, 0.0
    for _ in range(MOST_TREES):
        if rate >= CLOSE * optimum or time.monotonic() > until:
            break
        tree = cheapest_tree(length, ranks, root)
        trees.add(tree)
        links = [(parent, rank) for rank, parent in enumerate(tree) if parent >= 0]
        push = min(capacity[pair] for pair in links)
        total += push
        for pair in links:
            load[pair] += push
            length[pair] *= 1 + EPSILON * push / capacity[pair]
        rate = total / max(load[pair] / capacity[pair] for pair in load)
    return load, len(trees), rate


def cheapest_tree(length: dict[Pair, float], ranks: int, root: int) -> Tree:
    """Return the spanning tree with the least sum of lengths.

    Source:
        Chu and Liu, 1965; Edmonds, 1967.
    """
    edges = [(src, dst, cost, (src, dst)) for (src, dst), cost in length.items()]
    chosen = _branching(edges, range(ranks), root)
    parent = [-1] * ranks
    for src, dst in chosen:
        parent[dst] = src
    return tuple(parent)


_Edge = tuple[int, int, float, Pair]


def _branching(edges: list[_Edge], nodes: range | list[int], root: int) -> list[Pair]:
    """Return the links of the cheapest tree; a circle of nodes is replaced by one node."""
    best: dict[int, _Edge] = {}
    for edge in edges:
        src, dst, cost, _ = edge
        if dst != root and src != dst and (dst not in best or cost < best[dst][2]):
            best[dst] = edge
    circle = _circle(best, nodes, root)
    if not circle:
        return [edge[3] for edge in best.values()]
    new = max(nodes) + 1
    inside = set(circle)
    outer: list[_Edge] = []
    enters: dict[Pair, int] = {}
    for src, dst, cost, name in edges:
        if dst in inside and src not in inside:
            outer.append((src, new, cost - best[dst][2], name))
            enters[name] = dst
        elif dst not in inside:
            outer.append((new if src in inside else src, dst, cost, name))
    names = _branching(outer, [*(n for n in nodes if n not in inside), new], root)
    cut = next(enters[name] for name in names if name in enters)
    return [*names, *(best[node][3] for node in circle if node != cut)]


def _circle(best: dict[int, _Edge], nodes: range | list[int], root: int) -> list[int]:
    state: dict[int, int] = {}
    for start in nodes:
        path, node = [], start
        while node != root and node not in state:
            state[node] = start
            path.append(node)
            node = best[node][0]
        if node != root and state[node] == start and node in path:
            return path[path.index(node) :]
    return []


def _grow(
    left: Capacity, ranks: int, root: int, rate: int, used: dict[Pair, float], low: bool
) -> Tree:
    """Return a tree such that what it leaves of the network still carries `rate` - 1."""
    left = dict(left)
    parent = [-1] * ranks
    depth = {root: 0}
    while len(depth) < ranks:
        open_links = [
            pair for pair in used if pair[0] in depth and pair[1] not in depth and left[pair]
        ]
        for pair in sorted(open_links, key=lambda pair: (low * depth[pair[0]], -used[pair], pair)):
            src, dst = pair
            left[pair] -= 1
            if max_flow(left, (root, src), dst, rate - 1) >= rate - 1:
                parent[dst] = src
                depth[dst] = depth[src] + 1
                break
            left[pair] += 1
        else:
            raise AssertionError("a tree must grow while a cut has room for all trees")
    return tuple(parent)


def _weight(left: Capacity, tree: Tree, ranks: int, root: int, rate: int) -> int:
    """Return the most that a tree can carry such that the rest of the rate is left to others."""
    links = [(parent, rank) for rank, parent in enumerate(tree) if parent >= 0]
    low, high = 1, min([rate, *(left[pair] for pair in links)])
    while low < high:
        middle = (low + high + 1) // 2
        rest = dict(left)
        _take(rest, tree, middle)
        if broadcast_rate(rest, ranks, root) >= rate - middle:
            low = middle
        else:
            high = middle - 1
    return low


def _take(left: dict[Pair, int], tree: Tree, weight: int) -> None:
    for rank, parent in enumerate(tree):
        if parent >= 0:
            left[parent, rank] -= weight
