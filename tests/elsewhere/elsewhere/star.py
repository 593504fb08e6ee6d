"""A star: one switch, and hosts round it."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph


def star(hosts: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    name = f"star,hosts={hosts}"
    check_sizes(name, hosts=hosts)
    graph = new_graph(name, (hosts,))
    add_switch(graph, 0, 0, "hub", ((hosts - 1) / 2, 1))
    for rank in range(hosts):
        add_host(graph, rank, (rank, 0))
        connect(graph, f"h{rank}", "s0", host_link or link)
    return graph


def fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    return {"hosts": fixed.get("hosts", hosts)}


def count(hosts: int) -> Counts:
    return Counts(hosts, 1, hosts, rack=hosts)


TOPOLOGY = Family("one switch, and hosts round it", star, {"hosts": 5}, fit, count)
