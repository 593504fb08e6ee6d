"""De Bruijn graphs: each switch is joined to those whose words are its own, moved by one letter.

Source:
    Samatham and Pradhan, "The De Bruijn Multiprocessor Network: A Versatile Parallel Processing and
    Sorting Network for VLSI", IEEE Transactions on Computers 38(4), 1989. InfraGraph (Keysight) has
    fabrics of this kind, with links in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, product
from typing import TYPE_CHECKING

from ringleaf.topologies.circle import Circle
from ringleaf.topologies.family import Counts, Family, check_sizes
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, new_graph

if TYPE_CHECKING:
    import networkx as nx


def de_bruijn(
    n: int, k: int, hosts: int, *, link: Link, host_link: Link | None = None
) -> nx.Graph[str]:
    """Make a switch for each word of k letters out of n, with `hosts` hosts each.

    A word is joined to the n words that follow it, each without its first letter and with one more
    at the end. So two words are at most k links apart. A word of one letter over and over, which
    would follow itself, has a link less, and two words that follow each other have one link.

    Args:
        n: Letters, >= 2; a switch has up to 2 n links to others.
        k: Length of words, >= 1.
        hosts: Hosts per switch, >= 1.
        link: Links between switches.
        host_link: Links of hosts; as `link` if None.

    Raises:
        TopologyError: If a size is too small.
    """
    name = _checked(n, k, hosts)
    switches = n**k
    graph = new_graph(name, (hosts, switches), layout="grid", uneven=True, irregular=True)
    places = Circle(switches, switches * hosts)
    for rank in range(switches * hosts):
        add_host(graph, rank, places.host(rank))
    for number in range(switches):
        letters = [number // n**place % n for place in reversed(range(k))]
        word = ("" if n <= 10 else ".").join(map(str, letters))
        add_switch(graph, number, 0, f"switch {word}", places.switch(number))
    for rank in range(switches * hosts):
        connect(graph, f"h{rank}", f"s{rank // hosts}", host_link or link)
    for a, b in sorted(set(_following(n, k))):
        connect(graph, f"s{a}", f"s{b}", link)
    return graph


def _following(n: int, k: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of links, the lower one first; some are there twice."""
    for word, letter in product(range(n**k), range(n)):
        after = word * n % n**k + letter
        if word != after:
            yield min(word, after), max(word, after)


def _fit(hosts: int, fixed: Mapping[str, int]) -> dict[str, int]:
    """Return the least number of words, of two letters unless `n` is fixed."""
    n, per_switch = max(fixed.get("n", 2), 2), max(fixed.get("hosts", 1), 1)
    if "k" in fixed:
        k = max(fixed["k"], 1)
        n = next(n for n in count(2) if n**k * per_switch >= hosts)
    else:
        k = next(k for k in count(1) if n**k * per_switch >= hosts)
    return {"n": n, "k": k, "hosts": per_switch, **fixed}


def _checked(n: int, k: int, hosts: int) -> str:
    """Return the name of an instance, if there is one."""
    name = f"debruijn,n={n},k={k},hosts={hosts}"
    check_sizes(name, 2, n=n)
    check_sizes(name, k=k, hosts=hosts)
    return name


def _count(n: int, k: int, hosts: int) -> Counts:
    _checked(n, k, hosts)
    switches = n**k
    both_ways = n * (n - 1) // 2  # words like 0101... and 1010..., joined from either
    links = switches * n - n - both_ways
    return Counts(switches * hosts, switches, switches * hosts + links, rack=hosts)


TOPOLOGY = Family(
    "words of k letters out of n, each joined to those that follow it; diameter k",
    de_bruijn,
    {"n": 2, "k": 4, "hosts": 1},
    _fit,
    _count,
)
