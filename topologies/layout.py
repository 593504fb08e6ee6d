"""Places for the nodes of a topology that has none: by tiers if there are any, else by forces."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import ceil, hypot, sqrt

import networkx as nx

from ringleaf.topologies.graph import Point, attachment, hosts, is_server, natural, switches

MOST_BY_FORCES = 300
"""Nodes; forces between more take seconds."""
SEED = 1
ABOVE = 1.4  # the room between hosts' tier and the next


def placed(graph: nx.Graph[str]) -> nx.Graph[str]:
    """Return the topology with a place, `pos`, and a `layout` for its nodes.

    Places that it has are kept.
    """
    if all("pos" in data for _, data in graph.nodes(data=True)):
        return graph
    changed = graph.copy()
    if _has_tiers(graph):
        places, layout = _by_tiers(graph), "tiers"
    else:
        places, layout = _by_forces(graph), "grid"
    changed.graph["layout"] = layout
    nx.set_node_attributes(changed, places, "pos")
    return changed


def _has_tiers(graph: nx.Graph[str]) -> bool:
    """Return whether all links between switches join neighbouring tiers."""
    tier = nx.get_node_attributes(graph, "tier")
    return all(abs(tier[a] - tier[b]) == 1 for a, b in graph.edges if a in tier and b in tier)


def _by_tiers(graph: nx.Graph[str]) -> dict[str, Point]:
    """Place each tier above the one below, each switch near the middle of those below it."""
    names, servers = hosts(graph), graph.graph["servers"]
    places: dict[str, Point] = {name: (float(rank), 0.3) for rank, name in enumerate(names)}
    tiers: dict[int, list[str]] = {}
    for name in switches(graph):
        tiers.setdefault(graph.nodes[name]["tier"], []).append(name)
    width = max(len(names), *map(len, tiers.values()))
    for tier, members in sorted(tiers.items()):
        middle = {name: _middle(graph, name, places) for name in members}
        order = sorted(members, key=lambda name: (middle[name], natural(name)))
        for number, name in enumerate(order):
            x = (number + 0.5) * width / len(order) - 0.5
            places[name] = (x, tier + 1.0)
    for name in names:
        x, y = places[attachment(graph, name)]
        places[name] = (
            (x + 0.4, y) if servers else (places[name][0] + (width - len(names)) / 2, 0.3)
        )
    return places


def _middle(graph: nx.Graph[str], name: str, places: Mapping[str, Point]) -> float:
    below = [places[peer][0] for peer in graph.adj[name] if peer in places]
    return sum(below) / len(below) if below else 0.0


def _by_forces(graph: nx.Graph[str]) -> dict[str, Point]:
    """Place nodes by springs between neighbours; a server's host is beside its switch.

    Source:
        Fruchterman and Reingold, "Graph Drawing by Force-directed Placement", Software: Practice
        and Experience 21(11), 1991, as NetworkX has it.
    """
    inside = {host: attachment(graph, host) for host in hosts(graph) if is_server(graph, host)}
    free = graph.subgraph(node for node in graph if node not in inside)
    if len(free) > MOST_BY_FORCES:
        side = ceil(sqrt(len(free)))
        order = sorted(free, key=natural)
        places = {node: (float(i % side), -float(i // side)) for i, node in enumerate(order)}
    else:
        places = _spread(free)
    for host, switch in inside.items():
        x, y = places[switch]
        places[host] = (x + 0.26, y - 0.26)
    return places


def _spread(graph: nx.Graph[str]) -> dict[str, Point]:
    """Return places by forces, in units in which the nearest two nodes are 1 apart.

    Heights are multiples of 1/2, so that a terminal has few rows.
    """
    positions = nx.spring_layout(graph, seed=SEED, iterations=200)
    places = {node: (float(x), float(y)) for node, (x, y) in positions.items()}
    pairs = combinations(places.values(), 2)
    least = min((hypot(a[0] - b[0], a[1] - b[1]) for a, b in pairs), default=1.0)
    unit = max(least, 0.5 / len(places))
    return {node: (x / unit, round(2 * y / unit) / 2) for node, (x, y) in places.items()}
