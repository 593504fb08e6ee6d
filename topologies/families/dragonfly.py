"""Dragonfly: groups of routers, all joined within, and each group joined to all others.

Source:
    Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA
    2008, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, count
from typing import TYPE_CHECKING

from ringleaf.topologies.circle import Circle
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx


def dragonfly(
    a: int, p: int, h: int, *, link: Link, host_link: Link | None = None
) -> nx.Graph[str]:
    """Make a h + 1 groups of a routers, with p hosts and h links to other groups each.

    Router i is in group i // a. Each group has one link to each other group; its routers have
    them in the order of those groups. Packets take the one way with a single such link, at most.
    The paper's balanced networks have a = 2 p = 2 h.

    Args:
        a: Routers per group, >= 1.
        p: Hosts per router, >= 1.
        h: Links to other groups per router, >= 1.
        link: Links between routers, within groups and between them.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If a size is too small.
    """
    name = _checked(a, p, h)
    groups = a * h + 1
    graph = new_graph(
        name,
        (p, a, groups),
        routing="dragonfly_minimal",
        shape=(a, h),
        layout="grid",
        irregular=True,
    )
    places = Circle(groups * a, groups * a * p)
    for rank in range(groups * a * p):
        add_host(graph, rank, places.host(rank))
    for router in range(groups * a):
        label = f"router {router // a}.{router % a}"
        add_switch(graph, router, 0, label, places.switch(router))
    for rank in range(groups * a * p):
        connect(graph, f"h{rank}", f"s{rank // p}", host_link or link)
    for group in range(groups):
        for i, j in combinations(range(a), 2):
            connect(graph, f"s{group * a + i}", f"s{group * a + j}", link)
    for i, j in combinations(range(groups), 2):
        connect(graph, f"s{i * a + (j - 1) // h}", f"s{j * a + i // h}", link)
    return graph


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes with the fewest routers, and the fewest hosts that are enough.

    For balance, routers have at most as many hosts as links to other groups, and groups two to
    four times as many routers as a router has such links.
    """
    if min(fixed.values(), default=1) < 1:
        return {"a": 2, "p": 1, "h": 1, **fixed}  # the generator refuses it, and says why
    if "a" in fixed and "h" in fixed:
        routers = max(fixed["a"] * (fixed["a"] * fixed["h"] + 1), 1)
        return {"p": max(-(-hosts // routers), 1), **fixed}
    candidates: list[dict[str, int]] = []
    for step in count(1):
        for a in range(2 * step, 4 * step + 1):
            sizes = {"a": a, "h": step, **fixed}
            routers = max(sizes["a"] * (sizes["a"] * sizes["h"] + 1), 1)
            p = max(fixed.get("p", -(-hosts // routers)), 1)
            if routers * p >= hosts and (p <= sizes["h"] or "p" in fixed):
                candidates.append({**sizes, "p": fixed.get("p", p)})
        if candidates and step > 2 + candidates[0]["h"] // 2:
            break
    return min(
        candidates, key=lambda sizes: (sizes["a"] * (sizes["a"] * sizes["h"] + 1), sizes["p"])
    )


def _checked(a: int, p: int, h: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"dragonfly,a={a},p={p},h={h}"
    check_sizes(name, a=a, p=p, h=h)
    return name


def _count(a: int, p: int, h: int) -> Counts:
    _checked(a, p, h)
    groups = a * h + 1
    routers = groups * a
    links = groups * a * (a - 1) // 2 + groups * (groups - 1) // 2
    return Counts(routers * p, routers, routers * p + links, rack=p)


TOPOLOGY = Family(
    "a h + 1 groups of a routers, p hosts and h links to other groups each",
    dragonfly,
    {"a": 4, "p": 1, "h": 1},
    _fit,
    _count,
)
