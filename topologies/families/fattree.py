"""The k-ary fat-tree.

Source:
    Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture",
    SIGCOMM 2008, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import lcm
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx


def fat_tree(
    k: int, edge: int = 1, core: int = 1, *, link: Link, host_link: Link | None = None
) -> nx.Graph[str]:
    """Make k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts.

    Every switch has k ports. Edge switches come first, pod by pod, then aggregation, then core.
    Between hosts of two pods there are (k/2)^2 shortest paths. Oversubscription leaves switches
    out: edge switches have k/2 ports down and k/2 / `edge` up, to as many aggregation switches, and
    these have k/2 down and k/2 / `core` up.

    Args:
        k: Ports per switch, even.
        edge: Ratio of edge switches' links to hosts and up; a divisor of k/2.
        core: Ratio of aggregation switches' links down and up; a divisor of k/2.
        link: Links between switches.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If k is odd or below 2, or a ratio divides no switch's ports.
    """
    name = _checked(k, edge, core)
    half = k // 2
    up, top = half // edge, half // core
    graph = new_graph(name, (half, half, k))
    for rank in range(half * half * k):
        add_host(graph, rank, (rank, 0.3))
    for tier, (kind, count, width) in enumerate((("edge", half, 1), ("agg", up, edge))):
        for pod, i in product(range(k), range(count)):
            x = pod * half * half + (i + 0.5) * half * width - 0.5
            number = tier * k * half + pod * count + i
            add_switch(graph, number, tier, f"{kind} {pod}.{i}", (x, tier + 1))
    for i in range(up * top):
        x = (i + 0.5) * k * edge * core - 0.5
        add_switch(graph, k * (half + up) + i, 2, f"core {i // top}.{i % top}", (x, 3.2))
    _wire(graph, k, (up, top), link, host_link or link)
    return graph


def _wire(
    graph: nx.Graph[str], k: int, upward: tuple[int, int], link: Link, host_link: Link
) -> None:
    half, (up, top) = k // 2, upward
    for rank in range(half * half * k):
        connect(graph, f"h{rank}", f"s{rank // half}", host_link)
    for pod, edge, agg in product(range(k), range(half), range(up)):
        connect(graph, f"s{pod * half + edge}", f"s{k * half + pod * up + agg}", link)
    for pod, agg, i in product(range(k), range(up), range(top)):
        core = k * (half + up) + agg * top + i
        connect(graph, f"s{k * half + pod * up + agg}", f"s{core}", link)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the least k with enough hosts, and whose switches' ports the ratios divide."""
    ratios = [fixed[name] for name in RATIOS if fixed.get(name, 0) > 0]
    k = 2 * lcm(*ratios)
    step = k
    while k**3 // 4 < hosts:
        k += step
    return {"k": k, **fixed}


def _checked(k: int, edge: int = 1, core: int = 1) -> str:
    """Return the name of an instance, if there is one."""
    ratios = {"edge": edge, "core": core}
    shown = "".join(f",{name}={ratio}" for name, ratio in ratios.items() if ratio != 1)
    name = f"fattree,k={k}{shown}"
    check_sizes(name, 2, k=k)
    check_sizes(name, **ratios)
    if k % 2:
        raise TopologyError(f"{name}: k must be even, got {k}; try k={k + 1}")
    for ratio in ratios:
        if k // 2 % ratios[ratio]:
            raise TopologyError(
                f"{name}: {ratio} must divide the {k // 2} ports of a switch that lead down, got "
                f"{ratios[ratio]}"
            )
    return name


def _count(k: int, edge: int = 1, core: int = 1) -> Counts:
    _checked(k, edge, core)
    half = k // 2
    up, top = half // edge, half // core
    links = k * half * (half + up) + k * up * top
    return Counts(k**3 // 4, k * (half + up) + up * top, links, rack=half)


RATIOS = {"edge": 1, "core": 1}
"""Oversubscription per tier; none if not given."""

TOPOLOGY = Family(
    "k-ary fat-tree, three tiers, k^3/4 hosts; edge=2,core=2: oversubscribed",
    fat_tree,
    {"k": 4},
    _fit,
    _count,
    optional=RATIOS,
)
