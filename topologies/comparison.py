"""Figures of topologies by which they compare: size, length of ways, bisection, cost in ports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from ringleaf.core.plugins import described, failure, warn
from ringleaf.core.remembered import remembered
from ringleaf.core.units import format_rate
from ringleaf.errors import RingleafError
from ringleaf.topologies.graph import circuits, hosts, switches
from ringleaf.topologies.metrics import diameter
from ringleaf.topologies.registry import TOPOLOGIES, build

if TYPE_CHECKING:
    import networkx as nx

HEAD = (
    "topology",
    "hosts",
    "switches",
    "links",
    "diameter",
    "ports",
    "per host",
    "bisection",
    "per host",
)

MOST_HOSTS = 500
"""Hosts of a network whose bisection is sought; it takes seconds for more."""


@dataclass(frozen=True, slots=True)
class TopologyFigures:
    """One topology in numbers.

    Attributes:
        hosts: Number of hosts.
        switches: Number of switches; those inside servers that forward are not counted.
        links: Number of cables; servers' inner links are none. Circuits have a cable to a circuit
            switch from each port, however many pairs of switches they may join.
        diameter: The most cables on a shortest path between two hosts.
        bisection_bps: Bisection bandwidth; None: not sought.
        is_exact: Whether it is exact; else it is at most that.
    """

    hosts: int
    switches: int
    links: int
    diameter: int
    bisection_bps: int | None
    is_exact: bool

    @property
    def ports(self) -> int:
        """The cost: both ends of all cables, so ports of switches and of hosts' NICs."""
        return 2 * self.links


def figures_of(graph: nx.Graph[str]) -> TopologyFigures:
    """Return the figures of a topology.

    Raises:
        TopologyError: If a host can't reach another.
    """
    count = len(hosts(graph))
    inner = count if graph.graph["servers"] else 0
    longest = diameter(graph) if inner else diameter(graph) + 2
    bps, is_exact = None, False
    joined = circuits(graph)  # which of them are there, and so the bisection, changes
    cables = len({end for end, _ in joined}) * graph.graph.get("optical", 0) - len(joined) // 2
    if count <= MOST_HOSTS and not joined:
        from ringleaf.topologies.bisection import bisection

        bps, is_exact = astuple(bisection(graph))
    return TopologyFigures(
        count,
        len(switches(graph)) - inner,
        graph.number_of_edges() - inner + cables,
        longest if count > 1 else 0,
        bps,
        is_exact,
    )


def figures_by_family(count: int | None = None) -> list[tuple[str, TopologyFigures]]:
    """Return the name and figures of a topology of each family.

    Those of our own families with their usual parameters are remembered. Families of packages that
    fail, or have none of that size, are left out: a warning names them.

    Args:
        count: The least number of hosts of each; None: that of the usual parameters.

    Raises:
        TopologyError: If one of our own families has none of that size.
    """
    known = remembered("topologies", _usual) if count is None else {}
    figures = []
    for family in TOPOLOGIES:
        if family in known:
            figures.append((known[family][0], TopologyFigures(*known[family][1])))
            continue
        try:
            figures.append(_named_figures(family, count))
        except Exception as error:
            if family in TOPOLOGIES.shipped():
                raise
            line = str(error) if isinstance(error, RingleafError) else failure(error)
            warn(line or f"topology {family}: {described(error)}")
    return figures


def _usual() -> dict[str, tuple[str, list[Any]]]:
    figures = {family: _named_figures(family, None) for family in TOPOLOGIES.shipped()}
    return {family: (name, [*astuple(each)]) for family, (name, each) in figures.items()}


def _named_figures(family: str, count: int | None) -> tuple[str, TopologyFigures]:
    graph = build(family, hosts=count)
    return graph.name, figures_of(graph)


def table(named: Iterable[tuple[str, TopologyFigures]]) -> list[str]:
    """Return a head and a line for each topology, numbers aligned to the right."""
    rows = [HEAD, *(_cells(name, each) for name, each in named)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return [
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cells(name: str, each: TopologyFigures) -> tuple[str, ...]:
    numbers = (each.hosts, each.switches, each.links, each.diameter, each.ports)
    texts = [*map(str, numbers), f"{each.ports / each.hosts:.1f}", "-", "-"]
    if each.bisection_bps is not None:
        at_most = "" if each.is_exact else "<= "
        half = max(each.hosts // 2, 1)
        texts[-2:] = [
            f"{at_most}{format_rate(bps)}"
            for bps in (each.bisection_bps, each.bisection_bps / half)
        ]
    return (name, *texts)
