"""The shape of a topology in numbers, found by NetworkX alone, for families' formulas."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from ringleaf.topologies.graph import Role


def between_switches(graph: nx.Graph[str]) -> nx.Graph[str]:
    return graph.subgraph(
        [node for node in graph if graph.nodes[node]["role"] is Role.SWITCH],
    )


@dataclass(frozen=True)
class Shape:
    hosts: int
    switches: int
    links: int  # between switches
    radix: tuple[int, ...]  # numbers of ports of switches, each once
    diameter: int  # between switches


def shape_of(graph: nx.Graph[str]) -> Shape:
    switches = between_switches(graph)
    return Shape(
        len(graph) - len(switches),
        len(switches),
        switches.number_of_edges(),
        tuple(sorted({graph.degree[switch] for switch in switches})),
        nx.diameter(switches),
    )


def mean_path(graph: nx.Graph[str]) -> float:
    """Return the mean number of links between two switches."""
    return float(nx.average_shortest_path_length(between_switches(graph)))
