"""Routing over the k shortest paths between two hosts, also those that are longer than the first.

A switch's routes lead to a destination by shortest paths. Longer ones depend on where a packet
comes from, so each pair of hosts gets a detour along its path.

Source:
    Singla, Hong, Popa and Godfrey, "Jellyfish: Networking Data Centers Randomly", NSDI 2012,
    section 5: k shortest paths (k = 8) where equal ones are too few.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count, product
from types import MappingProxyType
from typing import TYPE_CHECKING
from zlib import crc32

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import Peers, attachment, distances, hosts, switch_graph

if TYPE_CHECKING:
    import networkx as nx

MOST_HOSTS = 64
"""Each pair of hosts needs an entry in the table `detours` of `p4/include/forwarding.p4`, which
has 4096."""
MOST_PATHS = 64
USUAL_PATHS = 8
MOST_TRIED = 20_000
"""The beginnings of paths that are looked at between two switches; then those found must do."""

Path = tuple[str, ...]


def with_k_shortest(graph: nx.Graph[str], paths: int) -> nx.Graph[str]:
    """Return the same topology with a path for each pair of hosts, hashed among the k shortest.

    Paths are as long as their number of links says, and meet no switch twice. Hosts of one switch,
    and pairs that have a detour, keep what they have.

    Args:
        graph: A topology of at most MOST_HOSTS hosts.
        paths: Number of paths between two switches, k.

    Raises:
        TopologyError: If there are too many hosts, or one can't reach another.
    """
    from ringleaf.topologies.detours import Detour, detours  # loads NetworkX

    names = hosts(graph)
    if len(names) > MOST_HOSTS:
        raise too_many_hosts(graph.name, len(names))
    peers = switch_graph(graph)
    at = {host: attachment(graph, host) for host in names}
    known: dict[tuple[str, str], list[Path]] = {}
    by_pair: dict[tuple[str, str], Detour] = {}
    for src, dst in product(names, names):
        ends = at[src], at[dst]
        if ends[0] == ends[1]:
            continue
        if ends not in known:
            known[ends] = k_shortest(peers, *ends, paths)
        if not known[ends]:
            raise TopologyError(f"{graph.name}: no path from {ends[0]} to {ends[1]}")
        choice = crc32(f"{src} {dst}".encode()) % len(known[ends])
        by_pair[src, dst] = Detour((), (src, *known[ends][choice], dst))
    changed = graph.copy()
    changed.graph["detours"] = MappingProxyType(by_pair | dict(detours(graph)))
    return changed


def k_shortest(peers: Peers, src: str, dst: str, paths: int) -> list[Path]:
    """Return up to `paths` loop-free paths between two switches, the shortest first.

    Paths of one length are in the order of ports.

    Source:
        Hart, Nilsson and Raphael, "A Formal Basis for the Heuristic Determination of Minimum Cost
        Paths", IEEE Trans. SSC 4(2), 1968: a path's length so far, and the least that is left.
    """
    left = distances(peers, dst)
    shortest: list[Path] = []
    if src not in left:
        return shortest
    order = count()
    waiting: list[tuple[int, int, int, Path]] = [(left[src], 0, next(order), (src,))]
    for _ in range(MOST_TRIED):
        if not waiting or len(shortest) == paths:
            break
        *_, path = heappop(waiting)
        if path[-1] == dst:
            shortest.append(path)
            continue
        for peer in peers[path[-1]]:
            if peer not in path and peer in left:
                whole = len(path) + left[peer]
                heappush(waiting, (whole, -len(path), next(order), (*path, peer)))
    return shortest


def too_many_hosts(where: str, count: int, routes: str = "over k shortest paths") -> TopologyError:
    """Return the error for a topology whose pairs of hosts are too many for switches' tables."""
    return TopologyError(
        f"{where}: routes {routes} need an entry for each pair of hosts, of at most "
        f"{MOST_HOSTS}, got {count}; take routes=ecmp"
    )
