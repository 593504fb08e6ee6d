"""The tables of a flow network, laid out from a topology and the queue pairs of its hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store, Words
from ringleaf.core.headers import UDP_SRC_AT, get16
from ringleaf.core.units import FOREVER_PS, PS_PER_S, serialize_ps
from ringleaf.core.views import as_floats, window
from ringleaf.errors import TopologyError
from ringleaf.hosts.agent import UDP_PORT_LOW
from ringleaf.hosts.rc.state import ACK_EVERY, ALLOWED, MTU, QP_WORDS, QPS_AT, TEMPLATE_AT
from ringleaf.hosts.rc.wire import FRAME_OVERHEAD_BYTES, HEAD_BYTES
from ringleaf.networks.endpoints.connections import ChannelFlow, Connections
from ringleaf.networks.flow.counting import ANSWER_BYTES
from ringleaf.networks.flow.ways import Direction, Ways
from ringleaf.networks.groups import Group
from ringleaf.networks.virtual.fabric import PortPlace, fill_ports
from ringleaf.networks.virtual.state import make_network, open_network
from ringleaf.topologies.graph import hosts, index, link, switches

if TYPE_CHECKING:
    from ringleaf.ina.fluid import FluidStream


class QueuePair(NamedTuple):
    """One end of a connection: host, number, the peer's host and number, and the group."""

    host: int
    number: int
    peer: int
    peer_number: int
    group: int


class Cables(NamedTuple):
    """Directions of links, by number: what flows and their solver need to know of them."""

    ends: Sequence[Direction]
    rates: list[int]
    delays: list[int]  # those of nodes that are passed at either end included
    is_of_host: list[bool]  # whether a host sends there
    hosts: int  # links of hosts, also of those that others stand for


MOST_IN_TURNS = 200
"""Links of hosts up to which flows of hosts that send several messages may have queues."""

MOST_WITH_QUEUES = 4096
"""Hosts, or classes of them, up to which any links may have queues."""


class FlowTables(ABC):
    """The tables of flows, which grow with the hosts' queue pairs.

    Args:
        store: The store that has the hosts.
        connections: The hosts' agents and queue pairs.
        owners: By group of the hosts, by whose number its bytes are counted.
        cables: The links.
        net: The block of ports, series, heap and driver; a port has its link's number.
    """

    def __init__(
        self,
        store: Store,
        connections: Connections,
        owners: Sequence[int],
        cables: Cables,
        net: int,
    ) -> None:
        self._store, self._connections, self._owners = store, connections, owners
        self._hosts = len(connections.agents)
        self._cables, self.net = cables, net
        self._rates, self._delays = cables.rates, cables.delays
        self._known = [0] * self._hosts  # queue pairs that have flows, by host
        self._by_qp: list[list[int]] = [[] for _ in range(self._hosts)]
        self._left = [float(rate) for rate in cables.rates]
        """By link: the rate that acknowledgements leave, at its usual rate."""
        self._taken: dict[int, float] = {}
        """By flow: the rate that acknowledgements take of links on its way."""
        self.at = self._make(len(cables.ends))

    @abstractmethod
    def _end(self, host: int, number: int, flow: ChannelFlow) -> QueuePair:
        """Return both ends of a queue pair."""

    @abstractmethod
    def _links(self, end: QueuePair) -> list[tuple[int, int]]:
        """Return the links from a host to its peer, in order, and how many like flows each has."""

    def _make(self, links: int) -> int:
        store, count = self._store, self._hosts
        filling = f.make_filling(store, [float(rate) for rate in self._rates])
        tables = {
            n.LINKS_AT: store.allocate("words", links * n.LINK_WORDS),
            n.HOSTS_AT: store.allocate("words", count),
            n.STIRRED_AT: store.allocate("words", count),
            n.IS_STIRRED_AT: store.allocate("words", count),
            n.MET_LINKS_AT: store.allocate("words", links),
            n.NET_AT: self.net,
            n.FILLING_AT: filling,
        }
        at = store.allocate("words", n.FLOW_NETWORK_WORDS)
        words = store.arena.words
        words[at + n.HAS_TURNS] = self._cables.hosts <= MOST_IN_TURNS
        words[at + n.HAS_QUEUES] = count <= MOST_WITH_QUEUES
        for word, offset in tables.items():
            words[at + word] = offset
        floats = as_floats(words)
        for number, rate in enumerate(self._rates):
            row = n.link_at(words, at, number)
            floats[row + n.FULL] = floats[row + n.REDUCED] = rate
            words[row + n.IS_OF_HOST] = self._cables.is_of_host[number]
        return at

    def most_queued(self) -> dict[Direction, int]:
        """Return the most bytes that packets might have had in the queue of each switch's port."""
        words = self._store.arena.words
        rows = {ends: n.link_at(words, self.at, i) for i, ends in enumerate(self._cables.ends)}
        return {
            ends: round(as_floats(words)[row + n.MOST_QUEUED] / 8)
            for ends, row in rows.items()
            if not words[row + n.IS_OF_HOST]
        }

    def update(self) -> None:
        """Give flows to queue pairs that have none; nothing is under way on those."""
        new = [
            self._end(host, number, flow)
            for host in range(self._hosts)
            for number, flow in self._new_of(host)
        ]
        if not new:
            return
        ways = [self._links(end) for end in new]
        links = [[number for number, _ in way] for way in ways]
        self._add_rows(len(new))
        first = f.add_flows(
            *(self._store, int(self._store.arena.words[self.at + n.FILLING_AT])),
            [[(number, float(flows)) for number, flows in way] for way in ways],
            [float(min(self._rates[number] for number in way)) for way in links],
        )
        for flow, end in enumerate(new, first):
            assert len(self._by_qp[end.host]) == end.number
            self._by_qp[end.host].append(flow)
        self._write_map()
        self._write_queue_pairs()
        for flow, (end, way) in enumerate(zip(new, links, strict=True), first):
            back = self._by_qp[end.peer][end.peer_number]
            self._write_flow(flow, end, way, back, links[back - first])

    def _new_of(self, host: int) -> list[tuple[int, ChannelFlow]]:
        flows = self._connections.flows(host)
        known, self._known[host] = self._known[host], len(flows)
        return list(enumerate(flows[known:], known))

    def _state(self, end: QueuePair) -> int:
        """Return the offset of a queue pair's words."""
        agent = self._connections.agents[end.host]
        return int(self._store.arena.words[agent + QPS_AT]) + end.number * QP_WORDS

    def _window_bits(self, end: QueuePair) -> int:
        """Return the bits on the line that a queue pair has in flight at most."""
        packets = int(self._store.arena.words[self._state(end) + ALLOWED])
        return 8 * self._frame_bytes(end) * packets

    def _frame_bytes(self, end: QueuePair) -> int:
        """Return the line time of a full packet in bytes."""
        agent = self._connections.agents[end.host]
        return int(self._store.arena.words[agent + MTU]) + FRAME_OVERHEAD_BYTES

    def _one_way_ps(self, way: Sequence[int], size_bytes: int) -> int:
        return sum(self._delays[i] + serialize_ps(size_bytes, self._rates[i]) for i in way)

    def _add_rows(self, count: int) -> None:
        words = self._store.arena.words
        old, at = int(words[self.at + n.FLOWS]), int(words[self.at + n.FLOWS_AT])
        rows = self._store.allocate("words", (old + count) * n.FLOW_WORDS)
        lists = [self._store.allocate("words", old + count) for _ in range(2)]
        words = self._store.arena.words
        words[rows : rows + old * n.FLOW_WORDS] = words[at : at + old * n.FLOW_WORDS]
        added = words[rows + old * n.FLOW_WORDS :][: count * n.FLOW_WORDS]
        added[n.EXPECTED_PS :: n.FLOW_WORDS] = FOREVER_PS
        words[self.at + n.FLOWS], words[self.at + n.FLOWS_AT] = old + count, rows
        words[self.at + n.COUNTED_AT], words[self.at + n.MET_FLOWS_AT] = lists

    def _write_map(self) -> None:
        """Write the flows by host and queue pair."""
        starts = np.cumsum([0, *map(len, self._by_qp)])
        place = self._store.allocate("words", int(starts[-1]))
        words = self._store.arena.words
        words[place : place + starts[-1]] = [flow for flows in self._by_qp for flow in flows]
        words[self.at + n.BY_QP_AT] = place
        hosts_at = int(words[self.at + n.HOSTS_AT])
        words[hosts_at : hosts_at + len(self._by_qp)] = starts[:-1]

    def _write_queue_pairs(self) -> None:
        """Write where all flows' queue pairs are, which may have moved."""
        words = self._store.arena.words
        for agent, flows in zip(self._connections.agents, self._by_qp, strict=True):
            first = int(words[agent + QPS_AT])
            for number, flow in enumerate(flows):
                words[n.flow_at(words, self.at, flow) + n.QP_AT] = first + number * QP_WORDS

    def _write_flow(
        self, flow: int, end: QueuePair, way: Sequence[int], back: int, back_way: Sequence[int]
    ) -> None:
        words = self._store.arena.words
        floats, row = as_floats(words), n.flow_at(words, self.at, flow)
        agent, rates = self._connections.agents[end.host], [self._rates[i] for i in way]
        words[row + n.AGENT], words[row + n.QP], words[row + n.BACK] = agent, end.number, back
        words[row + n.TAIL_PS] = sum(self._delays[i] for i in way)
        floats[row + n.STORE_PS] = sum(PS_PER_S / rate for rate in rates) - PS_PER_S / min(rates)
        answer_ps, window_bits = self._one_way_ps(back_way, ANSWER_BYTES), self._window_bits(end)
        # The round trip of a full packet and its acknowledgement where nothing else is.
        empty_ps = self._one_way_ps(way, self._frame_bytes(end)) + answer_ps
        by_window = window_bits * PS_PER_S // empty_ps
        words[row + n.ANSWER_PS], words[row + n.WINDOW] = answer_ps, window_bits
        floats[row + n.EMPTY_PS], floats[row + n.LEAVES] = empty_ps, min(rates[0], by_window)
        peak = float(min(*rates, by_window))
        f.set_peak(words, int(words[self.at + n.FILLING_AT]), flow, peak)
        every = int(words[self._state(end) + ACK_EVERY])
        words[row + n.ANSWERS_EACH], words[row + n.PAYLOAD_BYTES] = every, words[agent + MTU]
        words[row + n.OWNER] = self._owners[end.group]
        taken = min(rates) * ANSWER_BYTES / (every * self._frame_bytes(end))
        self._taken[back] = taken
        for number in back_way:
            left = float(beside_answers(self._rates[number], taken))
            self._left[number] = min(self._left[number], left)
            self._reduce(number)

    def _reduce(self, number: int) -> None:
        """Write what acknowledgements leave of a link: the same share whatever its rate."""
        words = self._store.arena.words
        floats, row = as_floats(words), n.link_at(words, self.at, number)
        full, usual = floats[row + n.FULL], float(self._rates[number])
        left = self._left[number]
        floats[row + n.REDUCED] = left if full == usual else float(int(full * (left / usual)))

    def set_rate(self, number: int, rate_bps: float) -> None:
        """Give a link another rate, also while flows are under way on it."""
        words = self._store.arena.words
        as_floats(words)[n.link_at(words, self.at, number) + n.FULL] = rate_bps
        self._reduce(number)
        self._fit(number)

    def _fit(self, number: int) -> None:
        """Have flows share what a link has: less where acknowledgements are under way."""
        words = self._store.arena.words
        row = n.link_at(words, self.at, number)
        left = n.REDUCED if words[row + n.ANSWERED] > 0 else n.FULL
        filling = int(words[self.at + n.FILLING_AT])
        f.set_capacity(words, filling, number, as_floats(words)[row + left])


def beside_answers(
    rates: float | npt.NDArray[np.float64], taken: float | npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return what acknowledgements leave of links, given what they would take of those forth.

    Where a slower link leads back, such as PCIe where NVLink leads forth, they share it with data,
    and can't take it all.
    """
    left: npt.NDArray[np.float64] = np.floor(np.maximum(rates - taken, rates / 2))
    return left


class Layout(FlowTables):
    """A flow network's tables, whose links are those of a topology.

    Args:
        graph: The topology.
        store: The store that has the hosts.
        places: The ports of all nodes; links' directions have their numbers.
        connections: The hosts' agents and queue pairs.
        groups: The network's groups.
        ways: Finds the links between hosts.
        ring: The completion ring.
        bins: Of the series of links' loads.
        owners: A bound above the numbers of groups; 1: there is one only.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        store: Store,
        places: Sequence[PortPlace],
        connections: Connections,
        groups: Sequence[Group],
        ways: Ways,
        *,
        ring: int,
        bins: int,
        owners: int,
    ) -> None:
        self._ways, self._names = ways, hosts(graph)
        self._streams = 0
        self._nodes = [[index(name) for name in group.nodes] for group in groups]
        self._node_of = [{host: node for node, host in enumerate(own)} for own in self._nodes]
        self._link_of = {(place.node, place.peer): i for i, place in enumerate(places)}
        nodes = [*switches(graph), *self._names]
        at = make_network(
            *(store,),
            ports=len(places),
            nodes=len(nodes),
            agents=len(self._names),
            ring=ring,
            bins=bins,
            seed=0,
            owners=owners,
        )
        net = open_network(store.arena, at)
        fill_ports(net, graph, places, nodes)
        net.agents[:, s.AGENT_AT] = connections.agents
        own = set(self._names)
        is_of_host = [place.node in own for place in places]
        cables = Cables(
            [(place.node, place.peer) for place in places],
            [link(graph, place.node, place.peer).rate_bps for place in places],
            net.ports[:, s.DELAY_PS].tolist(),
            is_of_host,
            sum(is_of_host),
        )
        numbers = [group.number if owners > 1 else 0 for group in groups]
        super().__init__(store, connections, numbers, cables, at)

    def add_stream(self, stream: FluidStream) -> int:
        """Add a flow for the sums of a job; return its number. Nothing is under way yet."""
        packet_bits = 8 * stream.packet_bytes
        self._streams += 1
        cap = stream.slots * packet_bits * PS_PER_S // stream.round_ps
        self._add_rows(1)
        way = [(self._link_of[ends], use) for ends, use in stream.way.items()]
        filling = int(self._store.arena.words[self.at + n.FILLING_AT])
        flow = f.add_flows(self._store, filling, [way])
        words = self._store.arena.words
        f.set_peak(words, filling, flow, float(cap))
        alone_bps = as_floats(words)[f.flow_row(words, filling, flow) + f.PEAK]
        first_ps = round(packet_bits * PS_PER_S / alone_bps)
        words[n.flow_at(words, self.at, flow) + n.TAIL_PS] = stream.round_ps - first_ps
        return flow

    @property
    def has_streams(self) -> bool:
        """Whether there are sums of jobs."""
        return self._streams > 0

    def number_of(self, direction: Direction) -> int:
        """Return the number of a link's direction."""
        return self._link_of[direction]

    def ends_of(self, number: int) -> Direction:
        """Return a link's direction by its number."""
        return self._cables.ends[number]

    def moved(self, ways: Ways) -> dict[int, list[int]]:
        """Return the flows whose ways are others now, and these, by links' numbers."""
        before, self._ways = self._ways, ways
        try:
            new = {
                flow: [number for number, _ in self._links(self._end_of(host, qp))]
                for host, flows in enumerate(self._by_qp)
                for qp, flow in enumerate(flows)
            }
        except TopologyError:
            self._ways = before
            raise
        words = self._store.arena.words
        flows, links = f.crossings(words, int(words[self.at + n.FILLING_AT]))
        now: dict[int, list[int]] = {}
        for flow, number in zip(flows.tolist(), links.tolist(), strict=True):
            now.setdefault(flow, []).append(number)
        return {flow: way for flow, way in new.items() if way != now[flow]}

    def move(self, ways: Mapping[int, Sequence[int]]) -> None:
        """Have flows, of which none is carried, nor any that they answer, go other ways."""
        filling = int(self._store.arena.words[self.at + n.FILLING_AT])
        peaks = [float(min(self._rates[number] for number in way)) for way in ways.values()]
        crossed = {flow: [(number, 1.0) for number in way] for flow, way in ways.items()}
        f.move_flows(self._store, filling, crossed, peaks)
        words = self._store.arena.words
        flows, links = f.crossings(words, filling)
        starts = np.searchsorted(flows, np.arange(int(words[self.at + n.FLOWS]) + 1))
        way_of = [links[a:b].tolist() for a, b in pairwise(starts.tolist())]
        for host, own in enumerate(self._by_qp):
            for qp, flow in enumerate(own):
                back = int(words[n.flow_at(words, self.at, flow) + n.BACK])
                if flow in ways or back in ways:
                    end = self._end_of(host, qp)
                    self._write_flow(flow, end, way_of[flow], back, way_of[back])
        self._take_again(flows, links)

    def _take_again(self, flows: Words, links: Words) -> None:
        """Work out what acknowledgements leave of links, where ways are others now.

        Args:
            flows: A flow for each link of its way.
            links: The link.
        """
        rates = np.array(self._rates, np.float64)
        taken = np.zeros(int(self._store.arena.words[self.at + n.FLOWS]))
        taken[list(self._taken)] = list(self._taken.values())
        left = rates.copy()
        np.minimum.at(left, links, beside_answers(rates[links], taken[flows]))
        changed = np.flatnonzero(left != self._left).tolist()
        self._left = left.tolist()
        for number in changed:
            self._reduce(number)
            self._fit(number)

    def _end_of(self, host: int, number: int) -> QueuePair:
        return self._end(host, number, self._connections.flows(host)[number])

    def _end(self, host: int, number: int, flow: ChannelFlow) -> QueuePair:
        nodes = self._nodes[flow.group]
        peer = nodes[flow.stream.peer]
        own = flow.stream._replace(peer=self._node_of[flow.group][host])
        back = ChannelFlow(flow.group, flow.channel, own)
        return QueuePair(host, number, peer, self._connections.qp(peer, back), flow.group)

    def _links(self, end: QueuePair) -> list[tuple[int, int]]:
        arena = self._store.arena
        agent = self._connections.agents[end.host]
        template = int(arena.words[self._state(end) + TEMPLATE_AT])
        source = get16(window(arena.bytes, template, HEAD_BYTES), UDP_SRC_AT)
        ports = int(source), int(arena.words[agent + UDP_PORT_LOW])
        way = self._ways.find(self._names[end.host], self._names[end.peer], ports)
        return [(self._link_of[direction], 1) for direction in way]
