"""The load of each link from the data that hosts send to one another, on the given routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import networkx as nx
import numpy as np

from ringleaf.core.units import serialize_ps
from ringleaf.topologies.graph import attachment, link, neighbors, switch_graph
from ringleaf.topologies.route_table import RouteTable

Direction = tuple[str, str]
Demand = Mapping[str, Mapping[str, float]]
"""Destination host -> node -> the amount it sends there; the node may be a switch, too."""


def link_loads(graph: nx.Graph[str], demand: Demand, table: RouteTable) -> dict[Direction, float]:
    """Return the load of each link's direction, in the unit of `demand`.

    Where several ports are allowed, each gets an equal part, as with many flows. Data that a host
    sends to itself goes to its switch and back.

    Args:
        graph: The topology.
        demand: The amount that each node sends to each host.
        table: From `routes`, or `dealt`.
    """
    peers = switch_graph(graph)
    beyond = {switch: neighbors(graph, switch) for switch in peers}  # by port
    loads: dict[Direction, float] = defaultdict(float)
    for dst, sources in demand.items():
        through: dict[str, float] = defaultdict(float)  # by switch, towards `dst`
        for src, amount in sources.items():
            if src in peers:
                through[src] += amount
            else:
                through[attachment(graph, src)] += amount
                loads[src, attachment(graph, src)] += amount
        away = table.away[:, table.arrays.leaf[table.arrays.hosts.index(dst)]]
        for number in np.argsort(-away, kind="stable").tolist():  # each way leads nearer
            switch = table.arrays.switches[number]
            ports = table[switch][dst] if through[switch] > 0 else ()
            for port in ports:
                peer = beyond[switch][port]
                loads[switch, peer] += through[switch] / len(ports)
                if peer != dst:
                    through[peer] += through[switch] / len(ports)
    return dict(loads)


def busiest_ps(graph: nx.Graph[str], loads: Mapping[Direction, float], size_bytes: int) -> int:
    """Return the time that the busiest link takes, if a load of 1 is `size_bytes` bytes."""
    return round(
        max(
            load * serialize_ps(size_bytes, link(graph, *nodes).rate_bps)
            for nodes, load in loads.items()
        )
    )
