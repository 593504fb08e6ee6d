"""The wires between the hosts of a topology, for algorithms that are made for one network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import networkx as nx

from ringleaf.collectives.wires import RankNetwork, Wire
from ringleaf.errors import ConfigError
from ringleaf.topologies.graph import index, neighbors
from ringleaf.topologies.ways import TopologyRoutes

MOST_HOSTS = 512  # ways between all pairs are followed


class Cabling:
    """A topology's wires, found when they are asked for.

    Ways are those of routes by shortest paths, with detours; with ECMP, those without it. A pair of
    hosts has no way of its own if that passes a host which forwards for others at no cost: the
    host can as well receive, and send on.

    Args:
        graph: The topology.
        members: The hosts of the ranks, in the order of ranks; None: all.
    """

    def __init__(self, graph: nx.Graph[str], members: Sequence[str] | None = None) -> None:
        self._graph, self._members = graph, members

    def __call__(self) -> RankNetwork:
        """Return the wires; the same ones each time."""
        return self.wires

    @cached_property
    def _ways(self) -> TopologyRoutes:
        return TopologyRoutes(self._graph)

    @cached_property
    def wires(self) -> RankNetwork:
        """The wires between all ranks' hosts.

        Raises:
            ConfigError: If there are too many hosts.
        """
        ways = self._ways
        at = [*range(len(ways.hosts))]
        if self._members is not None:
            at = [ways.hosts.index(host) for host in self._members]
        ranks = len(at)
        if ranks > MOST_HOSTS:
            raise ConfigError(f"wires: takes at most {MOST_HOSTS} hosts, got {ranks}; take fewer")
        relays = self._relays
        numbers: dict[tuple[str, str], int] = {}
        by_pair: dict[tuple[int, int], tuple[int, ...]] = {}
        through: dict[tuple[int, int], tuple[int, ...]] = {}
        for dst in range(ranks):
            sources = [src for src in range(ranks) if src != dst]
            passed = ways.passes([at[src] for src in sources], at[dst], 0)
            for src, passes in zip(sources, passed, strict=True):
                hops = [(each.outlet[0], each.outlet[1][0]) for each in passes]
                ends = {ways.access[at[src]], ways.access[at[dst]]}
                if any(node in relays and node not in ends for node, _ in hops):
                    continue
                by_pair[src, dst] = tuple(numbers.setdefault(hop, len(numbers)) for hop in hops)
                through[src, dst] = tuple(index(node) for node, _ in hops[1:])
        wires = [Wire(ways.links[hop].rate_bps, ways.hop_ps(*hop)) for hop in numbers]
        sites = tuple(index(ways.access[host]) for host in at)
        return RankNetwork(ranks, tuple(wires), by_pair, sites, through)

    @cached_property
    def _relays(self) -> set[str]:
        """Switches of one rank's host, whose link to it takes all that their other links bring."""
        ways = self._ways
        relays = set()
        for host, switch in zip(ways.hosts, ways.access, strict=True):
            if self._members is not None and host not in self._members:
                continue
            others = [peer for peer in neighbors(ways.graph, switch).values() if peer != host]
            if ways.access.count(switch) > 1 or any(peer in ways.hosts for peer in others):
                continue
            arriving = sum(ways.links[peer, switch].rate_bps for peer in others)
            leaving = sum(ways.links[switch, peer].rate_bps for peer in others)
            up, down = ways.links[host, switch].rate_bps, ways.links[switch, host].rate_bps
            if up >= leaving and down >= arriving:
                relays.add(switch)
        return relays
