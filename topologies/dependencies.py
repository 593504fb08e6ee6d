"""Dependencies of links on each other, by routes: a cycle of them is what a deadlock needs.

With priority flow control a packet that came by one link may wait until the next link of its way
takes it, and so holds room that the first link needs. If these dependencies have no cycle, no
switches can wait for each other for ever.

Source:
    Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks",
    IEEE Transactions on Computers 36(5), 1987, theorem 1, for channels of one class.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import networkx as nx

from ringleaf.topologies.detours import detours, is_adaptive
from ringleaf.topologies.graph import attachment, hosts, neighbor_at
from ringleaf.topologies.routing import Table, dealt, path, routes

Direction = tuple[str, str]


def dependencies(graph: nx.Graph[str], *, ecmp: bool = False) -> nx.DiGraph[Direction]:
    """Return which links' directions may wait for which, by packets of all hosts to all others.

    Args:
        graph: A topology, with its detours.
        ecmp: Whether flows are hashed to all shortest paths; else hosts are dealt one each.

    Returns:
        A graph whose nodes are directions of links, (node that sends, node that receives). An edge
        goes from a direction to the next one of some packet's way. Trees by which switches
        aggregate are not in it.
    """
    table: Table = routes(graph) if ecmp else dealt(graph, routes(graph))
    digraph: nx.DiGraph[Direction] = nx.DiGraph()
    replaced = () if is_adaptive(graph) else detours(graph)
    for dst in hosts(graph):
        sources = [src for src in hosts(graph) if src != dst and (src, dst) not in replaced]
        digraph.add_edges_from(_towards(graph, table, sources, dst))
    for src, dst in detours(graph):
        digraph.add_edges_from(pairwise(pairwise(path(graph, src, dst))))
    return digraph


def _towards(
    graph: nx.Graph[str], table: Table, sources: list[str], dst: str
) -> Iterator[tuple[Direction, Direction]]:
    """Yield the dependencies of packets to one host, whichever of the allowed ports they take."""
    seen: set[Direction] = set()
    left = [(src, attachment(graph, src)) for src in sources]
    while left:
        here = left.pop()
        if here in seen or here[1] == dst:
            continue
        seen.add(here)
        for port in table[here[1]][dst]:
            ahead = here[1], neighbor_at(graph, here[1], port)
            yield here, ahead
            left.append(ahead)


def can_deadlock(graph: nx.Graph[str], *, ecmp: bool = False) -> bool:
    """Return whether the ways of packets between hosts have a cycle of dependencies."""
    return not nx.is_directed_acyclic_graph(dependencies(graph, ecmp=ecmp))
