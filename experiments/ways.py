"""The ways between hosts of a topology: least delay, widest rate, and where flows must pass.

What has a detour goes by it, and no other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import networkx as nx

from topologies.detours import detours
from topologies.graph import attachment, hosts, index, link, neighbors
from topologies.routing import routes

Outlet = tuple[str, tuple[str, ...]]
"""A node, and those of its neighbours that a flow may go to next."""

_UNLIMITED_BPS = 1 << 62


class Ways:
    """All routes of a topology; ranks are numbers of hosts."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self.graph = graph
        self.hosts = hosts(graph)
        self.access = [attachment(graph, host) for host in self.hosts]
        self._next = self._next_nodes()

    @cached_property
    def delays_ps(self) -> list[list[int]]:
        """By source and destination, on the quickest route."""
        return [[delay_ps for delay_ps, _ in row] for row in self._best]

    @cached_property
    def rates_bps(self) -> list[list[int]]:
        """By source and destination, on the widest route: that of its slowest link."""
        return [[rate_bps for _, rate_bps in row] for row in self._best]

    def access_bps(self, rank: int) -> int:
        """Rate of a host's own link."""
        return link(self.graph, self.hosts[rank], self.access[rank]).rate_bps

    def must_pass(self, dst: int, by_source: Mapping[int, int]) -> dict[Outlet, int]:
        """Bytes that pass each outlet, if so many go from each source to `dst`.

        Flows are followed until they meet a choice; at the last switch all are together.
        """
        loads: dict[Outlet, int] = {}
        at: dict[str, int] = {}
        last = self.access[dst]
        for src, size_bytes in by_source.items():
            if (src, dst) in self._detours:
                self._add_along(self._detours[src, dst], size_bytes, loads)
                continue
            first = self.access[src]
            loads[self.hosts[src], (first,)] = size_bytes
            at[first] = at.get(first, 0) + size_bytes
        at[last] = sum(by_source.values())
        for switch, peers in self._next[dst].items():
            if switch in at:
                loads[switch, peers] = loads.get((switch, peers), 0) + at[switch]
                if len(peers) == 1 and peers[0] != last:
                    at[peers[0]] = at.get(peers[0], 0) + at[switch]
        return loads

    @cached_property
    def _detours(self) -> dict[tuple[int, int], tuple[str, ...]]:
        """Nodes of each detour, by source and destination."""
        found = detours(self.graph).items()
        return {(index(src), index(dst)): detour.nodes for (src, dst), detour in found}

    def _add_along(self, nodes: tuple[str, ...], size_bytes: int, loads: dict[Outlet, int]) -> None:
        """Add a detour's bytes to all its outlets but the last, where all flows are together."""
        for node, peer in list(pairwise(nodes))[:-1]:
            loads[node, (peer,)] = loads.get((node, (peer,)), 0) + size_bytes

    def _next_nodes(self) -> list[dict[str, tuple[str, ...]]]:
        """By destination: switch -> the nodes that may come next, farthest switch first."""
        rank = {host: number for number, host in enumerate(self.hosts)}
        tables: list[dict[str, tuple[str, ...]]] = [{} for _ in self.hosts]
        for switch, ports in routes(self.graph).items():
            peers = neighbors(self.graph, switch)
            for host, ways in ports.items():
                tables[rank[host]][switch] = tuple(peers[way] for way in ways)
        return [_farthest_first(table) for table in tables]

    @cached_property
    def _best(self) -> list[list[tuple[int, int]]]:
        columns = [self._best_to(dst) for dst in range(len(self.hosts))]
        rows = [list(row) for row in zip(*columns, strict=True)]
        for (src, dst), nodes in self._detours.items():
            links = [link(self.graph, *ends) for ends in pairwise(nodes)]
            rows[src][dst] = sum(one.delay_ps for one in links), min(one.rate_bps for one in links)
        return rows

    def _best_to(self, dst: int) -> list[tuple[int, int]]:
        """Least delay and largest rate from each host."""
        best = {self.hosts[dst]: (0, _UNLIMITED_BPS)}
        for switch, peers in reversed(self._next[dst].items()):
            best[switch] = self._best_of(switch, peers, best)
        return [
            best[host] if host in best else self._best_of(host, (first,), best)
            for host, first in zip(self.hosts, self.access, strict=True)
        ]

    def _best_of(
        self, node: str, peers: tuple[str, ...], best: Mapping[str, tuple[int, int]]
    ) -> tuple[int, int]:
        ways = [(link(self.graph, node, peer), *best[peer]) for peer in peers]
        return (
            min(own.delay_ps + delay_ps for own, delay_ps, _ in ways),
            max(min(own.rate_bps, rate_bps) for own, _, rate_bps in ways),
        )


def _farthest_first(table: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    flow = nx.DiGraph((switch, peer) for switch, peers in table.items() for peer in peers)
    return {switch: table[switch] for switch in nx.topological_sort(flow) if switch in table}
