"""The links of a topology in an order from which its ports follow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import networkx as nx

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import neighbors


def in_port_order(graph: nx.Graph[str]) -> Iterator[tuple[str, str]]:
    """Yield links so that each node's come in the order of its ports.

    Raises:
        TopologyError: If there is no such order, as ports are those of a file.
    """
    ends = {frozenset(edge): edge for edge in graph.edges}
    order = _order(graph)
    if not nx.is_directed_acyclic_graph(order):
        raise TopologyError(
            f"{graph.name}: machines need ports that follow from an order of links, got ports of "
            "the file that follow from none; give links no ports"
        )
    place = {each: number for number, each in enumerate(ends)}
    for each in nx.lexicographical_topological_sort(order, key=place.__getitem__):
        yield ends[each]


def follow_an_order(graph: nx.Graph[str]) -> bool:
    """Return whether links have an order from which the topology's ports follow."""
    return nx.is_directed_acyclic_graph(_order(graph))


def _order(graph: nx.Graph[str]) -> nx.DiGraph[frozenset[str]]:
    """Return which links come before which: at each node, by its ports."""
    order: nx.DiGraph[frozenset[str]] = nx.DiGraph()
    order.add_nodes_from(map(frozenset, graph.edges))
    for node in graph:
        mine = [frozenset((node, peer)) for peer in neighbors(graph, node).values()]
        order.add_edges_from(pairwise(mine))
    return order
