"""The links of a topology in an order from which its ports follow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import networkx as nx

from ringleaf.topologies.graph import neighbors


def in_port_order(graph: nx.Graph[str]) -> Iterator[tuple[str, str]]:
    """Yield links so that each node's come in the order of its ports."""
    order: nx.DiGraph[frozenset[str]] = nx.DiGraph()
    ends = {frozenset(edge): edge for edge in graph.edges}
    order.add_nodes_from(ends)
    for node in graph:
        mine = [frozenset((node, peer)) for peer in neighbors(graph, node).values()]
        order.add_edges_from(pairwise(mine))
    place = {each: number for number, each in enumerate(ends)}
    for each in nx.lexicographical_topological_sort(order, key=place.__getitem__):
        yield ends[each]
