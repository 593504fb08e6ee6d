"""DCell, where servers forward: cells of cells, each joined to all others of its level.

Source:
    Guo, Wu, Tan, Shi, Zhang and Lu, "DCell: A Scalable and Fault-Tolerant Network Structure for
    Data Centers", SIGCOMM 2008, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, count, pairwise
from math import cos, pi, sin
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError
from ringleaf.topologies.cells import cell_sizes
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import (
    Link,
    Point,
    add_server,
    add_switch,
    connect,
    join_servers,
    new_graph,
)

if TYPE_CHECKING:
    import networkx as nx

MOST_LEVELS = 5
"""Levels of the largest network that is counted; with three, there are 176,820 servers at least."""

ROOM = 1.3
"""The least room from one server of a smallest cell to the next, in the units of drawings."""


def dcell(n: int, k: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make a DCell of level k: t + 1 cells of level k - 1, which have t servers each.

    A cell of level 0 is n servers at a switch. Of the cells of a level, the i-th and the j-th are
    joined by a link of server j - 1 of the one and server i of the other, for i < j. So each server
    has one link at each level. Server i is host `h{i}` and switch `s{i}`; the cells' switches
    come next.

    Args:
        n: Servers per switch, >= 2.
        k: Highest level, >= 0.
        link: Links of servers, to their switch and to others.
        host_link: Link inside a server; as much as its other links together if None.

    Raises:
        TopologyError: If n or k is too small or too large.
    """
    name = _checked(n, k)
    sizes = cell_sizes(n, k)
    servers = sizes[-1]
    cells = [size // smaller for smaller, size in pairwise(sizes)]
    graph = new_graph(
        name, (n, *cells), shape=(n, k + 1), layout="grid", uneven=True, irregular=True
    )
    for server in range(servers):
        add_server(graph, server, _address(server, sizes), _place(server, sizes))
    for cell in range(servers // n):
        add_switch(graph, servers + cell, 1, f"switch {cell}", _middle(cell, sizes))
    for server in range(servers):
        connect(graph, f"s{server}", f"s{servers + server // n}", link)
    for a, b in _joined(sizes):
        connect(graph, f"s{a}", f"s{b}", link)
    join_servers(graph, link, host_link)
    return graph


def _joined(sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the servers of each link between two, level by level."""
    for smaller, size in pairwise(sizes):
        for first in range(0, sizes[-1], size):
            for i, j in combinations(range(size // smaller), 2):
                yield first + i * smaller + j - 1, first + j * smaller + i


def _address(server: int, sizes: list[int]) -> str:
    """Return the paper's name of a server: its cell at each level, and its number, like `3.0.1`."""
    digits = []
    for size in reversed(sizes[:-1]):
        digits.append(server // size)
        server %= size
    return ".".join(map(str, [*digits, server]))


def _radii(sizes: list[int]) -> list[float]:
    """Return the radius of the circle on which the cells of each level stand, servers first."""
    radii = [max(ROOM * sizes[0] / (2 * pi), 0.9)]
    for smaller, size in pairwise(sizes):
        width = 2 * sum(radii) + 1.5
        radii.append(max(width * (size // smaller) / (2 * pi), width / 1.9))
    return radii


def _middle(cell: int, sizes: list[int]) -> Point:
    """Return the place of a smallest cell's switch: the middle of its servers."""
    x = y = 0.0
    below = [1, *(size // sizes[0] for size in sizes)]  # smallest cells in one of each level
    for level, radius in enumerate(_radii(sizes)):
        if level:
            number, among = (
                cell % below[level + 1] // below[level],
                below[level + 1] // below[level],
            )
            x, y = _moved((x, y), radius, number / among)
    return (round(x, 3), round(4 * y) / 4)


def _place(server: int, sizes: list[int]) -> Point:
    middle = _middle(server // sizes[0], sizes)
    x, y = _moved(middle, _radii(sizes)[0], (server % sizes[0] + 0.5) / sizes[0])
    return (round(x, 3), round(4 * y) / 4)


def _moved(pos: Point, radius: float, turn: float) -> Point:
    return (pos[0] + radius * sin(2 * pi * turn), pos[1] + radius * cos(2 * pi * turn))


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes with the fewest servers, of up to two levels unless `k` is fixed."""
    if "n" in fixed:
        ports = max(fixed["n"], 2)  # the generator refuses less, and says why
        levels = (k for k in range(MOST_LEVELS) if cell_sizes(ports, k)[-1] >= hosts)
        return {"k": next(levels, MOST_LEVELS), **fixed}
    levels_tried = [min(fixed["k"], MOST_LEVELS)] if "k" in fixed else [1, 2]
    enough = [(_ports(hosts, k), k) for k in levels_tried]
    n, k = min(enough, key=lambda size: (cell_sizes(*size)[-1], size[1]))
    return {"n": n, "k": k, **fixed}


def _ports(hosts: int, levels: int) -> int:
    return next(n for n in count(2) if cell_sizes(n, levels)[-1] >= hosts)


def _checked(n: int, k: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"dcell,n={n},k={k}"
    check_sizes(name, 2, n=n)
    check_sizes(name, 0, k=k)
    if k > MOST_LEVELS:
        raise TopologyError(f"{name}: k must be <= {MOST_LEVELS}, got {k}")
    return name


def _count(n: int, k: int) -> Counts:
    _checked(n, k)
    servers = cell_sizes(n, k)[-1]
    return Counts(servers, servers + servers // n, 2 * servers + k * servers // 2, rack=1)


TOPOLOGY = Family(
    "server-centric, cells of cells of n servers, each joined to all others of its level",
    dcell,
    {"n": 4, "k": 1},
    _fit,
    _count,
)
