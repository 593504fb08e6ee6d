"""The ways of flows: the links that each queue pair's packets take, by the switches' own rules."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

import networkx as nx

from ringleaf.networks.forwarding import salt
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.route_table import Ports
from ringleaf.topologies.routing import dealt, path, routes

if TYPE_CHECKING:
    from ringleaf.topologies.route_table import RouteTable

_UDP = 17  # IPv4's number of the protocol
_WORD = (1 << 32) - 1

Direction = tuple[str, str]


class Ways:
    """Finds the links between hosts.

    Args:
        graph: The topology.
        ecmp: Whether switches split flows over equally good ports by their hash.
        table: The topology's routes.
    """

    def __init__(
        self, graph: nx.Graph[str], *, ecmp: bool, table: RouteTable | None = None
    ) -> None:
        self._graph = graph
        self._ecmp = ecmp
        ways = routes(graph) if table is None else table
        self._table = ways if ecmp else dealt(graph, ways)
        self._known: dict[tuple[str, str], list[Direction]] = {}

    def find(self, src: str, dst: str, udp_ports: tuple[int, int]) -> list[Direction]:
        """Return the directions of links from one host to another, in order.

        Args:
            src: The host that sends.
            dst: The host that receives.
            udp_ports: Source and destination port, by which switches may split flows.
        """
        if self._ecmp:
            return self._follow(src, dst, udp_ports)
        if (src, dst) not in self._known:
            self._known[src, dst] = self._follow(src, dst, udp_ports)
        return self._known[src, dst]

    def _follow(self, src: str, dst: str, udp_ports: tuple[int, int]) -> list[Direction]:
        choose = partial(_member, flow_hash(self._graph, src, dst, udp_ports))
        return list(pairwise(path(self._graph, src, dst, choose, table=self._table)))


def flow_hash(graph: nx.Graph[str], src: str, dst: str, udp_ports: tuple[int, int]) -> int:
    """Return the hash of a flow's packets, as `p4/include/forwarding.p4` computes it."""
    key = ipv4(graph, src).to_bytes(4, "big") + ipv4(graph, dst).to_bytes(4, "big")
    key += bytes([_UDP]) + b"".join(port.to_bytes(2, "big") for port in udp_ports)
    return crc32(key)


def _member(flow: int, switch: str, ports: Ports) -> int:
    """Return the port that a switch chooses for a flow, as its P4 program does."""
    half = (flow * salt(switch) & _WORD) >> 16
    return ports[half * len(ports) >> 16]
