"""Jellyfish: switches joined at random, each to as many others.

Source:
    Singla, Hong, Popa and Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI 2012,
    section 3: RRG(N, k, r).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

from ringleaf.errors import TopologyError
from ringleaf.topologies.circle import Circle
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx

Joined = list[set[int]]
"""The switches that each switch is joined to, by number."""

MOST_DRAWS = 1000
"""The graphs that are drawn until one is connected; only a degree of 2 takes more than a few."""


def jellyfish(
    switches: int,
    degree: int,
    hosts: int,
    seed: int = 1,
    *,
    link: Link,
    host_link: Link | None = None,
) -> nx.Graph[str]:
    """Join each switch to `degree` others at random, with `hosts` hosts per switch.

    In the paper's words N is `switches`, r `degree` and k `degree + hosts`. If both N and r are
    odd, one port stays free. A seed gives one graph, on every machine.

    Args:
        switches: Number of switches, more than `degree`.
        degree: Ports of a switch that lead to other switches, >= 2, or 1 for two switches.
        hosts: Hosts per switch, >= 1.
        seed: Seed of the draw, >= 0.
        link: Links between switches.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If a size is too small, or no such graph exists.
    """
    name = _checked(switches, degree, hosts, seed)
    graph = new_graph(name, (hosts, switches), layout="grid", uneven=True, irregular=True)
    places = Circle(switches, switches * hosts)
    for rank in range(switches * hosts):
        add_host(graph, rank, places.host(rank))
    for number in range(switches):
        add_switch(graph, number, 0, f"switch {number}", places.switch(number))
    for rank in range(switches * hosts):
        connect(graph, f"h{rank}", f"s{rank // hosts}", host_link or link)
    for number, peers in enumerate(_draw(name, switches, degree, seed)):
        for peer in sorted(peers):
            if number < peer:
                connect(graph, f"s{number}", f"s{peer}", link)
    return graph


def _draw(name: str, switches: int, degree: int, seed: int) -> Joined:
    """Return a connected random graph in which each switch has `degree` neighbours."""
    rng = Random(seed)
    for _ in range(MOST_DRAWS):
        joined = _regular(switches, degree, rng)
        if _is_connected(joined):
            return joined
    raise TopologyError(f"{name}: no connected graph was drawn, got seed {seed}; try degree=3")


def _regular(switches: int, degree: int, rng: Random) -> Joined:
    """Return a random graph, by the paper's procedure.

    Two switches with free ports that are not joined yet are joined. When there are none, a random
    link is taken out, and two free ports are joined to its ends. In the paper one switch has both;
    but two that are joined already may have the last ones.
    """
    joined: Joined = [set() for _ in range(switches)]
    free = list(range(switches))
    for _ in range(switches * degree // 2):  # each round makes one link more
        pair = _not_joined(free, joined, rng)
        if pair is None:
            _open_link(free[0], free[-1], joined, rng)
        else:
            _join(joined, *pair)
        free = [number for number in free if len(joined[number]) < degree]
    return joined


def _not_joined(free: Sequence[int], joined: Joined, rng: Random) -> tuple[int, int] | None:
    """Return two random switches that are not joined, if there are any."""
    for _ in range(len(free)):  # nearly always the first one
        a, b = rng.choice(free), rng.choice(free)
        if a != b and b not in joined[a]:
            return a, b
    pairs = [(a, b) for a, b in combinations(free, 2) if b not in joined[a]]
    return rng.choice(pairs) if pairs else None


def _open_link(a: int, b: int, joined: Joined, rng: Random) -> None:
    """Take out a random link, and join its ends to `a` and `b`, which may be one switch."""
    ends = [
        (x, y)
        for x, peers in enumerate(joined)
        for y in sorted(peers)
        if len({a, b, x, y}) == len({a, b}) + 2 and x not in joined[a] and y not in joined[b]
    ]
    x, y = rng.choice(ends)
    joined[x].remove(y)
    joined[y].remove(x)
    _join(joined, a, x)
    _join(joined, b, y)


def _join(joined: Joined, a: int, b: int) -> None:
    joined[a].add(b)
    joined[b].add(a)


def _is_connected(joined: Joined) -> bool:
    reached = {0}
    waiting = [0]
    for number in waiting:  # it grows
        new = joined[number] - reached
        reached |= new
        waiting += new
    return len(reached) == len(joined)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return sizes with hosts at a quarter of the ports, about as a fat-tree's switches have."""
    degree = fixed.get("degree", 3)
    per_switch = fixed.get("hosts", max(degree // 3, 1))
    switches = max(-(-hosts // max(per_switch, 1)), degree + 1)
    return {"switches": switches, "degree": degree, "hosts": per_switch, **fixed}


def _checked(switches: int, degree: int, hosts: int, seed: int = 1) -> str:
    """Return the name of an instance, if there is one."""
    name = f"jellyfish,switches={switches},degree={degree},hosts={hosts}"
    name += f",seed={seed}" if seed != 1 else ""
    check_sizes(name, 2, switches=switches)
    check_sizes(name, 1 if switches == 2 else 2, degree=degree)
    check_sizes(name, hosts=hosts)
    if degree >= switches:
        raise TopologyError(
            f"{name}: degree must be below the number of switches, {switches}, got {degree}"
        )
    return name


def _count(switches: int, degree: int, hosts: int, seed: int = 1) -> Counts:
    _checked(switches, degree, hosts, seed)
    return Counts(switches * hosts, switches, switches * hosts + switches * degree // 2, rack=hosts)


TOPOLOGY = Family(
    "switches joined at random, `degree` links each, `hosts` hosts per switch",
    jellyfish,
    {"switches": 16, "degree": 3, "hosts": 1},
    _fit,
    _count,
    optional={"seed": 1},
)
