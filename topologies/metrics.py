"""A topology in numbers: links, diameter, and what hosts can send to others."""

from __future__ import annotations

from collections.abc import Collection

import networkx as nx

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import attachment, distances, hosts, link, switch_graph


def link_count(graph: nx.Graph[str]) -> dict[str, int]:
    """Return the number of links of hosts (`host`) and between switches (`switch`)."""
    own = len(hosts(graph))
    return {"host": own, "switch": graph.number_of_edges() - own}


def diameter(graph: nx.Graph[str]) -> int:
    """Return the most links between switches on a shortest path between two hosts.

    A fat-tree has 4, a leaf-spine 2; add 2 for the hosts' own links.

    Raises:
        TopologyError: If a host can't reach another.
    """
    peers = switch_graph(graph)
    ends = dict.fromkeys(attachment(graph, host) for host in hosts(graph))
    longest = 0
    for start in ends:
        near = distances(peers, start)
        for end in ends:
            if end not in near:
                raise TopologyError(f"{graph.name}: no path from {start} to {end}")
            longest = max(longest, near[end])
    return longest


def max_flow_bps(graph: nx.Graph[str], senders: Collection[str]) -> int:
    """Return the most that `senders` can send to all other hosts, in bit/s, with any routing."""
    flow: nx.DiGraph[str] = nx.DiGraph()
    flow.add_nodes_from(("from", "to"))
    sending = set(senders)
    for switch, peers in switch_graph(graph).items():
        for peer in peers:
            flow.add_edge(switch, peer, capacity=link(graph, switch, peer).rate_bps)
    for host in hosts(graph):
        switch = attachment(graph, host)
        ends = (host, switch) if host in sending else (switch, host)
        rate_bps = link(graph, *ends).rate_bps
        edge = ("from", switch) if host in sending else (switch, "to")
        already = flow.edges[edge]["capacity"] if flow.has_edge(*edge) else 0
        flow.add_edge(*edge, capacity=already + rate_bps)
    return int(nx.maximum_flow_value(flow, "from", "to"))
