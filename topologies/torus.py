"""Tori of two and three dimensions: servers in a grid whose rows close into rings."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from ringleaf.topologies.family import Counts, check_sizes
from ringleaf.topologies.graph import Link, Point, add_server, connect, join_servers, new_graph

if TYPE_CHECKING:
    import networkx as nx

DIRECTIONS = ((1.0, 0.0), (0.0, -1.0), (0.6, 0.6))
"""The direction of each dimension in a drawing."""


def torus_2d(x: int, y: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make x by y servers; server i is at column i mod x. See `torus_3d` for the rest."""
    return _torus({"x": x, "y": y}, link, host_link)


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
    return _torus({"x": x, "y": y, "z": z}, link, host_link)


def _torus(sizes: Mapping[str, int], link: Link, host_link: Link | None) -> nx.Graph[str]:
    name = _checked(sizes)
    shape = tuple(sizes.values())
    graph = new_graph(
        name, shape, routing="dimension_order", shape=shape, layout="grid", grid=shape
    )
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
                if step != 1:
                    _draw_as_stubs(graph, f"s{rank}", f"s{after}", DIRECTIONS[axis])
    join_servers(graph, link, host_link)
    return graph


def _draw_as_stubs(graph: nx.Graph[str], last: str, first: str, direction: Point) -> None:
    """Draw a link that closes a ring as two stubs, one on either side of the drawing."""
    (x, y), length = direction, 0.45
    graph.edges[last, first]["stubs"] = {
        last: (x * length, y * length),
        first: (-x * length, -y * length),
    }


def _position(place: tuple[int, ...], shape: tuple[int, ...]) -> Point:
    """Return a place: row 0 on top, the third dimension up and to the right in a column's cell."""
    depth = shape[2] if len(shape) > 2 else 1
    cell = 1 + (depth - 1) * DIRECTIONS[2][0]
    steps = [place[0] * cell, place[1] * cell, *place[2:]]
    x = sum(step * direction[0] for step, direction in zip(steps, DIRECTIONS, strict=False))
    y = sum(step * direction[1] for step, direction in zip(steps, DIRECTIONS, strict=False))
    return (x, y)


def _checked(sizes: Mapping[str, int]) -> str:
    """Return the name of an instance, if there is one."""
    name = ",".join([f"torus{len(sizes)}d", *(f"{axis}={size}" for axis, size in sizes.items())])
    check_sizes(name, **sizes)
    return name


def count_torus(**sizes: int) -> Counts:
    """Return the counts: s links per ring of s servers, 1 for two, 0 for one; 1 in each server."""
    _checked(sizes)
    servers = prod(sizes.values())
    rings = (servers // size * (size if size > 2 else size - 1) for size in sizes.values())
    return Counts(servers, servers, servers + sum(rings), rack=1)
