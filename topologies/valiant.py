"""Valiant's routing: each pair of hosts by way of a switch that is drawn for it.

Whatever hosts send to whom, links then carry about as much as with traffic of all to all, and ways
are about twice as long. In a Dragonfly packets go by way of a group, which they enter by its one
link from theirs. A pair keeps what was drawn for it, as its packets must stay in order.

With UGAL a pair has both ways, the usual one and that by the drawn switch. Its first switch takes
the longer one where its queue towards the shorter one is long enough (`p4/ugal.p4`).

Source:
    Valiant and Brebner, "Universal schemes for parallel communication", STOC 1981. UGAL: Singh,
    "Load-balanced routing in interconnection networks", Stanford 2005. Both in a Dragonfly: Kim,
    Dally, Scott and Abts, ISCA 2008, sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from random import Random
from types import MappingProxyType

import networkx as nx

from ringleaf.topologies.detours import Detour, detours
from ringleaf.topologies.graph import attachment, hosts, index, neighbor_at
from ringleaf.topologies.k_shortest import MOST_HOSTS, too_many_hosts
from ringleaf.topologies.routing import next_ports

TRIES = 16
"""The switches that are drawn for a pair of hosts; if a way by each meets a node twice, it keeps
its usual way."""

DRAGONFLY = "dragonfly_minimal"


def with_valiant(graph: nx.Graph[str], seed: int) -> nx.Graph[str]:
    """Return the same topology with a way for each pair of hosts by a switch drawn at random.

    Hosts of one switch, or of one group of a Dragonfly, and pairs that have a detour keep what
    they have.

    Args:
        graph: A topology of at most 64 hosts.
        seed: Seed of the draw.

    Raises:
        TopologyError: If there are too many hosts, or one can't reach another.
    """
    names = hosts(graph)
    if len(names) > MOST_HOSTS:
        raise too_many_hosts(graph.name, len(names), "by drawn switches")
    rng = Random(f"valiant {seed}")
    ways = _Ways(graph)
    by_pair: dict[tuple[str, str], Detour] = {}
    for src, dst in product(names, names):
        nodes = ways.draw(src, dst, rng)
        if nodes:
            by_pair[src, dst] = Detour((), nodes)
    changed = graph.copy()
    changed.graph["detours"] = MappingProxyType(by_pair | dict(detours(graph)))
    return changed


def with_ugal(graph: nx.Graph[str], seed: int) -> nx.Graph[str]:
    """Return `with_valiant`'s topology, whose switches choose between its ways and the usual ones.

    Args:
        graph: A topology of at most 64 hosts.
        seed: Seed of the draw.

    Raises:
        TopologyError: If there are too many hosts, or one can't reach another.
    """
    changed = with_valiant(graph, seed)
    changed.graph["adaptive"] = True
    return changed


class _Ways:
    """Ways by drawn switches; between them packets take the first of the usual routes."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self._graph = graph
        self._size = graph.graph["shape"][0] if graph.graph["routing"] == DRAGONFLY else 1
        self._between = sorted({attachment(graph, host) for host in hosts(graph)}, key=index)
        self._next = cache(lambda last: next_ports(graph, last))

    def draw(self, src: str, dst: str, rng: Random) -> tuple[str, ...]:
        """Return the nodes of a way, hosts included; none where the pair keeps its own."""
        first, last = attachment(self._graph, src), attachment(self._graph, dst)
        groups = {self._group(first), self._group(last)}
        others = [switch for switch in self._between if self._group(switch) not in groups]
        if len(groups) < 2 or not others:
            return ()
        for _ in range(TRIES):
            via = self._entry(first, rng.choice(others))
            nodes = (src, *self._way(first, via), *self._way(via, last)[1:], dst)
            if len(set(nodes)) == len(nodes):
                return nodes
        return ()

    def _group(self, switch: str) -> int:
        return index(switch) // self._size

    def _entry(self, first: str, drawn: str) -> str:
        """Return the switch by which packets come into the group of the one that was drawn."""
        group = self._group(drawn)
        return next(node for node in self._way(first, drawn) if self._group(node) == group)

    def _way(self, first: str, last: str) -> Sequence[str]:
        return list(self._follow(first, last))

    def _follow(self, first: str, last: str) -> Iterator[str]:
        here, ports = first, self._next(last)
        yield here
        while here != last:
            here = neighbor_at(self._graph, here, ports[here][0])
            yield here
