"""The k-ary fat-tree.

Source:
    Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture",
    SIGCOMM 2008, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx


def fat_tree(k: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts.

    Every switch has k ports. Edge switches come first, pod by pod, then aggregation, then core.
    Between hosts of two pods there are (k/2)^2 shortest paths.

    Args:
        k: Ports per switch, even.
        link: Links between switches.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If k is odd or below 2.
    """
    name = _checked(k)
    half = k // 2
    graph = new_graph(name, (half, half, k))
    for rank in range(half * half * k):
        add_host(graph, rank, (rank, 0.3))
    for tier, kind in enumerate(("edge", "agg")):
        for pod, i in product(range(k), range(half)):
            x = (pod * half + i) * half + (half - 1) / 2
            add_switch(graph, (tier * k + pod) * half + i, tier, f"{kind} {pod}.{i}", (x, tier + 1))
    for core in range(half * half):
        x = (core + 0.5) * k - 0.5
        add_switch(graph, k * k + core, 2, f"core {core // half}.{core % half}", (x, 3.2))
    _wire(graph, k, link, host_link or link)
    return graph


def _wire(graph: nx.Graph[str], k: int, link: Link, host_link: Link) -> None:
    half = k // 2
    for rank in range(half * half * k):
        connect(graph, f"h{rank}", f"s{rank // half}", host_link)
    for pod, edge, agg in product(range(k), range(half), range(half)):
        connect(graph, f"s{pod * half + edge}", f"s{(k + pod) * half + agg}", link)
    for pod, agg, i in product(range(k), range(half), range(half)):
        connect(graph, f"s{(k + pod) * half + agg}", f"s{k * k + agg * half + i}", link)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    k = 2
    while k**3 // 4 < hosts:
        k += 2
    return {"k": k, **fixed}


def _checked(k: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"fattree,k={k}"
    check_sizes(name, 2, k=k)
    if k % 2:
        raise TopologyError(f"{name}: k must be even, got {k}; try k={k + 1}")
    return name


def _count(k: int) -> Counts:
    _checked(k)
    return Counts(k**3 // 4, 5 * k**2 // 4, 3 * k**3 // 4, rack=k // 2)


TOPOLOGY = Family("k-ary fat-tree, three tiers, k^3/4 hosts", fat_tree, {"k": 4}, _fit, _count)
