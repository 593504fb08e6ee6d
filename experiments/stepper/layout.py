"""The positions of nodes in a page's drawing of a topology, in pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import cos, pi, sin

import networkx as nx

from ringleaf.topologies.graph import Point, Role, hosts, switches
from ringleaf.topologies.layout import placed

PITCH = 62.0  # between neighbouring hosts
NARROW = 44.0  # the same, if there are more than MOST_WIDE of them
TURNED = 18.0  # the same, if there are more than MOST_NARROW: their names are turned
MOST_WIDE, MOST_NARROW = 8, 24
TIER, TALL_TIER = 104.0, 136.0  # between tiers; the latter if names are turned
GRID = 110.0  # between the servers of a grid
MARGIN = 36.0
MOST_OVAL = 16  # hosts round their only switch at a distance of PITCH; more share one circle
RADIUS = 225.0  # of that circle
ARC = 0.22  # bulge of a curved link, as a share of its length

SIZES = {Role.HOST: (34.0, 26.0), Role.SWITCH: (40.0, 26.0)}
LEAST_LEVEL = 24.0  # a box narrower than this has its name turned
TURNED_HEIGHT = 32.0


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """The nodes' centres and boxes, and the links that are arcs because nodes lie in their way."""

    at: dict[str, Point]
    size: dict[str, Point]  # width and height; names in boxes that are taller than wide are turned
    width: float
    height: float
    arcs: frozenset[frozenset[str]]


def lay_out(graph: nx.Graph[str]) -> PictureLayout:
    """Place hosts around a single switch; otherwise follow the topology's own drawing, if any."""
    graph = placed(graph)
    members, nodes = hosts(graph), switches(graph)
    if len(nodes) == 1:
        return _fit(_round(members, nodes[0]), _round_sizes(members, nodes[0]), frozenset())
    tiers = graph.graph["layout"] == "tiers"
    scale = _tier_scale(graph, members) if tiers else (GRID, GRID)
    at = {node: _place(graph, node, scale) for node in graph}
    sizes = {node: SIZES[graph.nodes[node]["role"]] for node in graph}
    if tiers:
        sizes = _narrowed(at, sizes)
    arcs = frozenset(frozenset((a, b)) for a, b, edge in graph.edges(data=True) if "stubs" in edge)
    return _fit(at, sizes, arcs)


def _tier_scale(graph: nx.Graph[str], members: list[str]) -> Point:
    if graph.graph["servers"]:  # a host and its switch stand beside each other
        row = [graph.nodes[node]["pos"][0] for node in graph if _is_at_server(graph, node)]
        return max(TURNED, min(NARROW, TURNED / _closest(row))), TALL_TIER
    if len(members) > MOST_NARROW:
        return TURNED, TALL_TIER
    return (PITCH if len(members) <= MOST_WIDE else NARROW), TIER


def _is_at_server(graph: nx.Graph[str], node: str) -> bool:
    tier: int = graph.nodes[node].get("tier", 0)  # hosts have none
    return tier == 0


def _narrowed(at: dict[str, Point], sizes: dict[str, Point]) -> dict[str, Point]:
    """Make the boxes of each row narrow enough to stand beside each other."""
    rows: dict[float, list[str]] = {}
    for node, (_, y) in at.items():
        rows.setdefault(round(y, 3), []).append(node)
    narrowed = {}
    for row in rows.values():
        room = 0.85 * _closest(at[node][0] for node in row)
        for node in row:
            width, height = sizes[node]
            fits = min(width, room)
            narrowed[node] = (fits, height if fits >= LEAST_LEVEL else TURNED_HEIGHT)
    return narrowed


def _closest(places: Iterable[float]) -> float:
    return min((b - a for a, b in pairwise(sorted(places))), default=float("inf"))


def _round(members: list[str], switch: str) -> dict[str, Point]:
    """Place the first rank at the upper left and the others clockwise, so a ring looks like one."""
    radius, stretch = RADIUS, 1.0
    if len(members) <= MOST_OVAL:
        radius, stretch = max(112.0, PITCH * len(members) / (2 * pi) + 20), 1.25
    turn = 2 * pi / len(members)
    start = -pi / 2 - turn / 2
    places = {
        host: (stretch * radius * cos(start + i * turn), radius * sin(start + i * turn))
        for i, host in enumerate(members)
    }
    return {**places, switch: (0.0, 0.0)}


def _round_sizes(members: list[str], switch: str) -> dict[str, Point]:
    """Return boxes with diagonals shorter than the way from one to the next, so none overlap."""
    width, height = SIZES[Role.HOST]
    if len(members) > MOST_OVAL:
        pitch = 2 * RADIUS * sin(pi / len(members))
        width, height = min(width, 0.85 * pitch), min(height, 0.5 * pitch)
    return {**dict.fromkeys(members, (width, height)), switch: SIZES[Role.SWITCH]}


def _place(graph: nx.Graph[str], node: str, scale: Point) -> Point:
    x, y = graph.nodes[node]["pos"]
    return (x * scale[0], -y * scale[1])  # a page's y goes down


def _fit(
    at: dict[str, Point], sizes: dict[str, Point], arcs: frozenset[frozenset[str]]
) -> PictureLayout:
    left = min(x for x, _ in at.values())
    top = min(y for _, y in at.values())
    margin = MARGIN if not arcs else 1.6 * MARGIN
    moved = {
        node: (round(x - left + margin, 1), round(y - top + margin, 1))
        for node, (x, y) in at.items()
    }
    width = max(x for x, _ in moved.values()) + margin
    height = max(y for _, y in moved.values()) + margin
    rounded = {node: (round(w, 1), round(h, 1)) for node, (w, h) in sizes.items()}
    return PictureLayout(moved, rounded, round(width, 1), round(height, 1), arcs)
