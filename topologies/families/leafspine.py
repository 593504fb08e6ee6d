"""Leaf-spine: the two-tier Clos network of most racks and rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

from ringleaf.topologies.family import Counts, Family, check_sizes, fill
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx


def leaf_spine(
    leaves: int, spines: int, hosts: int, *, link: Link, host_link: Link | None = None
) -> nx.Graph[str]:
    """Join every leaf to every spine, with `hosts` hosts per leaf; leaves come first.

    Oversubscription is hosts/spines (at equal rates). One leaf and no spine is a single rack.

    Args:
        leaves: Switches with hosts, >= 1.
        spines: Switches that join the leaves; 0 only if there is one leaf.
        hosts: Hosts per leaf, >= 1.
        link: Links between switches.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If a size is too small.
    """
    name = _checked(leaves, spines, hosts)
    graph = new_graph(name, (hosts, leaves))
    for rank in range(leaves * hosts):
        add_host(graph, rank, (rank, 0.3))
    for leaf in range(leaves):
        add_switch(graph, leaf, 0, f"leaf {leaf}", (leaf * hosts + (hosts - 1) / 2, 1))
    for spine in range(spines):
        x = (spine + 0.5) * leaves * hosts / spines - 0.5
        add_switch(graph, leaves + spine, 1, f"spine {spine}", (x, 2))
    for rank in range(leaves * hosts):
        connect(graph, f"h{rank}", f"s{rank // hosts}", host_link or link)
    for leaf, spine in product(range(leaves), range(spines)):
        connect(graph, f"s{leaf}", f"s{leaves + spine}", link)
    return graph


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return sizes as near to square as possible, and without oversubscription."""
    sizes = fill(hosts, fixed, "hosts", "leaves")
    spines = sizes["hosts"] if sizes["leaves"] > 1 else 0
    return {**sizes, "spines": fixed.get("spines", spines)}


def _checked(leaves: int, spines: int, hosts: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"leafspine,leaves={leaves},spines={spines},hosts={hosts}"
    check_sizes(name, leaves=leaves, hosts=hosts)
    check_sizes(name, 0 if leaves == 1 else 1, spines=spines)
    return name


def _count(leaves: int, spines: int, hosts: int) -> Counts:
    _checked(leaves, spines, hosts)
    return Counts(leaves * hosts, leaves + spines, leaves * (hosts + spines), rack=hosts)


TOPOLOGY = Family(
    "two-tier Clos, `hosts` hosts per leaf",
    leaf_spine,
    {"leaves": 4, "spines": 4, "hosts": 4},
    _fit,
    _count,
)
