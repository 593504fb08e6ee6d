"""The ways between hosts of a topology: the links that each flow must pass, and its least times.

Where each host is reached by one path (`ringleaf.topologies.routing.dealt`), a flow's links are
known exactly. With ECMP a flow is followed until it meets a choice; from there on only the last
link, the host's own, is certain. A flow with a detour takes that and no other way. All flows are
followed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, pairwise, permutations

import networkx as nx
import numpy as np

from ringleaf.core.distinct import distinct
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.delays import node_delay_ps
from ringleaf.topologies.detours import detours, is_adaptive
from ringleaf.topologies.graph import (
    Link,
    attachment,
    directions,
    hosts,
    index,
    switch_graph,
)
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.remaining import LinkSets, TimesTo, remaining_ps
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
class PlannedFlows:
    """Bytes from hosts to hosts, their earliest begins, and the times after their arrivals."""

    src: Numbers
    dst: Numbers
    size_bytes: Numbers
    begin_ps: Numbers
    after_ps: Numbers

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int, int]]) -> PlannedFlows:
        """Return flows of rows: source, destination, bytes, begin, and time after."""
        return cls(*np.array(rows, np.int64).reshape(-1, 5).T)

    @property
    def _columns(self) -> tuple[Numbers, ...]:
        return (self.src, self.dst, self.size_bytes, self.begin_ps, self.after_ps)

    def row(self, place: int) -> list[int]:
        """Return a flow, as in `of`."""
        return [int(each[place]) for each in self._columns]

    def without(self, places: list[int]) -> PlannedFlows:
        """Return all flows but some."""
        return PlannedFlows(*(np.delete(each, places) for each in self._columns))


@dataclass(frozen=True, slots=True)
class Load:
    """Bytes that an outlet has to carry, their earliest begin, and the time after the last one."""

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
        self._loads: dict[Outlet, Load] = {}

    def add(self, outlet: Outlet, size_bytes: int, begin_ps: int, after_ps: int) -> None:
        """Add bytes to an outlet, sent from `begin_ps` on, with `after_ps` to follow the last."""
        there = self._loads.get(outlet)
        if there is not None:
            size_bytes += there.size_bytes
            begin_ps = min(begin_ps, there.begin_ps)
            after_ps = min(after_ps, there.after_ps)
        self._loads[outlet] = Load(size_bytes, begin_ps, after_ps)

    def merge(self, others: Loads, begin_ps: int = 0, after_ps: int = 0) -> None:
        """Add other loads, whose times count from `begin_ps`, with `after_ps` to follow them."""
        for outlet, load in others.items():
            self.add(outlet, load.size_bytes, begin_ps + load.begin_ps, load.after_ps + after_ps)

    def items(self) -> Iterable[tuple[Outlet, Load]]:
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
            return self._remaining_along(src, dst)[self.hosts[src]]
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
            [self._ways[src, dst]] = self.ways(np.array([src]), np.array([dst]))
        return self._ways[src, dst]

    def ways(self, src: Numbers, dst: Numbers) -> list[RouteLinks]:
        """Return the ways of messages between some pairs of hosts.

        Where links are not known, as there is a choice, a way has the least of the known rates.
        """
        pairs, pair_of = np.unique(src * len(self.hosts) + dst, return_inverse=True)
        ways = self._ways_of(*np.divmod(pairs, len(self.hosts)))
        return [ways[pair] for pair in pair_of.tolist()]

    def _ways_of(self, src: Numbers, dst: Numbers) -> list[RouteLinks]:
        """Return the ways of different pairs."""
        own_bps = np.array([self.access_bps(rank) for rank in range(len(self.hosts))])
        sets, _ = self._links.follow(src, dst)
        rates_bps = np.column_stack((own_bps[src], np.where(sets < 0, 0, self._most_bps[sets])))
        has_choice = (self._links.has_choice[sets] & (sets >= 0)).any(axis=1)
        rows = np.column_stack((self._whole_ps(src, dst), has_choice, rates_bps))
        kinds, row_of = np.unique(rows, axis=0, return_inverse=True)
        by_kind = [_way_of(*row) for row in kinds.tolist()]
        ways = [by_kind[row] for row in row_of.reshape(-1).tolist()]
        for place in self._turned_off(src, dst):
            pair = int(src[place]), int(dst[place])
            rates = [self.links[each].rate_bps for each in self._certain(*pair)]
            ways[place] = RouteLinks(self.delay_ps(*pair), tuple(rates))
        return ways

    def _whole_ps(self, src: Numbers, dst: Numbers) -> Numbers:
        """Return the delays of pairs of hosts on their quickest routes, detours left aside."""
        at = self._table.arrays.at[src]
        return np.array(self._first_ps, np.int64)[src] + self._times_ps(0)[at, dst]

    def _turned_off(self, src: Numbers, dst: Numbers) -> list[int]:
        """Return the places of the pairs that have detours."""
        if not self._detours:
            return []
        pairs = zip(src.tolist(), dst.tolist(), strict=True)
        return [place for place, pair in enumerate(pairs) if pair in self._detours]

    @cached_property
    def _links(self) -> LinkSets:
        return LinkSets(self._table)

    @cached_property
    def _most_bps(self) -> Numbers:
        """(sets,) the highest rate of each set's links."""
        rates = np.array([self.links[ends].rate_bps for ends in self._links.ends], np.int64)
        return np.asarray(rates[self._links.choices].max(axis=1, initial=0))

    def rate_bps(self, outlet: Outlet) -> int:
        """Return the rate of an outlet's links together."""
        node, peers = outlet
        return sum(self.links[node, peer].rate_bps for peer in peers)

    def passes(self, sources: Sequence[int], dst: int, packet_bytes: int) -> list[list[Pass]]:
        """Return the outlets that packets must pass from each source to one host, or to itself."""
        to_dst = self._remaining_ps(dst, packet_bytes)
        outlets = self.outlets(np.array(sources, np.int64), np.full(len(sources), dst))
        return [
            self._passes(src, dst, own, to_dst, packet_bytes)
            for src, own in zip(sources, outlets, strict=True)
        ]

    def _passes(
        self,
        src: int,
        dst: int,
        outlets: Sequence[Outlet],
        to_dst: Mapping[str, int],
        packet_bytes: int,
    ) -> list[Pass]:
        if (src, dst) in self._detours:
            to_dst = self._remaining_along(src, dst, packet_bytes)
        first_ps = self.hop_ps(self.hosts[src], self.access[src], packet_bytes)
        whole_ps = first_ps + to_dst[self.access[src]]
        passes = []
        for number, (node, peers) in enumerate(outlets):
            before_ps = whole_ps - to_dst[node] if number else 0
            after_ps = min(self.hop_ps(node, peer) + to_dst[peer] for peer in peers)
            passes.append(Pass((node, peers), before_ps, after_ps))
        return passes

    def outlets(self, src: Numbers, dst: Numbers) -> list[list[Outlet]]:
        """Return the outlets of each pair of hosts: up to the first choice, and the last one."""
        sets, _ = self._links.follow(src, dst)
        named = {
            number: self._links.outlet(number) for number in distinct(sets[sets >= 0]).tolist()
        }
        outlets: list[list[Outlet]] = []
        for rank, row in zip(src.tolist(), sets.tolist(), strict=True):
            own = (self.hosts[rank], (self.access[rank],))
            outlets.append([own, *(named[number] for number in row if number >= 0)])
        for place in self._turned_off(src, dst):
            certain = self._certain(int(src[place]), int(dst[place]))
            outlets[place] = [(node, (peer,)) for node, peer in certain]
        return outlets

    def add_flows(self, loads: Loads, flows: PlannedFlows) -> None:
        """Add flows between hosts to the loads of all outlets that they must pass."""
        turned_off = self._turned_off(flows.src, flows.dst)
        for place in turned_off:
            self._add_turned(loads, *flows.row(place))
        flows = flows.without(turned_off)
        whole_ps = self._whole_ps(flows.src, flows.dst)
        sets, switches = self._links.follow(flows.src, flows.dst)
        own = len(self._links.choices) + flows.src
        numbers = np.column_stack((own, sets))
        left_ps = self._times_ps(0)[switches, flows.dst[:, None]]
        begin_ps = flows.begin_ps[:, None] + whole_ps[:, None] - left_ps
        columns = (
            np.broadcast_to(flows.size_bytes[:, None], numbers.shape),
            np.column_stack((flows.begin_ps, begin_ps)),
            flows.after_ps[:, None] + np.column_stack((whole_ps, left_ps)),
        )
        is_there = numbers >= 0
        self._add_all(loads, numbers[is_there], *(each[is_there] for each in columns))

    def _add_all(
        self, loads: Loads, numbers: Numbers, sizes: Numbers, begin_ps: Numbers, after_ps: Numbers
    ) -> None:
        """Add bytes to outlets: sets of links, by number, then hosts' own links."""
        count = len(self._links.choices) + len(self.hosts)
        total = np.zeros(count, np.int64)
        first_ps, last_ps = (np.full(count, FOREVER_PS) for _ in range(2))
        np.add.at(total, numbers, sizes)
        np.minimum.at(first_ps, numbers, begin_ps)
        np.minimum.at(last_ps, numbers, after_ps)
        for number in distinct(numbers).tolist():
            rank = number - len(self._links.choices)
            outlet = (
                self._links.outlet(number) if rank < 0 else (self.hosts[rank], (self.access[rank],))
            )
            loads.add(outlet, int(total[number]), int(first_ps[number]), int(last_ps[number]))

    def _add_turned(
        self, loads: Loads, src: int, dst: int, size_bytes: int, begin_ps: int, after_ps: int
    ) -> None:
        """Add a flow that takes a detour."""
        left_ps = self._remaining_along(src, dst)
        for node, peer in self._certain(src, dst):
            before_ps = left_ps[self.hosts[src]] - left_ps[node]
            loads.add((node, (peer,)), size_bytes, begin_ps + before_ps, after_ps + left_ps[node])

    @cached_property
    def _detours(self) -> dict[tuple[int, int], tuple[str, ...]]:
        """The nodes of each detour, by source and destination."""
        entries = detours(self.graph).items()
        return {(index(src), index(dst)): detour.nodes for (src, dst), detour in entries}

    def _remaining_ps(self, dst: int, packet_bytes: int = 0) -> TimesTo:
        """Return the least time of a packet to a host, by the switch at which it is."""
        column = self._times_ps(packet_bytes)[:, dst]
        return TimesTo(self.hosts[dst], self._table.arrays.number, column)

    def _times_ps(self, packet_bytes: int) -> Numbers:
        if packet_bytes not in self._left_ps:
            hop_ps = partial(self.hop_ps, packet_bytes=packet_bytes)
            self._left_ps[packet_bytes] = remaining_ps(self._links, hop_ps)
        return self._left_ps[packet_bytes]

    def _certain(self, src: int, dst: int) -> list[tuple[str, str]]:
        """Return the links that all packets of a pair with a detour pass, in order."""
        ends = list(pairwise(self._detours[src, dst]))
        return [ends[0], ends[-1]] if is_adaptive(self.graph) else ends

    def _remaining_along(self, src: int, dst: int, packet_bytes: int = 0) -> dict[str, int]:
        """Return the least remaining time of a packet of a pair with a detour, by its node.

        If packets may take the usual way, too, the nodes are those of the links that all pass.
        """
        nodes = self._detours[src, dst]
        left = {nodes[-1]: 0}
        for node, peer in reversed(list(pairwise(nodes))):
            left[node] = self.hop_ps(node, peer, packet_bytes) + left[peer]
        if is_adaptive(self.graph):
            first = min(left[nodes[1]], self._remaining_ps(dst, packet_bytes)[nodes[1]])
            sent = first + self.hop_ps(nodes[0], nodes[1], packet_bytes)
            left = {nodes[0]: sent, nodes[1]: first, nodes[-2]: left[nodes[-2]], nodes[-1]: 0}
        return left


def _way_of(delay_ps: int, has_choice: int, *rates_bps: int) -> RouteLinks:
    """Return a way, given the rates of its links; 0 stands for none."""
    known = tuple(rate for rate in rates_bps if rate)
    return RouteLinks(delay_ps, (min(known),) if has_choice else known)
