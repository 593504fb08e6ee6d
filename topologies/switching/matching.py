"""Matchings of racks by weight: bipartite, general, several, with discounts, connected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ringleaf.topologies.switching.plan import Pair

if TYPE_CHECKING:
    import networkx as nx

Weights = Mapping[Pair, Any]
"""Weights by pair of racks: integers or fractions. Missing: 0."""


def bipartite(weights: Weights) -> list[Pair]:
    """Return the senders and receivers of a matching of the most weight, each at most once.

    Source:
        Edmonds, "Maximum matching and a polyhedron with 0,1-vertices", J. Res. NBS 69B, 1965; by
        way of `networkx.max_weight_matching`.
    """
    import networkx as nx

    graph: nx.Graph[tuple[int, int]] = nx.Graph()
    for (src, dst), weight in sorted(weights.items()):
        if weight > 0:
            graph.add_edge((0, src), (1, dst), weight=weight)
    matched = (sorted(edge) for edge in nx.max_weight_matching(graph))
    return sorted((a[1], b[1]) for a, b in matched)


def perfect(weights: Weights, racks: Collection[int]) -> list[Pair]:
    """Return pairs of racks of the most weight among the matchings with the most pairs.

    Weights are of unordered pairs, the lower number first. Pairs without a weight count 0.
    """
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(sorted(racks))
    graph.add_weighted_edges_from(
        (a, b, weights.get((a, b), 0)) for a, b in combinations(sorted(racks), 2)
    )
    return _pairs(nx.max_weight_matching(graph, maxcardinality=True))


def greedy(weights: Weights) -> list[Pair]:
    """Return a matching that takes the heaviest pair again and again, for comparison."""
    taken: set[int] = set()
    chosen = []
    for pair, _ in sorted(weights.items(), key=lambda each: (-each[1], each[0])):
        if not taken & set(pair):
            taken |= set(pair)
            chosen.append(pair)
    return sorted(chosen)


def _pairs(edges: Collection[tuple[int, int]]) -> list[Pair]:
    return sorted((min(edge), max(edge)) for edge in edges)


def several(weights: Weights, racks: int, times: int) -> list[Pair]:
    """Return matchings one after the other, of different pairs: each rack has `times` of them.

    Source:
        Chen et al., "OSA: An Optical Switching Architecture for Data Center Networks with
        Unprecedented Flexibility", NSDI 2012: a weighted b-matching as b weighted matchings.
    """
    import networkx as nx

    chosen: set[Pair] = set()
    for _ in range(times):
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(racks))
        graph.add_weighted_edges_from(
            (*pair, weights.get(pair, 0))
            for pair in combinations(range(racks), 2)
            if pair not in chosen
        )
        chosen |= set(_pairs(nx.max_weight_matching(graph, maxcardinality=True)))
    return sorted(chosen)


Discount = Callable[[Any, int], Fraction]
"""A function of what is left of a demand, and of the links that its pair has now."""


def by_links(left: Any, links: int) -> Fraction:
    """Return what is left after a pair's k-th link, times k/(k+1): TopoOpt's release."""
    return Fraction(left) * Fraction(links, links + 1)


def by_half(left: Any, links: int) -> Fraction:
    """Return half of what is left: TopoOpt's paper."""
    del links
    return Fraction(left) / 2


def discounted(
    weights: Weights, times: int, discount: Discount = by_half
) -> tuple[list[list[Pair]], dict[Pair, Fraction]]:
    """Return matchings of demand, which is discounted where it gets a link, and what is left.

    Args:
        weights: Demand by unordered pair, the lower number first.
        times: Number of matchings.
        discount: How much is left of a demand.

    Source:
        Wang et al., "TopoOpt", NSDI 2023, algorithm 1: the model-parallel sub-topology.
    """
    import networkx as nx

    left = {pair: Fraction(weight) for pair, weight in weights.items()}
    links = dict.fromkeys(left, 0)
    rounds = []
    for _ in range(times):
        graph: nx.Graph[int] = nx.Graph()
        for pair in sorted(left):
            if left[pair]:
                graph.add_edge(*pair, weight=left[pair])
        chosen = _pairs(nx.max_weight_matching(graph))
        for pair in chosen:
            links[pair] += 1
            left[pair] = discount(left[pair], links[pair])
        rounds.append(chosen)
    return rounds, left


def heaviest_first(weights: Weights, degree: int, fixed: Sequence[Pair] = ()) -> list[Pair]:
    """Return one-way links for the largest demands, which are halved where they get one.

    It ends when ports are used up. Equal demands are served in the order of their pairs.

    Args:
        weights: Demand by ordered pair.
        degree: Links that leave a rack, and that reach it, at most.
        fixed: Links that are there before.

    Source:
        `dheu` of ffsim-opera, which both optical runs of SiP-ML's release call.
    """
    left = {pair: Fraction(weight) for pair, weight in weights.items() if weight > 0}
    out: dict[int, int] = {}
    into: dict[int, int] = {}
    links: list[Pair] = []

    def take(pair: Pair) -> None:
        links.append(pair)
        out[pair[0]] = out.get(pair[0], 0) + 1
        into[pair[1]] = into.get(pair[1], 0) + 1

    for pair in fixed:
        take(pair)
    while True:
        open_ = [p for p in left if out.get(p[0], 0) < degree and into.get(p[1], 0) < degree]
        if not open_:
            return links
        best = min(open_, key=lambda pair: (-left[pair], pair))
        take(best)
        left[best] /= 2


def connected(pairs: Sequence[Pair], racks: int, weights: Weights) -> list[Pair]:
    """Return pairs that join all racks, by exchanges of two pairs, which keep all degrees.

    Pairs (a, b) and (c, d) of two parts become (a, c) and (b, d), or (a, d) and (b, c): those with
    which the least weight is lost, until there is one part or none of the exchanges helps.

    Source:
        Chen et al., "OSA", NSDI 2012: connectivity by edge exchange.
    """
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(racks))
    graph.add_edges_from(pairs)
    while (parts := nx.number_connected_components(graph)) > 1:
        exchange = _best_exchange(graph, weights, parts)
        if exchange is None:
            break
        old, new = exchange
        graph.remove_edges_from(old)
        graph.add_edges_from(new)
    return _pairs(list(graph.edges))


Exchange = tuple[tuple[Pair, Pair], tuple[Pair, Pair]]


def _best_exchange(graph: nx.Graph[int], weights: Weights, parts: int) -> Exchange | None:
    import networkx as nx

    part_of = {
        rack: number for number, part in enumerate(nx.connected_components(graph)) for rack in part
    }
    edges = _pairs(list(graph.edges))
    exchanges: list[tuple[Any, tuple[Pair, Pair], list[Pair]]] = []
    for one, other in combinations(edges, 2):
        if part_of[one[0]] == part_of[other[0]]:
            continue
        for ends in (other, other[::-1]):
            new = _pairs([(one[0], ends[0]), (one[1], ends[1])])
            lost = sum(weights.get(e, 0) for e in (one, other)) - sum(
                weights.get(e, 0) for e in new
            )
            exchanges.append((lost, (one, other), new))
    for _, old, new in sorted(exchanges):
        trial = graph.copy()
        trial.remove_edges_from(old)
        trial.add_edges_from(new)
        if nx.number_connected_components(trial) < parts:
            return old, (new[0], new[1])
    return None
