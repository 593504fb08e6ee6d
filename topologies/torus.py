"""Tori of two and three dimensions: servers in a grid whose rows close into rings."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

import networkx as nx

from topologies.family import Family, check_sizes, fill
from topologies.graph import Link, add_server, connect, join_servers, new_graph


def torus_2d(x: int, y: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make x by y servers; server i is at column i mod x. See `torus_3d` for the rest."""
    return _torus(f"torus2d,x={x},y={y}", {"x": x, "y": y}, link, host_link)


def torus_3d(x: int, y: int, z: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make x by y by z servers, x changing fastest; server i is host `h{i}` and switch `s{i}`.

    Each dimension is a ring: one of two servers is one link (not two side by side), one of a
    single server is none.

    Args:
        x: Servers per row, >= 1.
        y: Rows per plane, >= 1.
        z: Planes, >= 1.
        link: Links between servers.
        host_link: Link inside a server; as much as its other links together if None.

    Raises:
        TopologyError: If a size is below 1.
    """
    return _torus(f"torus3d,x={x},y={y},z={z}", {"x": x, "y": y, "z": z}, link, host_link)


def _torus(
    name: str, sizes: Mapping[str, int], link: Link, host_link: Link | None
) -> nx.Graph[str]:
    check_sizes(name, **sizes)
    shape = tuple(sizes.values())
    graph = new_graph(name, shape, routing="dimension_order", shape=shape)
    places = [place[::-1] for place in product(*(range(size) for size in reversed(shape)))]
    for rank, place in enumerate(places):
        label = ",".join(str(coordinate) for coordinate in place)
        add_server(graph, rank, label, _position(place, shape))
    for axis, size in enumerate(shape):
        for rank, place in enumerate(places):
            step = (place[axis] + 1) % size - place[axis]
            after = rank + step * prod(shape[:axis])
            if after != rank and not graph.has_edge(f"s{rank}", f"s{after}"):
                connect(graph, f"s{rank}", f"s{after}", link)
    join_servers(graph, link, host_link)
    return graph


def _position(place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[float, float]:
    """Row 0 on top; planes side by side."""
    plane = place[2] if len(place) > 2 else 0
    return (place[0] + plane * (shape[0] + 1), -place[1])


TORUS_2D = Family(
    "x by y servers in rings",
    torus_2d,
    {"x": 4, "y": 4},
    lambda hosts, given: fill(hosts, given, "x", "y"),
)
TORUS_3D = Family(
    "x by y by z servers in rings",
    torus_3d,
    {"x": 4, "y": 2, "z": 2},
    lambda hosts, given: fill(hosts, given, "x", "y", "z"),
)
