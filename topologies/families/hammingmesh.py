"""HammingMesh: boards of accelerators in a mesh, joined row by row and column by column.

Source:
    Hoefler et al., "HammingMesh: A Network Topology for Large-Scale Deep Learning", SC 2022,
    section III.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import TYPE_CHECKING

from ringleaf.core.units import format_count
from ringleaf.errors import TopologyError
from ringleaf.topologies.family import Counts, Family, check_sizes, fill
from ringleaf.topologies.graph import (
    MOST_REGULAR,
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

RADIX = 64
"""Ports of the switches that join boards."""

BOARD_GAP = 0.5
RAIL_OFFSET = 0.42
LEAN = 0.22
"""In a drawing: room between boards, from a row of accelerators to the rail that stands for
its switch, and how much links to the rail lean outward."""


@dataclass(frozen=True, slots=True)
class Rail:
    """A row or column of the machine, with the accelerators at the two ends of each board."""

    kind: str
    number: int
    ends: list[tuple[int, int]]  # ranks
    along: Point  # its direction in a drawing
    beside: Point  # from an accelerator to the rail that stands for the line's switch


@dataclass(frozen=True, slots=True)
class BoardGrid:
    """Boards of a by b accelerators, x by y of them."""

    a: int
    b: int
    x: int
    y: int

    def rank(self, column: int, row: int) -> int:
        """Return the rank of the accelerator at a column and row of the machine: board by board."""
        board = row // self.b * self.x + column // self.a
        return (board * self.b + row % self.b) * self.a + column % self.a

    @property
    def has_rings(self) -> bool:
        """Whether rows and columns of the machine are rings, through their switches, or short."""
        return (self.x > 1 or self.a < 3) and (self.y > 1 or self.b < 3)

    def in_grid(self) -> tuple[int, ...]:
        """Return the ranks row by row of the machine."""
        rows, columns = range(self.b * self.y), range(self.a * self.x)
        return tuple(self.rank(column, row) for row in rows for column in columns)

    def lines(self) -> Iterator[Rail]:
        """Yield the rows, then the columns, that have more than one board."""
        for row in range(self.b * self.y if self.x > 1 else 0):
            ranks = [self.rank(column, row) for column in range(self.a * self.x)]
            yield Rail("row", row, _ends(ranks, self.a), (1, 0), (0, RAIL_OFFSET))
        for column in range(self.a * self.x if self.y > 1 else 0):
            ranks = [self.rank(column, row) for row in range(self.b * self.y)]
            yield Rail("column", column, _ends(ranks, self.b), (0, -1), (-RAIL_OFFSET, 0))

    def position(self, column: int, row: int) -> Point:
        """Return the place in a drawing: row 0 on top, and a gap between boards."""
        return (column + column // self.a * BOARD_GAP, -row - row // self.b * BOARD_GAP)


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
    name = _checked(a, b, x, y, radix)
    is_irregular = a * b * x * y > MOST_REGULAR
    graph = new_graph(name, (a, b, x, y), layout="grid", uneven=True, irregular=is_irregular)
    shape = BoardGrid(a, b, x, y)
    if shape.has_rings:
        graph.graph.update(grid=(a * x, b * y), in_grid=shape.in_grid())
    _add_boards(graph, shape, link)
    numbers = count(a * b * x * y)
    for line in shape.lines():
        if 2 * len(line.ends) <= radix:
            _add_rail(graph, next(numbers), f"{line.kind} {line.number}", line, line.ends, link)
        else:
            _add_tree(graph, numbers, line, link, radix)
    join_servers(graph, link, host_link)
    return graph


def _ends(ranks: Sequence[int], board: int) -> list[tuple[int, int]]:
    return [(ranks[i], ranks[i + board - 1]) for i in range(0, len(ranks), board)]


def _add_boards(graph: nx.Graph[str], shape: BoardGrid, link: Link) -> None:
    places = list(product(range(shape.y), range(shape.x), range(shape.b), range(shape.a)))
    for rank, (board_row, board_column, j, i) in enumerate(places):
        column, row = board_column * shape.a + i, board_row * shape.b + j
        add_server(graph, rank, f"{column},{row}", shape.position(column, row))
    for rank, (board_row, board_column, j, i) in enumerate(places):
        if i + 1 < shape.a:
            connect(graph, f"s{rank}", f"s{rank + 1}", link)
        if j + 1 < shape.b:
            connect(graph, f"s{rank}", f"s{rank + shape.a}", link)
        if i == j == 0:
            west, north = shape.position(board_column * shape.a, board_row * shape.b)
            corner = (west + shape.a - 1, north - shape.b + 1)
            graph.graph["frames"].append(((west, north), corner))


def _add_rail(
    graph: nx.Graph[str],
    number: int,
    label: str,
    line: Rail,
    ends: Sequence[tuple[int, int]],
    link: Link,
) -> str:
    """Add a switch that joins both ends of some boards; a drawing shows it as a rail."""
    places = graph.nodes
    start, stop = (
        _shifted(places[f"s{rank}"]["pos"], line.beside) for rank in (ends[0][0], ends[-1][1])
    )
    rail = (_shifted(start, line.along, -LEAN), _shifted(stop, line.along, 0.75))
    switch = add_switch(graph, number, 1, label, rail[1])
    graph.nodes[switch]["rail"] = rail
    for first, last in ends:
        if first == last:
            connect(graph, f"s{first}", switch, Link(2 * link.rate_bps, link.delay_ps))
            graph.edges[f"s{first}", switch]["stubs"] = {f"s{first}": line.beside}
            continue
        for rank, lean in ((first, -LEAN), (last, LEAN)):
            connect(graph, f"s{rank}", switch, link)
            stub = _shifted(line.beside, line.along, lean)
            graph.edges[f"s{rank}", switch]["stubs"] = {f"s{rank}": stub}
    return switch


def _add_tree(
    graph: nx.Graph[str], numbers: Iterator[int], line: Rail, link: Link, radix: int
) -> None:
    per_leaf = radix // 4  # boards: half a leaf's ports lead down, two to each board
    groups = [line.ends[i : i + per_leaf] for i in range(0, len(line.ends), per_leaf)]
    leaves = [
        _add_rail(graph, next(numbers), f"{line.kind}-leaf {line.number}.{i}", line, group, link)
        for i, group in enumerate(groups)
    ]
    outside = _shifted(graph.nodes[leaves[-1]]["pos"], line.along, 1)
    for i in range(2 * per_leaf):
        pos = _shifted(outside, line.beside, -i / per_leaf)
        spine = add_switch(graph, next(numbers), 2, f"{line.kind}-spine {line.number}.{i}", pos)
        for leaf in leaves:
            connect(graph, leaf, spine, link)


def _shifted(pos: Point, direction: Point, times: float = 1) -> Point:
    return (pos[0] + times * direction[0], pos[1] + times * direction[1])


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return sizes with boards of two by two, in a machine as near to square as possible."""
    a, b = fixed.get("a", 2), fixed.get("b", 2)
    return {"a": a, "b": b, **fill(-(-hosts // max(a * b, 1)), fixed, "x", "y")}


def _checked(a: int, b: int, x: int, y: int, radix: int = RADIX) -> str:
    """Return the name of an instance, if there is one."""
    name = f"hammingmesh,a={a},b={b},x={x},y={y}"
    check_sizes(name, a=a, b=b, x=x, y=y)
    check_sizes(name, 4, radix=radix)
    most = radix * (radix // 4)  # each of `radix` leaves joins half as many boards as it has ports
    for boards in (x, y):
        if boards > most:
            raise TopologyError(
                f"{name}: a row or column takes up to {format_count(most, 'board')} with "
                f"{radix}-port switches, got {boards}"
            )
    return name


def _count(a: int, b: int, x: int, y: int) -> Counts:
    _checked(a, b, x, y)
    servers = a * b * x * y
    switches, links = servers, servers + x * y * ((a - 1) * b + a * (b - 1))
    for lines, boards, width in ((b * y, x, a), (a * x, y, b)):
        if boards > 1:
            leaves, spines = _line_size(boards)
            switches += lines * (leaves + spines)
            links += lines * (boards * (2 if width > 1 else 1) + leaves * spines)
    return Counts(servers, switches, links, rack=1)


def _line_size(boards: int) -> tuple[int, int]:
    """Return the switches that join the boards of a row: leaves, and spines if one is too small."""
    if 2 * boards <= RADIX:
        return 1, 0
    return -(-boards // (RADIX // 4)), RADIX // 2


TOPOLOGY = Family(
    "x by y boards of a by b accelerators, row and column switches",
    hamming_mesh,
    {"a": 2, "b": 2, "x": 2, "y": 2},
    _fit,
    _count,
)
