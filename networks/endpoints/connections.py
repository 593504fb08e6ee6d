"""The hosts' rc agents and their queue pairs, which are made when a schedule needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.units import serialize_ps
from ringleaf.hosts import rc
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.hosts.plan import PeerMessages
from ringleaf.hosts.rc.wire import SOURCE_PORT_LOW, SOURCE_PORTS
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import attachment, directions, hosts, index, link
from ringleaf.topologies.route_table import RouteTable
from ringleaf.topologies.routing import path, routes

FRAME_OVERHEAD_BYTES = rc.PACKET_OVERHEAD_BYTES + LINE_OVERHEAD_BYTES
MAX_WINDOW = 1 << 14


class ChannelFlow(NamedTuple):
    """A stream of one group and channel.

    Collectives of one group that run at the same time are on channels of their own, so their
    messages don't mix.
    """

    group: int  # its place among the network's groups
    channel: int
    stream: PeerMessages


class Connections:
    """One rc agent per host, and the queue pairs that carry its flows."""

    def __init__(
        self,
        graph: nx.Graph[str],
        store: Store,
        options: NetworkOptions,
        groups: Sequence[Group],
        *,
        ring: int,
        rtt_ps: int,
        udp_port: int = rc.UDP_PORT,
        table: RouteTable | None = None,
    ) -> None:
        self._store = store
        self._udp_port = udp_port
        self._graph = graph
        self._hosts = hosts(graph)
        self._nodes = [[index(host) for host in group.nodes] for group in groups]
        self._qps: list[dict[ChannelFlow, int]] = [{} for _ in self._hosts]  # by host
        self._controller = find_controller(options.cc)
        self._rtt_ps = rtt_ps
        self._mtu, self._fixed_window = options.mtu_bytes, options.window
        self._routes = routes(graph) if table is None else table
        self._flows: list[list[ChannelFlow]] = [[] for _ in self._hosts]  # by host, then QP
        self._partitions = [
            rc.FULL_MEMBER | group.number if len(groups) > 1 else rc.DEFAULT_PARTITION
            for group in groups
        ]
        self._path_rates: dict[tuple[int, int], int] = {}  # by host and peer
        self._macs = [mac(graph, host, 1) for host in self._hosts]
        self._addresses = [ipv4(graph, host) for host in self._hosts]
        self._rates = {sent.rate_bps for _, _, sent in directions(graph)}
        self._priority: dict[tuple[int, int, int], tuple[int, bool]] = {}
        """By group, channel and host: its priority, and whether packets carry it."""
        self._gain: dict[tuple[int, int, int], float] = {}  # likewise; 1 where there is none
        self._renewed: dict[tuple[int, int, int], list[int]] = {}  # likewise, their queue pairs
        self._paced: dict[tuple[int, int, int], list[int]] = {}  # by group, channel and host
        self.agents = [
            self._make_agent(host, options, ring=ring, rtt_ps=rtt_ps)
            for host in range(len(self._hosts))
        ]

    @property
    def window_bytes(self) -> int:
        """The most payload bytes that one connection has in flight."""
        words = self._store.arena.words
        return max(int(words[at + rc.WINDOW] * words[at + rc.MTU]) for at in self.agents)

    @property
    def longest_quiet_ps(self) -> int:
        """The longest time for which hosts bear silence before a timeout begins."""
        return max(int(self._store.arena.words[at + rc.QUIET_PS]) for at in self.agents)

    @property
    def longest_timeout_ps(self) -> int:
        """The longest of the hosts' least timeouts."""
        words = self._store.arena.words
        return max(int(words[at + rc.MIN_TIMEOUT_PS]) for at in self.agents)

    def _make_agent(self, number: int, options: NetworkOptions, *, ring: int, rtt_ps: int) -> int:
        host = self._hosts[number]
        access = link(self._graph, host, attachment(self._graph, host))
        full_ps = serialize_ps(options.mtu_bytes + FRAME_OVERHEAD_BYTES, access.rate_bps)
        window = self._window(access.rate_bps)
        return rc.make_rc(
            self._store,
            host=number,
            ring=ring,
            mtu=options.mtu_bytes,
            window=window,
            min_timeout_ps=2 * rtt_ps + 4 * window * full_ps,
            rnr_wait_ps=rtt_ps,
            quiet_ps=options.quiet_ps,
            has_data=options.has_data,
            takes_cuts=options.trim_bytes is not None,
            repath_after=options.repath or 0,
            strict_classes=options.discipline == "strict" and options.pfc is None,
            udp_port=self._udp_port,
        )

    def _window(self, rate_bps: int) -> int:
        """Return the packets in flight on a path: by default twice its capacity at this rate."""
        full_ps = serialize_ps(self._mtu + FRAME_OVERHEAD_BYTES, rate_bps)
        return self._fixed_window or min(max(8, 2 * self._rtt_ps // full_ps), MAX_WINDOW)

    def _path_rate(self, host: int, peer: int) -> int:
        """Return the rate of the slowest link between two hosts."""
        if len(self._rates) == 1:
            return next(iter(self._rates))
        if (host, peer) not in self._path_rates:
            ends = self._hosts[host], self._hosts[peer]
            nodes = path(self._graph, *ends, table=self._routes)
            rates = (link(self._graph, *pair).rate_bps for pair in pairwise(nodes))
            self._path_rates[host, peer] = min(rates)
        return self._path_rates[host, peer]

    def _control(self, host: int, number: int, peer: int) -> None:
        """Put a queue pair under the network's congestion control."""
        name = self._hosts[host]
        rc.control_qp(
            self._store,
            self.agents[host],
            number,
            self._controller,
            line_bps=link(self._graph, name, attachment(self._graph, name)).rate_bps,
            rtt_ps=self._rtt_ps,
            hops=self._hops(host, peer) if self._controller.routed else 1,
        )

    def _hops(self, host: int, peer: int) -> int:
        """Return the number of switches between two hosts."""
        ends = self._hosts[host], self._hosts[peer]
        return len(path(self._graph, *ends, table=self._routes)) - 2

    def qp(self, host: int, flow: ChannelFlow) -> int:
        """Return the queue pair of a host that carries a flow, both ways."""
        return self._qps[host][flow]

    def flow(self, host: int, qp: int) -> ChannelFlow:
        """Return the flow that a queue pair of a host carries, the inverse of `qp`."""
        return self._flows[host][qp]

    def flows(self, host: int) -> Sequence[ChannelFlow]:
        """Return the flows of a host's queue pairs, by number."""
        return self._flows[host]

    def peers(self, host: int) -> list[int]:
        """Return the host at the other end of each of a host's queue pairs, by number."""
        return [self._nodes[flow.group][flow.stream.peer] for flow in self._flows[host]]

    def prioritise(
        self, group: int, channel: int, node: int, priority: int, *, marks: bool = True
    ) -> None:
        """Set the priority, 0 to 7, of all that a node sends on a channel from now on.

        Packets carry it if `marks`; else it counts in the host only.
        """
        host = self._nodes[group][node]
        setting = priority, marks
        if self._priority.get((group, channel, host), (0, marks)) != setting:
            self._priority[group, channel, host] = setting
            for number, flow in enumerate(self._flows[host]):
                if (flow.group, flow.channel) == (group, channel):
                    rc.set_priority(
                        self._store.arena, self.agents[host], number, priority, marks=marks
                    )

    def encourage(self, group: int, channel: int, node: int, gain: float) -> None:
        """Set the factor by which windows of a node grow faster on a channel from now on."""
        host = self._nodes[group][node]
        place = group, channel, host
        if self._controller.has_gain and self._gain.get(place, 1.0) != gain:
            self._gain[place] = gain
            for number, flow in enumerate(self._flows[host]):
                if (flow.group, flow.channel) == (group, channel):
                    rc.set_gain(self._store.arena, self.agents[host], number, gain)

    def renew(self, group: int, channel: int, node: int) -> None:
        """Forget what a node's congestion control knows, where an operation must not inherit it."""
        host = self._nodes[group][node]
        for number in self._renewed.get((group, channel, host), ()):
            rc.renew_qp(self._store.arena, self.agents[host], number, self._controller)

    def pace(
        self, group: int, channel: int, node: int, streams: Sequence[PeerMessages], rate_bps: int
    ) -> None:
        """Set the rate at which a node sends on streams of a channel together; 0: any rate."""
        host = self._nodes[group][node]
        arena, at = self._store.arena, self.agents[host]
        if paced := self._paced.pop((group, channel, host), []):  # maybe of other streams
            rc.set_rate(arena, at, paced, 0)
        if streams and rate_bps:
            numbers = [self._qps[host][ChannelFlow(group, channel, stream)] for stream in streams]
            rc.set_rate(arena, at, numbers, rate_bps)
            self._paced[group, channel, host] = numbers

    def connect(
        self,
        group: int,
        channel: int,
        streams: Iterable[tuple[int, PeerMessages]],
        *,
        eager: bool = False,
        renewed: bool = False,
    ) -> None:
        """Make the queue pairs that nodes lack for these streams.

        Args:
            group: The nodes' group.
            channel: The channel.
            streams: Nodes, and streams as they see them.
            eager: Whether messages leave without credit, and it is reported when they have left.
            renewed: Whether each operation begins as on new queue pairs, as flows do.
        """
        new: list[tuple[int, ChannelFlow, int, ChannelFlow]] = []
        for node, stream in streams:
            host, peer = self._nodes[group][node], self._nodes[group][stream.peer]
            flow = ChannelFlow(group, channel, stream)
            if flow not in self._qps[host]:
                back = ChannelFlow(group, channel, stream._replace(peer=node))
                for end, which in ((host, flow), (peer, back)):
                    self.add(end, which)
                new += (host, flow, peer, back), (peer, back, host, flow)
        self.join(new, eager=eager)
        if renewed:
            for host, flow, _, _ in new:
                place = group, channel, host
                self._renewed.setdefault(place, []).append(self._qps[host][flow])

    def join(
        self,
        new: Sequence[tuple[int, ChannelFlow, int, ChannelFlow]],
        rates_bps: Sequence[int] = (),
        *,
        eager: bool = False,
    ) -> None:
        """Make queue pairs of hosts' flows, which are known by number.

        Args:
            new: Hosts and their flows, and those of their peers.
            rates_bps: The rate of the slowest link of each; empty: it is that of the ways between
                hosts.
            eager: As `connect` has it.
        """
        counts = Counter(host for host, *_ in new)
        for host, count in counts.items():
            rc.add_qps(self._store, self.agents[host], count)
        rates = rates_bps or [self._path_rate(host, peer) for host, _, peer, _ in new]
        ends = [self._end(*each, rate) for each, rate in zip(new, rates, strict=True)]
        rc.connect_qps(self._store, [end._replace(eager=eager) for end in ends])
        if not self._controller.is_open:
            for host, flow, peer, _ in new:
                self._control(host, self._qps[host][flow], peer)

    def add(self, host: int, flow: ChannelFlow) -> None:
        """Give a flow of a host the number of a queue pair, which `join` makes."""
        self._qps[host][flow] = len(self._flows[host])
        self._flows[host].append(flow)

    def _end(
        self, host: int, flow: ChannelFlow, peer: int, back: ChannelFlow, rate_bps: int
    ) -> rc.QpEnd:
        """Return a host's end of a connection, whose slowest link has a rate."""
        number = self._qps[host][flow]
        return rc.QpEnd(
            agent=self.agents[host],
            number=number,
            peer_qp=self._qps[peer][back],
            macs=(self._macs[host], self._macs[peer]),
            addresses=(self._addresses[host], self._addresses[peer]),
            source_port=SOURCE_PORT_LOW + (host * 131 + number) % SOURCE_PORTS,
            partition=self._partitions[flow.group],
            window=self._window(rate_bps),
        )
