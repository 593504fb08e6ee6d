"""The entries of `basic.p4`: each host by its address, through one of the shortest paths."""

from collections.abc import Iterator

import networkx as nx
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import hosts, neighbors, port
from ringleaf.topologies.routing import dealt, routes


def entities(graph: nx.Graph, switch: str) -> Iterator[P4TableEntry]:
    """Yield the P4Runtime entities to write to a switch; called once for each."""
    ways = dealt(graph, routes(graph))
    for host in hosts(graph):
        (number,) = ways[switch][host]
        peer = neighbors(graph, switch)[number]
        yield P4TableEntry(
            "ipv4_lpm",
            match=P4TableMatch({"hdr.ipv4.dst": (ipv4(graph, host), 32)}),
            action=P4TableAction(
                "ipv4_forward", dst_mac=mac(graph, peer, port(graph, peer, switch)), port=number
            ),
        )
