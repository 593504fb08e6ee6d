"""Slim Fly: routers of a graph of diameter 2 that is nearly as large as it can be.

Source:
    Besta and Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology", SC 2014,
    section II: graphs of McKay, Miller and Siran (1998), in the form of Hafner (2004).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, product
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError
from ringleaf.topologies.circle import Circle
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.galois import FiniteField, prime_power
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx

LARGEST = 127
"""The largest q that is made; its network has 32,258 routers."""


def slim_fly(q: int, hosts: int, *, link: Link, host_link: Link | None = None) -> nx.Graph[str]:
    """Make 2 q^2 routers of (3 q - d) / 2 links to others, where q = 4 w + d and d is -1, 0 or 1.

    Any two routers have at most one other between them. Routers are (0, x, y), then (1, m, c), for
    x, y, m and c of the field of q elements; (0, x, y) and (1, m, c) are joined if y = m x + c.
    With `hosts` half of the links, rounded up, the network has full bandwidth in the paper's sense.

    Args:
        q: A prime power, >= 3.
        hosts: Hosts per router, >= 1.
        link: Links between routers.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If q is no prime power, or a size is too small or too large.
    """
    name = _checked(q, hosts)
    routers = 2 * q * q
    graph = new_graph(name, (hosts, q, q, 2), layout="grid", irregular=True)
    places = Circle(routers, routers * hosts)
    for rank in range(routers * hosts):
        add_host(graph, rank, places.host(rank))
    for router in range(routers):
        label = f"router {router // (q * q)}.{router // q % q}.{router % q}"
        add_switch(graph, router, 0, label, places.switch(router))
    for rank in range(routers * hosts):
        connect(graph, f"h{rank}", f"s{rank // hosts}", host_link or link)
    field = FiniteField(q)
    for part, step in enumerate(_steps(field.powers())):
        _join_columns(graph, field, part * q * q, step, link)
    for x, m, c in product(field.elements, repeat=3):
        y = field.add(field.times(m, x), c)
        connect(graph, f"s{x * q + y}", f"s{q * q + m * q + c}", link)
    return graph


def _join_columns(
    graph: nx.Graph[str], field: FiniteField, first: int, steps: Sequence[int], link: Link
) -> None:
    """Join the routers of a column, from number `first` on, whose last parts differ by a step."""
    q = len(field.elements)
    for column, y in product(range(q), field.elements):
        for step in steps:
            other = field.add(y, step)
            if y < other:
                start = first + column * q
                connect(graph, f"s{start + y}", f"s{start + other}", link)


def _steps(powers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the steps of both parts: the sets X and X' of the paper, II.B.1.

    Both have with each step also its negative. Powers are even and odd ones; where q = 4 w - 1,
    each set has even and odd ones.
    """
    q = len(powers) + 1
    if q % 4 != 3:
        return [*powers[::2]], [*powers[1::2]] if q % 2 else [*powers[1::2], powers[0]]
    half = (q + 1) // 2  # 2 w
    first = [*powers[0 : half - 1 : 2], *powers[half - 1 : q - 1 : 2]]
    second = [*powers[1:half:2], *powers[half : q - 1 : 2], powers[0]]
    return first, second


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the least q with full bandwidth, but no more hosts per router than are needed."""
    for q in [fixed["q"]] if "q" in fixed else count(3):
        if prime_power(q) is None and "q" not in fixed:
            continue
        most = fixed.get("hosts", -(-_degree(q) // 2))
        if 2 * q * q * most >= hosts or "q" in fixed or most < 1:
            return {"q": q, "hosts": fixed.get("hosts", max(-(-hosts // (2 * q * q or 1)), 1))}
    raise AssertionError("never ends")


def _degree(q: int) -> int:
    """Return the links of a router to others."""
    return (3 * q - {0: 0, 1: 1, 3: -1}.get(q % 4, 0)) // 2


def _checked(q: int, hosts: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"slimfly,q={q},hosts={hosts}"
    check_sizes(name, 3, q=q)
    check_sizes(name, hosts=hosts)
    if q > LARGEST:
        raise TopologyError(f"{name}: q must be <= {LARGEST}, got {q}")
    if prime_power(q) is None:
        near = next(number for number in count(q) if prime_power(number))
        raise TopologyError(f"{name}: q must be a prime power, got {q}; try q={near}")
    return name


def _count(q: int, hosts: int) -> Counts:
    _checked(q, hosts)
    routers = 2 * q * q
    return Counts(routers * hosts, routers, routers * hosts + q * q * _degree(q), rack=hosts)


TOPOLOGY = Family(
    "2 q^2 routers, any two with at most one between them, `hosts` hosts per router",
    slim_fly,
    {"q": 3, "hosts": 1},
    _fit,
    _count,
)
