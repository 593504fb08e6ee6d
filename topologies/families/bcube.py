"""BCube, where servers with several ports forward for one another.

Source:
    Guo et al., "BCube: A High Performance, Server-centric Network Architecture for Modular Data
    Centers", SIGCOMM 2009, section 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import (
    MOST_REGULAR,
    Link,
    add_server,
    add_switch,
    connect,
    join_servers,
    new_graph,
)

if TYPE_CHECKING:
    import networkx as nx


def bcube(n: int, k: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make n^(k+1) servers of k+1 ports each, and k+1 levels of n^k switches of n ports each.

    A server's number, written in base n, is its address; at level l it shares a switch with the n
    servers that differ from it in digit l only (0 is the last digit). Server i is host `h{i}` and
    switch `s{i}`; the switches of level 0 come next, then level 1, and so on. Two servers
    are joined by k+1 paths that share no node.

    Args:
        n: Ports per switch, >= 2.
        k: Highest level, >= 0.
        link: Links between servers and switches.
        host_link: Link inside a server; as much as its other links together if None.

    Raises:
        TopologyError: If n or k is too small.
    """
    name = _checked(n, k)
    servers, per_level = n ** (k + 1), n**k
    graph = new_graph(
        name,
        (n,) * (k + 1),
        grid=(n,) * (k + 1),
        irregular=n > 2 and servers > MOST_REGULAR,  # with two a hypercube, which a level halves
    )
    for server in range(servers):
        add_server(graph, server, _address(server, n, k), (server, 1), (0.4, 0))
    for level in range(k + 1):
        for i in range(per_level):
            switch = servers + level * per_level + i
            pos = ((i + 0.5) * n - 0.5, 1 + 1.35 * level if level else 0)  # level 0 below
            add_switch(graph, switch, level + 1, f"level {level} {i}", pos)
    for level in range(k + 1):
        for server in range(servers):
            high, low = server // n ** (level + 1), server % n**level
            i = high * n**level + low  # the address without digit `level`
            connect(graph, f"s{server}", f"s{servers + level * per_level + i}", link)
    join_servers(graph, link, host_link)
    return graph


def _address(server: int, n: int, k: int) -> str:
    digits = [server // n**level % n for level in reversed(range(k + 1))]
    return ("" if n <= 10 else ".").join(str(digit) for digit in digits)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes with the fewest servers, with two to four levels unless `k` is fixed."""
    if "n" in fixed:
        ports = max(fixed["n"], 2)  # the generator refuses less, and says why
        return {"k": next(k for k in count() if ports ** (k + 1) >= hosts), **fixed}
    levels = [fixed["k"]] if "k" in fixed else range(1, 4)
    sizes = [(_ports(hosts, k + 1), k) for k in levels]
    n, k = min(sizes, key=lambda size: (size[0] ** (size[1] + 1), size[1]))
    return {"n": n, "k": k}


def _ports(hosts: int, levels: int) -> int:
    n = 2
    while n**levels < hosts:
        n += 1
    return n


def _checked(n: int, k: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"bcube,n={n},k={k}"
    check_sizes(name, 2, n=n)
    check_sizes(name, 0, k=k)
    return name


def _count(n: int, k: int) -> Counts:
    _checked(n, k)
    servers = n ** (k + 1)
    return Counts(servers, servers + (k + 1) * n**k, (k + 2) * servers, rack=1)


TOPOLOGY = Family(
    "server-centric, n^(k+1) servers of k+1 ports, k+1 levels of n-port switches",
    bcube,
    {"n": 4, "k": 1},
    _fit,
    _count,
)
