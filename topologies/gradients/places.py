"""The ways of gradients by the switches that add them up, and linear programs over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import networkx as nx

from ringleaf.core.extras import require
from ringleaf.errors import TopologyError
from ringleaf.topologies.detours import nodes_of
from ringleaf.topologies.graph import attachment, link, switches
from ringleaf.topologies.routing import Table, path

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Way = tuple[str, ...]
"""A worker, the switch that adds its gradients up, and the server: as `with_detours` takes it."""

Link = tuple[str, str]

OWN, SERVER = 0, -1
"""Numbers of two places of a worker: its own switch, and the server."""

DRAWS = 64
"""Roundings of a solution; the best one is taken. The papers round once."""


@dataclass(frozen=True, slots=True)
class AddingPlace:
    """A switch that may add up a worker's gradients for a server.

    Args:
        switch: The switch; None: none does, the server itself adds.
        links: The links from the worker to the switch, or to the server.
        rest: The links of the sum, from the switch to the server.
    """

    switch: str | None
    links: tuple[Link, ...]
    rest: tuple[Link, ...]


def places(graph: nx.Graph[str], worker: str, server: str, table: Table) -> list[AddingPlace]:
    """Return all places for a worker's gradients, its own switch first, the server last.

    Gradients go to their switch by a shortest way, and sums go on to the server by a shortest way;
    to its own switch a worker has the usual route, by `table`. Ways that would meet a node twice
    are left out.
    """
    own = attachment(graph, worker)
    usual = path(graph, worker, server, table=table)
    options = [AddingPlace(own, ((worker, own),), tuple(pairwise(usual[1:])))]
    for switch in switches(graph):
        if switch != own:
            nodes = _nodes(graph, worker, switch, server)
            if nodes:
                at = nodes.index(switch) + 1
                options.append(
                    AddingPlace(
                        switch, *(tuple(pairwise(p)) for p in (nodes[:at], nodes[at - 1 :]))
                    )
                )
    return [*options, AddingPlace(None, tuple(pairwise(usual)), ())]


def _nodes(graph: nx.Graph[str], worker: str, switch: str, server: str) -> tuple[str, ...]:
    try:
        return nodes_of(graph, (worker, switch, server))
    except TopologyError:
        return ()


def way_of(graph: nx.Graph[str], worker: str, place: AddingPlace, server: str) -> Way | None:
    """Return the detour that leads a worker's gradients to their place; None: it needs none.

    For the server itself, that is a way by its own switch alone, which adds up all that comes.
    """
    switch = place.switch or attachment(graph, server)
    return None if switch == attachment(graph, worker) else (worker, switch, server)


def rate_of(graph: nx.Graph[str], ends: Link) -> float:
    """Return a link's rate in Gbit/s, which keeps the programs' numbers near 1."""
    return link(graph, *ends).rate_bps / 1e9


@dataclass(slots=True)
class LinearProgram:
    """A linear program: minimise cost @ v, subject to rows @ v <= limits, and v within bounds.

    `rows` are mappings from a variable's number to its factor.
    """

    cost: list[float]
    bounds: list[tuple[float, float | None]]
    rows: list[Mapping[int, float]]
    limits: list[float]

    def add(self, cost: float = 0.0, most: float | None = None) -> int:
        """Return the number of a new variable from 0 to `most`."""
        self.cost.append(cost)
        self.bounds.append((0.0, most))
        return len(self.cost) - 1

    def limit(self, row: Mapping[int, float], most: float) -> None:
        """Let a sum be at most so much."""
        self.rows.append(row)
        self.limits.append(most)

    def solve(self, where: str, method: str = "highs") -> npt.NDArray[np.float64]:
        """Return the variables of an optimum, by HiGHS.

        Args:
            where: Who asks, for errors.
            method: SciPy's name of it; `highs-ipm`, by interior points, is faster for many rows.

        Raises:
            ConfigError: If SciPy is not installed.
            TopologyError: If there is no solution.
        """
        require("scipy", where)
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        entries = [(i, j, v) for i, row in enumerate(self.rows) for j, v in row.items()]
        rows, columns, values = zip(*entries, strict=True)
        matrix = csr_array((values, (rows, columns)), shape=(len(self.rows), len(self.cost)))
        optimum: Any = linprog(self.cost, matrix, self.limits, bounds=self.bounds, method=method)
        if not optimum.success:
            raise TopologyError(
                f"{where}: the linear program has no solution, got {optimum.message}"
            )
        solution: npt.NDArray[np.float64] = optimum.x
        return solution


def empty_program() -> LinearProgram:
    """Return a program without variables."""
    return LinearProgram([], [], [], [])


def sums(items: Sequence[tuple[Link, int]]) -> dict[Link, dict[int, float]]:
    """Return, by link, how often each variable is there."""
    rows: dict[Link, dict[int, float]] = {}
    for ends, variable in items:
        row = rows.setdefault(ends, {})
        row[variable] = row.get(variable, 0.0) + 1.0
    return rows
