"""Where nodes go in a page's drawing of a topology, in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

import networkx as nx

from topologies.graph import Point, hosts, switches

PITCH = 62.0  # between neighbouring hosts
NARROW = 44.0  # where there are more than MOST_WIDE of them
MOST_WIDE = 8
TIER = 104.0  # between tiers
GRID = 110.0  # between the servers of a grid
MARGIN = 36.0
MOST_ROUND = 16  # hosts that are drawn round their only switch
ARC = 0.22  # of its length: how far a link that goes round bulges


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes' centres, and links that are arcs because others lie in their way."""

    at: dict[str, Point]
    width: float
    height: float
    arcs: frozenset[frozenset[str]]


def lay_out(graph: nx.Graph[str]) -> Layout:
    """Hosts round a single switch; otherwise as the topology's own drawing has it."""
    members, nodes = hosts(graph), switches(graph)
    if len(nodes) == 1 and len(members) <= MOST_ROUND:
        return _fit(_round(members, nodes[0]), frozenset())
    tiers = graph.graph["layout"] == "tiers"
    pitch = PITCH if len(members) <= MOST_WIDE else NARROW
    scale = (pitch, TIER) if tiers else (GRID, GRID)
    at = {node: _place(graph, node, scale) for node in graph}
    arcs = frozenset(frozenset((a, b)) for a, b, edge in graph.edges(data=True) if "stubs" in edge)
    return _fit(at, arcs)


def _round(members: list[str], switch: str) -> dict[str, Point]:
    """The first rank at the upper left, then clockwise, so that a ring is one."""
    radius = max(112.0, PITCH * len(members) / (2 * pi) + 20)
    turn = 2 * pi / len(members)
    start = -pi / 2 - turn / 2
    places = {
        host: (1.25 * radius * cos(start + i * turn), radius * sin(start + i * turn))
        for i, host in enumerate(members)
    }
    return {**places, switch: (0.0, 0.0)}


def _place(graph: nx.Graph[str], node: str, scale: Point) -> Point:
    x, y = graph.nodes[node]["pos"]
    return (x * scale[0], -y * scale[1])  # a page's y goes down


def _fit(at: dict[str, Point], arcs: frozenset[frozenset[str]]) -> Layout:
    left = min(x for x, _ in at.values())
    top = min(y for _, y in at.values())
    margin = MARGIN if not arcs else 1.6 * MARGIN
    moved = {
        node: (round(x - left + margin, 1), round(y - top + margin, 1))
        for node, (x, y) in at.items()
    }
    width = max(x for x, _ in moved.values()) + margin
    height = max(y for _, y in moved.values()) + margin
    return Layout(moved, width, height, arcs)
