"""The wires between the hosts of a topology, for algorithms that are made for one network."""

from __future__ import annotations

from functools import cached_property

import networkx as nx

from ringleaf.collectives.wires import Wire, Wires
from ringleaf.errors import ConfigError
from ringleaf.topologies.graph import index, neighbors
from ringleaf.topologies.ways import Ways

MOST_HOSTS = 512  # ways between all pairs are followed


class Cabling:
    """A topology's wires, found when they are asked for.

    Ways are those of routes by shortest paths, with detours; with ECMP, those without it. A pair of
    hosts has no way of its own if that passes a host which forwards for others at no cost: the
    host can as well receive, and send on.

    Args:
        graph: The topology.
    """

    def __init__(self, graph: nx.Graph[str]) -> None:
        self._graph = graph

    def __call__(self) -> Wires:
        """Return the wires; the same ones each time."""
        return self.wires

    @cached_property
    def _ways(self) -> Ways:
        return Ways(self._graph)

    @cached_property
    def wires(self) -> Wires:
        """The wires between all hosts.

        Raises:
            ConfigError: If there are too many hosts.
        """
        ways, ranks = self._ways, len(self._ways.hosts)
        if ranks > MOST_HOSTS:
            raise ConfigError(f"wires: takes at most {MOST_HOSTS} hosts, got {ranks}; take fewer")
        relays = self._relays
        numbers: dict[tuple[str, str], int] = {}
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        through: dict[tuple[int, int], tuple[int, ...]] = {}
        for dst in range(ranks):
            sources = [src for src in range(ranks) if src != dst]
            for src, passes in zip(sources, ways.passes(sources, dst, 0), strict=True):
                hops = [(each.outlet[0], each.outlet[1][0]) for each in passes]
                ends = {ways.access[src], ways.access[dst]}
                if any(node in relays and node not in ends for node, _ in hops):
                    continue
                found[src, dst] = tuple(numbers.setdefault(hop, len(numbers)) for hop in hops)
                through[src, dst] = tuple(index(node) for node, _ in hops[1:])
        wires = [Wire(ways.links[hop].rate_bps, ways.hop_ps(*hop)) for hop in numbers]
        sites = tuple(index(switch) for switch in ways.access)
        return Wires(ranks, tuple(wires), found, sites, through)

    @cached_property
    def _relays(self) -> set[str]:
        """Switches of one host, whose link to it takes all that their other links bring."""
        ways = self._ways
        found = set()
        for host, switch in zip(ways.hosts, ways.access, strict=True):
            others = [peer for peer in neighbors(ways.graph, switch).values() if peer != host]
            if ways.access.count(switch) > 1 or any(peer in ways.hosts for peer in others):
                continue
            arriving = sum(ways.links[peer, switch].rate_bps for peer in others)
            leaving = sum(ways.links[switch, peer].rate_bps for peer in others)
            up, down = ways.links[host, switch].rate_bps, ways.links[switch, host].rate_bps
            if up >= leaving and down >= arriving:
                found.add(switch)
        return found
