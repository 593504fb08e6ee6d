"""The ways between hosts of a topology: the links that each flow must pass, and its least times.

Where each host is reached by one path (`ringleaf.topologies.routing.dealt`), a flow's links are
known exactly. With ECMP a flow is followed until it meets a choice; from there on only the last
link, the host's own, is certain. A flow with a detour takes that and no other way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise, permutations

import networkx as nx
import numpy as np

from ringleaf.core.units import PS_PER_S
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.delays import node_delay_ps
from ringleaf.topologies.detours import detours
from ringleaf.topologies.graph import (
    Link,
    attachment,
    directions,
    hosts,
    index,
    neighbors,
    switch_graph,
)
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.remaining import TimesTo, remaining_ps
from ringleaf.topologies.route_table import RouteTable
from ringleaf.topologies.routing import dealt, routes

MOST_COMPARED = 1 << 13
"""The most hosts all pairs of which are compared, to find those that are farthest apart."""

Outlet = tuple[str, tuple[str, ...]]
"""A node, and those of its neighbours that a flow may go to next."""


def least_ps(size_bytes: int, rate_bps: int) -> int:
    """Return the time that bytes occupy a line, rounded down, as this is for bounds."""
    return int(size_bytes) * 8 * PS_PER_S // int(rate_bps)  # NumPy's integers would overflow


@dataclass(frozen=True, slots=True)
class RouteLinks:
    """The links that a flow passes, as far as they are certain, by delay and rates."""

    delay_ps: int
    rates_bps: tuple[int, ...]

    def alone_ps(self, first_bytes: int, size_bytes: int, last_bytes: int) -> int:
        """Return the time of a message that is alone, given sizes of its first and last packets.

        At one link, all its bytes must pass in sequence. The first packet is stored at each
        node before that link, the last one at each node after it. Sizes are on the wire.
        """
        before = [0, *accumulate(least_ps(first_bytes, rate) for rate in self.rates_bps)]
        after = [0, *accumulate(least_ps(last_bytes, rate) for rate in self.rates_bps[::-1])]
        return self.delay_ps + max(
            before[i] + least_ps(size_bytes, rate) + after[len(self.rates_bps) - 1 - i]
            for i, rate in enumerate(self.rates_bps)
        )


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """Bytes from one host to another, their earliest begin, and the time after their arrival."""

    size_bytes: int
    begin_ps: int
    after_ps: int


@dataclass(frozen=True, slots=True)
class Pass:
    """An outlet on the way of a packet.

    `before_ps` is from when the packet begins to leave its source until it can leave here;
    `after_ps` from when it has left here until it is at its destination.
    """

    outlet: Outlet
    before_ps: int
    after_ps: int


class Loads:
    """The bytes that each outlet has to carry, their earliest begin, and the least time after."""

    def __init__(self, links: Mapping[tuple[str, str], Link]) -> None:
        self._links = links
        self._loads: dict[Outlet, PlannedFlow] = {}

    def add(self, outlet: Outlet, size_bytes: int, begin_ps: int, after_ps: int) -> None:
        """Add bytes to an outlet, sent from `begin_ps` on, with `after_ps` to follow the last."""
        there = self._loads.get(outlet)
        if there is not None:
            size_bytes += there.size_bytes
            begin_ps = min(begin_ps, there.begin_ps)
            after_ps = min(after_ps, there.after_ps)
        self._loads[outlet] = PlannedFlow(size_bytes, begin_ps, after_ps)

    def merge(self, others: Loads, begin_ps: int = 0, after_ps: int = 0) -> None:
        """Add other loads, whose times count from `begin_ps`, with `after_ps` to follow them."""
        for outlet, load in others.items():
            self.add(outlet, load.size_bytes, begin_ps + load.begin_ps, load.after_ps + after_ps)

    def items(self) -> Iterable[tuple[Outlet, PlannedFlow]]:
        """Return each outlet with its load."""
        return self._loads.items()

    def least_ps(self) -> int:
        """Return the least time until all loads are done, by the outlet that is done last."""
        return max(
            (
                load.begin_ps + least_ps(load.size_bytes, self._rate_bps(outlet)) + load.after_ps
                for outlet, load in self._loads.items()
            ),
            default=0,
        )

    def _rate_bps(self, outlet: Outlet) -> int:
        node, peers = outlet
        return sum(self._links[node, peer].rate_bps for peer in peers)


class TopologyRoutes:
    """All routes of a topology; ranks, and servers behind them, are numbers of hosts."""

    def __init__(self, graph: nx.Graph[str], *, ecmp: bool = False) -> None:
        self.graph = graph
        self.hosts = hosts(graph)
        self.access = [attachment(graph, host) for host in self.hosts]
        self.links: dict[tuple[str, str], Link] = {(a, b): each for a, b, each in directions(graph)}
        self.fabric = switch_graph(graph)
        self._ranks = {host: rank for rank, host in enumerate(self.hosts)}
        self._inside_ps = {node: node_delay_ps(graph, node) for node in graph}
        table = self._routes = routes(graph)
        self._table = table if ecmp else dealt(graph, table)
        self._at: list[int] = table.arrays.at.tolist()
        self._left_ps: dict[int, Numbers] = {}  # by size of packet
        self._peers = {switch: neighbors(graph, switch) for switch in self._table}
        self._ways: dict[tuple[int, int], RouteLinks] = {}

    def hop_ps(self, node: str, peer: str, packet_bytes: int = 0) -> int:
        """Return the time from a node's sending until its neighbour can send the packet, or has it.

        It includes all latency of ways, also that of nodes; a host's own begins when an agent
        hands the packet over.
        """
        there = self.links[node, peer]
        inside_ps = self._inside_ps[peer] + (self._inside_ps[node] if node in self._ranks else 0)
        return there.delay_ps + inside_ps + least_ps(packet_bytes, there.rate_bps)

    def access_bps(self, rank: int) -> int:
        """Return the rate at which a host's own link sends."""
        return self.links[self.hosts[rank], self.access[rank]].rate_bps

    def arrival_bps(self, rank: int) -> int:
        """Return the rate at which a host's own link brings data."""
        return self.links[self.access[rank], self.hosts[rank]].rate_bps

    def delay_ps(self, src: int, dst: int) -> int:
        """Return the delay from one host to another, on the quickest route."""
        if src == dst:
            return 0
        if (src, dst) in self._detours:
            return sum(self.hop_ps(*ends) for ends in pairwise(self._detours[src, dst]))
        return self._first_ps[src] + int(self._times_ps(0)[self._at[src], dst])

    def longest_delay_ps(self, ranks: int) -> int:
        """Return the longest delay between any two of the first hosts."""
        if self._detours:
            pairs = permutations(range(ranks), 2)
            return max((self.delay_ps(*pair) for pair in pairs), default=0)
        if ranks > MOST_COMPARED and not self.graph.graph.get("uneven", False):
            return self._farthest_ps(ranks)
        left_ps, found_ps = self._times_ps(0)[:, :ranks], 0
        for src, at in enumerate(self._at[:ranks]):
            others_ps = np.delete(left_ps[at], src)
            found_ps = max(found_ps, self._first_ps[src] + int(others_ps.max(initial=0)))
        return found_ps if ranks > 1 else 0

    def _farthest_ps(self, ranks: int) -> int:
        """Return the longest delay from the first host: families have none that is longer."""
        pairs = PairLinks(self.graph, self._routes)
        others = np.arange(1, ranks)
        ways = pairs.find(np.zeros_like(others), others, is_dealt=False)
        return int(np.where(ways >= 0, pairs.columns.delay_ps[ways], 0).sum(axis=1).max())

    @cached_property
    def _first_ps(self) -> list[int]:
        """The delay of each host's own link."""
        return [self.hop_ps(*ends) for ends in zip(self.hosts, self.access, strict=True)]

    def way(self, src: int, dst: int) -> RouteLinks:
        """Return the way of a message between two hosts."""
        if (src, dst) not in self._ways:
            self._ways[src, dst] = self._find_way(src, dst)
        return self._ways[src, dst]

    def _find_way(self, src: int, dst: int) -> RouteLinks:
        outlets = list(self.outlets(src, dst))
        rates = [max(self.links[node, peer].rate_bps for peer in peers) for node, peers in outlets]
        if all(len(peers) == 1 for _, peers in outlets):
            delay_ps = sum(self.hop_ps(node, peers[0]) for node, peers in outlets)
            return RouteLinks(delay_ps, tuple(rates))
        return RouteLinks(self.delay_ps(src, dst), (min(rates),))  # the links between are unknown

    def rate_bps(self, outlet: Outlet) -> int:
        """Return the rate of an outlet's links together."""
        node, peers = outlet
        return sum(self.links[node, peer].rate_bps for peer in peers)

    def passes(self, sources: Iterable[int], dst: int, packet_bytes: int) -> list[list[Pass]]:
        """Return the outlets that packets must pass from each source to one host, or to itself."""
        to_dst = self._remaining_ps(dst, packet_bytes)
        return [self._passes(src, dst, to_dst, packet_bytes) for src in sources]

    def _passes(
        self, src: int, dst: int, to_dst: Mapping[str, int], packet_bytes: int
    ) -> list[Pass]:
        if (src, dst) in self._detours:
            to_dst = self._remaining_along(self._detours[src, dst], packet_bytes)
        first_ps = self.hop_ps(self.hosts[src], self.access[src], packet_bytes)
        whole_ps = first_ps + to_dst[self.access[src]]
        passes = []
        for number, (node, peers) in enumerate(self.outlets(src, dst)):
            before_ps = whole_ps - to_dst[node] if number else 0
            after_ps = min(self.hop_ps(node, peer) + to_dst[peer] for peer in peers)
            passes.append(Pass((node, peers), before_ps, after_ps))
        return passes

    def outlets(self, src: int, dst: int) -> Iterator[Outlet]:
        """Yield the outlets from one host to another: up to the first choice, and the last one."""
        if (src, dst) in self._detours:
            for node, peer in pairwise(self._detours[src, dst]):
                yield node, (peer,)
            return
        node, last = self.access[src], self.access[dst]
        yield self.hosts[src], (node,)
        while node != last:
            peers = self._next(node, dst)
            yield node, peers
            node = peers[0] if len(peers) == 1 else last
        yield last, (self.hosts[dst],)

    def add_flows(self, loads: Loads, dst: int, flows: Mapping[int, PlannedFlow]) -> None:
        """Add the flows to one host, by source, to the loads of all outlets that they must pass.

        Flows are followed until they meet a choice; at the last switch all are together.
        """
        to_dst, last = self._remaining_ps(dst), self.access[dst]
        at = _Meeting(self._table, dst)
        last_ps = to_dst[last]
        left_ps: Mapping[str, int]
        for src, flow in flows.items():
            nodes, left_ps = [self.hosts[src], self.access[src]], to_dst
            if (src, dst) in self._detours:
                nodes = list(self._detours[src, dst][:-1])
                left_ps = self._remaining_along(self._detours[src, dst])
            for node, peer in pairwise(nodes):
                flow = self._cross(loads, node, peer, flow, left_ps[peer])
            at.add(nodes[-1], flow)
        for switch, flow in at.farthest_first():
            peers = self._next(switch, dst)
            if len(peers) == 1:
                flow = self._cross(loads, switch, peers[0], flow, to_dst[peers[0]])
                at.add(peers[0], flow)
            else:
                after_ps = flow.after_ps + to_dst[switch]
                loads.add((switch, peers), flow.size_bytes, flow.begin_ps, after_ps)
                begin_ps = flow.begin_ps + to_dst[switch] - last_ps
                at.add(last, PlannedFlow(flow.size_bytes, begin_ps, flow.after_ps))

    def _cross(
        self, loads: Loads, node: str, peer: str, flow: PlannedFlow, left_ps: int
    ) -> PlannedFlow:
        """Move a flow to a neighbour, which is `left_ps` away from the flow's destination."""
        hop_ps = self.hop_ps(node, peer)
        loads.add((node, (peer,)), flow.size_bytes, flow.begin_ps, hop_ps + left_ps + flow.after_ps)
        return PlannedFlow(flow.size_bytes, flow.begin_ps + hop_ps, flow.after_ps)

    @cached_property
    def _detours(self) -> dict[tuple[int, int], tuple[str, ...]]:
        """The nodes of each detour, by source and destination."""
        entries = detours(self.graph).items()
        return {(index(src), index(dst)): detour.nodes for (src, dst), detour in entries}

    def _next(self, switch: str, dst: int) -> tuple[str, ...]:
        """Return the nodes that may come next on the way to a host."""
        peers = self._peers[switch]
        return tuple(peers[port] for port in self._table[switch][self.hosts[dst]])

    def _remaining_ps(self, dst: int, packet_bytes: int = 0) -> TimesTo:
        """Return the least time of a packet to a host, by the switch at which it is."""
        column = self._times_ps(packet_bytes)[:, dst]
        return TimesTo(self.hosts[dst], self._table.arrays.number, column)

    def _times_ps(self, packet_bytes: int) -> Numbers:
        if packet_bytes not in self._left_ps:
            hop_ps = partial(self.hop_ps, packet_bytes=packet_bytes)
            self._left_ps[packet_bytes] = remaining_ps(self._table, hop_ps)
        return self._left_ps[packet_bytes]

    def _remaining_along(self, nodes: tuple[str, ...], packet_bytes: int = 0) -> dict[str, int]:
        """Return the remaining time of a packet on a detour, by the node at which it is."""
        left = {nodes[-1]: 0}
        for node, peer in reversed(list(pairwise(nodes))):
            left[node] = self.hop_ps(node, peer, packet_bytes) + left[peer]
        return left


class _Meeting:
    """Flows to one host, at the switches where they are joined."""

    def __init__(self, table: RouteTable, dst: int) -> None:
        self._number = table.arrays.number
        self._distance = table.away[:, table.arrays.leaf[dst]]
        self._at: dict[int, dict[str, list[PlannedFlow]]] = {}  # by distance, then by switch

    def add(self, node: str, flow: PlannedFlow) -> None:
        """Add a flow at a switch; flows that have come to the host are forgotten."""
        if node in self._number:
            distance = int(self._distance[self._number[node]])
            self._at.setdefault(distance, {}).setdefault(node, []).append(flow)

    def farthest_first(self) -> Iterator[tuple[str, PlannedFlow]]:
        """Yield switches with all that meets there; meanwhile flows are added at nearer ones."""
        while self._at:
            for switch, flows in self._at.pop(max(self._at)).items():
                yield switch, together(flows)


def together(flows: list[PlannedFlow]) -> PlannedFlow:
    """Join flows that go the same way from here on into one."""
    return PlannedFlow(
        sum(flow.size_bytes for flow in flows),
        min(flow.begin_ps for flow in flows),
        min(flow.after_ps for flow in flows),
    )
