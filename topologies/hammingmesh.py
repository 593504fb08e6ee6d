"""HammingMesh: boards of accelerators in a mesh, joined row by row and column by column.

Source:
    Hoefler et al., "HammingMesh: A Network Topology for Large-Scale Deep Learning", SC 2022,
    section III.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, product

import networkx as nx

from ringleaf.errors import TopologyError
from topologies.family import Family, check_sizes, fill
from topologies.graph import Link, add_server, add_switch, connect, join_servers, new_graph

RADIX = 64
"""Ports of the switches that join boards."""

BOARD_GAP = 0.5
"""Room between boards in a drawing, in accelerators."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Boards of a by b accelerators, x by y of them."""

    a: int
    b: int
    x: int
    y: int

    def accelerator(self, column: int, row: int) -> int:
        """Rank of the accelerator at a column and row of the whole machine: board by board."""
        board = row // self.b * self.x + column // self.a
        return (board * self.b + row % self.b) * self.a + column % self.a


@dataclass(frozen=True, slots=True)
class Line:
    """A row or column of the machine: the two ends of each board, and where its switches go."""

    label: str
    ends: list[tuple[int, int]]  # ranks
    pos: tuple[float, float]
    outward: tuple[int, int]

    def at(self, level: int, i: int) -> tuple[float, float]:
        """Place of switch `i` of a level of the line's tree, beside the machine."""
        away, along = level, i * 0.2
        (x, y), (dx, dy) = self.pos, self.outward
        return (x + dx * away + dy * along, y + dy * away - dx * along)


def hamming_mesh(
    a: int,
    b: int,
    x: int,
    y: int,
    *,
    link: Link,
    host_link: Link | None = None,
    radix: int = RADIX,
) -> nx.Graph[str]:
    """Make x by y boards, each a mesh of a by b accelerators; a b x y in all.

    The accelerators at the western and eastern edge of each board are joined, row by row, by a
    switch of that row; those at the northern and southern edge likewise by a switch per
    column. Where a row has more ends than a switch has ports, a two-level tree with full bandwidth
    takes its place. If a board is one wide, both ends are one accelerator, and it has one
    link of twice the rate. A dimension with one board has no switches.

    Accelerator i is host `h{i}` and switch `s{i}`, counted board by board; row switches come
    next, then column switches.

    Args:
        a: Accelerators per board row, >= 1.
        b: Accelerators per board column, >= 1.
        x: Boards per row, >= 1.
        y: Boards per column, >= 1.
        link: Links between accelerators, and to row and column switches.
        host_link: Link inside an accelerator; as much as its other links together if None.
        radix: Ports per row and column switch, >= 4.

    Raises:
        TopologyError: If a size is too small, or a row too long for a two-level tree.
    """
    name = f"hammingmesh,a={a},b={b},x={x},y={y}"
    check_sizes(name, a=a, b=b, x=x, y=y)
    check_sizes(name, 4, radix=radix)
    graph = new_graph(name, (a, b, x, y))
    shape = Shape(a, b, x, y)
    _add_boards(graph, shape, link)
    numbers = count(a * b * x * y)
    width, height = _position(shape, a * x - 1, b * y - 1)
    for row in range(b * y if x > 1 else 0):
        ends = [
            (shape.accelerator(board * a, row), shape.accelerator(board * a + a - 1, row))
            for board in range(x)
        ]
        line = Line(f"row {row}", ends, (width + 1, _position(shape, 0, row)[1]), (1, 0))
        _add_line(graph, line, numbers, link, radix)
    for column in range(a * x if y > 1 else 0):
        ends = [
            (shape.accelerator(column, board * b), shape.accelerator(column, board * b + b - 1))
            for board in range(y)
        ]
        line = Line(f"column {column}", ends, (_position(shape, column, 0)[0], height - 1), (0, -1))
        _add_line(graph, line, numbers, link, radix)
    join_servers(graph, link, host_link)
    return graph


def _add_boards(graph: nx.Graph[str], shape: Shape, link: Link) -> None:
    places = list(product(range(shape.y), range(shape.x), range(shape.b), range(shape.a)))
    for rank, (board_row, board_column, j, i) in enumerate(places):
        column, row = board_column * shape.a + i, board_row * shape.b + j
        add_server(graph, rank, f"{column},{row}", _position(shape, column, row))
    for rank, (_, _, j, i) in enumerate(places):
        if i + 1 < shape.a:
            connect(graph, f"s{rank}", f"s{rank + 1}", link)
        if j + 1 < shape.b:
            connect(graph, f"s{rank}", f"s{rank + shape.a}", link)


def _position(shape: Shape, column: int, row: int) -> tuple[float, float]:
    """Row 0 on top, and a gap between boards."""
    return (column + column // shape.a * BOARD_GAP, -row - row // shape.b * BOARD_GAP)


def _add_line(
    graph: nx.Graph[str], line: Line, numbers: Iterator[int], link: Link, radix: int
) -> None:
    """Join the two ends of each board by one switch, or by a tree if it has too few ports."""
    if 2 * len(line.ends) <= radix:
        switch = add_switch(graph, next(numbers), 1, line.label, line.pos)
        for ends in line.ends:
            _join_ends(graph, switch, ends, link)
        return
    per_leaf = radix // 4  # boards: half a leaf's ports lead down, two to each board
    groups = [line.ends[i : i + per_leaf] for i in range(0, len(line.ends), per_leaf)]
    if len(groups) > radix:
        raise TopologyError(
            f"{graph.name}: a row or column takes up to {radix * per_leaf} boards with "
            f"{radix}-port switches, got {len(line.ends)}"
        )
    leaves = []
    for i, group in enumerate(groups):
        leaf = add_switch(graph, next(numbers), 1, f"{line.label} leaf {i}", line.at(0, i))
        leaves.append(leaf)
        for ends in group:
            _join_ends(graph, leaf, ends, link)
    for i in range(2 * per_leaf):
        spine = add_switch(graph, next(numbers), 2, f"{line.label} spine {i}", line.at(1, i))
        for leaf in leaves:
            connect(graph, leaf, spine, link)


def _join_ends(graph: nx.Graph[str], switch: str, ends: tuple[int, int], link: Link) -> None:
    if ends[0] == ends[1]:
        connect(graph, f"s{ends[0]}", switch, Link(2 * link.rate_bps, link.delay_ps))
        return
    for end in ends:
        connect(graph, f"s{end}", switch, link)


def _fit(hosts: int, given: Mapping[str, int]) -> dict[str, int]:
    """Boards of two by two, in a machine as near to square as can be."""
    a, b = given.get("a", 2), given.get("b", 2)
    return {"a": a, "b": b, **fill(-(-hosts // max(a * b, 1)), given, "x", "y")}


FAMILY = Family(
    "x by y boards of a by b accelerators, row and column switches",
    hamming_mesh,
    {"a": 2, "b": 2, "x": 2, "y": 2},
    _fit,
)
