"""Detours: ways that the packets of one host to another take instead of their route.

A graph keeps them as its attribute `detours`, so all code that asks for routes gets them. An
aggregation system may have a worker's gradients added up at the first switch that its detour
names, instead of in its rack: that is gradient routing (Fang et al., "GRID", 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import networkx as nx

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import attachment, port, switch_graph

Pair = tuple[str, str]
"""Source and destination host."""


@dataclass(frozen=True, slots=True)
class Detour:
    """The switches that were asked for, in order, and all nodes of the way, hosts included.

    None are asked for where a path of several was chosen (`ringleaf.topologies.k_shortest`).
    """

    via: tuple[str, ...]
    nodes: tuple[str, ...]


def with_detours(graph: nx.Graph[str], ways: Iterable[Sequence[str]]) -> nx.Graph[str]:
    """Return the same topology with these detours instead of those it had.

    Args:
        graph: A topology.
        ways: Each a host, the switches to pass, and another host; between them it is the
            shortest way.

    Raises:
        TopologyError: If a way is none, passes a switch twice, or joins hosts that another does.
    """
    by_pair: dict[Pair, Detour] = {}
    for way in ways:
        pair = way[0], way[-1]
        if pair in by_pair:
            raise TopologyError(f"detour: {pair[0]} to {pair[1]} has one already, got {_text(way)}")
        by_pair[pair] = Detour(tuple(way[1:-1]), nodes_of(graph, way))
    changed = graph.copy()
    changed.graph["detours"] = MappingProxyType(by_pair)
    return changed


def detours(graph: nx.Graph[str]) -> Mapping[Pair, Detour]:
    """Return all detours of a topology."""
    by_pair: Mapping[Pair, Detour] = graph.graph.get("detours", {})
    return by_pair


def is_adaptive(graph: nx.Graph[str]) -> bool:
    """Return whether switches choose between a pair's detour and its usual route as they go."""
    return bool(graph.graph.get("adaptive", False))


def with_usual_ways(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return a topology without the detours that switches choose where queues are long."""
    if not is_adaptive(graph):
        return graph
    plain = graph.copy()
    plain.graph |= {"detours": {}, "adaptive": False}
    return plain


def turns(graph: nx.Graph[str], switch: str) -> dict[Pair, int]:
    """Return, by pair of hosts, the port by which their detour leaves a switch for the next one."""
    ports = {}
    for pair, detour in detours(graph).items():
        ahead = dict(pairwise(detour.nodes))
        if switch in ahead and ahead[switch] != pair[1]:
            ports[pair] = port(graph, switch, ahead[switch])
    return ports


def nodes_of(graph: nx.Graph[str], way: Sequence[str]) -> tuple[str, ...]:
    """Return all nodes of a way, hosts included.

    Args:
        graph: A topology.
        way: A host, the switches to pass, and another host.

    Raises:
        TopologyError: If there is no such way, or it passes a node twice.
    """
    src, *via, dst = way
    peers = switch_graph(graph)
    for switch in via:
        if switch not in peers:
            raise TopologyError(f"detour: no such switch, got {switch!r} in {_text(way)}")
    switches: nx.Graph[str] = graph.subgraph(peers)
    stops = [attachment(graph, src), *via, attachment(graph, dst)]
    nodes = [src, stops[0]]
    for here, there in pairwise(stops):
        if not nx.has_path(switches, here, there):
            raise TopologyError(f"detour: no way from {here} to {there}, got {_text(way)}")
        nodes += nx.shortest_path(switches, here, there)[1:]
    nodes.append(dst)
    for node in nodes:
        if nodes.count(node) > 1:
            raise TopologyError(f"detour: must pass a node once, got {node} twice on {_text(way)}")
    return tuple(nodes)


def _text(way: Sequence[str]) -> str:
    return "-".join(way)
