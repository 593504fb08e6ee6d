"""Nodes on real interfaces, over which a live process, of hosts or of switches, runs its loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import ringleaf.networks.live.state as v
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.compiled import address_of
from ringleaf.core.packets import HEAD_BYTES, free_packet, read_packet, write_packet
from ringleaf.core.units import PS_PER_S, format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import (
    AGENT_WORDS,
    COMPLETIONS_AT,
    HOST,
    HostAgent,
    make_ring,
    take_completions,
)
from ringleaf.networks.live.loop import discard, emit, hand_over, now_of, serve
from ringleaf.networks.live.lossless import asked, lay_out_pausing
from ringleaf.networks.live.sockets import Sockets
from ringleaf.networks.virtual.events import ARRIVAL
from ringleaf.networks.virtual.fabric import fill_agent
from ringleaf.networks.virtual.lines import push_packet
from ringleaf.networks.virtual.loop import NEEDS_ROOM, lacks_room
from ringleaf.networks.virtual.room import make_room
from ringleaf.networks.virtual.state import NetworkState, make_network, number_agents, open_network
from ringleaf.switches.engine.disciplines import make_port_queues
from ringleaf.switches.switch import Switch

RING_ROWS = 1 << 12
BINS = 2
_COUNTED = {"received": v.RECEIVED, "cut": v.CUT, "sent": v.SENT, "refused": v.REFUSED}
BIN_PS = 10 * PS_PER_S
CPU_PORT = 510  # default, as in p4lang's tutorials; v1model has no greater one
CPU_RATE_BPS = 10**8  # controllers are Python: packets they can't take in time wait, or are dropped
CPU_QUEUE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """One interface, and the link that begins there, with the rate, delay and loss of sending."""

    interface: str
    rate_bps: int
    delay_ps: int = 0
    loss: float = 0.0  # probability, per packet
    queue_bytes: int = 4 << 20  # switches only, like the following
    discipline: str = "strict"  # of the port's queues, as `switches/engine/disciplines.py` reads it
    pfc: str = ""  # priority flow control, as `parse_pausing` reads it; of hosts, too


@dataclass(slots=True)
class LiveNode:
    """A host with one line, or a switch with one per port; a switch without program is mute."""

    name: str
    lines: Sequence[LinkEnd]
    switch: Switch | None = None
    agents: Sequence[HostAgent] = field(default_factory=tuple)
    cpu_port: int = 0  # number of a switch's port to its controllers; 0: it has none

    @property
    def is_host(self) -> bool:
        """Return whether the node is a host, which is one that has agents."""
        return bool(self.agents)


class Engine:
    """Runs nodes on this process's interfaces.

    Args:
        store: A store with a packet pool whose heads hold whole packets.
        ring: Completion ring of the agents; None: the engine makes one of its own.
        seed: Seed of losses.
        caller: A descriptor for which `serve` returns when it has something to read.
    """

    def __init__(
        self, store: Store, *, ring: int | None = None, seed: int = 1, caller: int | None = None
    ) -> None:
        self.store = store
        self._ring = make_ring(store, RING_ROWS) if ring is None else ring
        self._seed = seed
        self._start_ps: int | None = None
        self._sockets: Sockets | None = None
        self._desks: dict[int, int] = {}  # index of a switch -> number of its CPU port
        self._caller = caller
        self.at = self.live = -1

    def build(self, nodes: Sequence[LiveNode], *, bypass: bool = True) -> None:
        """Open the nodes' interfaces and lay them out; packets on their way are lost.

        Args:
            nodes: All nodes of the process.
            bypass: Whether packets go past the interfaces' queueing disciplines.

        Raises:
            BackendError: If an interface can't be opened.
            ConfigError: If lines have different priority flow control.
        """
        self.close()
        lines = [line for node in nodes for line in node.lines]
        self._sockets = Sockets([line.interface for line in lines], bypass=bypass)
        self.live = v.make_live(self.store, len(lines))
        queues = [
            0 if node.is_host else make_port_queues(self.store, line.queue_bytes, line.discipline)
            for node in nodes
            for line in node.lines
        ]
        desks = [index for index, node in enumerate(nodes) if node.cpu_port]
        self._desks = {index: 2 * (len(lines) + i) for i, index in enumerate(desks)}
        self.at = make_network(
            self.store,
            ports=2 * (len(lines) + len(desks)),
            nodes=len(nodes) + len(lines) + len(desks),
            agents=sum(len(node.agents) for node in nodes),
            ring=self._ring,
            bins=BINS,
            seed=self._seed,
        )
        self._fill(nodes, lines, queues)
        for index in desks:
            self._fill_desk(index, nodes[index].cpu_port)
        lay_out_pausing(self.store, self.at, lines, self._sockets.addresses)
        self._start_clock()

    def network(self) -> NetworkState:
        """Return the loop's tables: the nodes' own ports first, in their order."""
        return open_network(self.store.arena, self.at)

    def sockets(self) -> list[dict[str, int]]:
        """Return each line's packet counters of its socket; `overflow`: its ring was full."""
        assert self._sockets is not None
        words = self.store.arena.words
        counters = []
        for number, overflow in enumerate(self._sockets.overflows()):
            row = v.socket_row(words, self.live, number)
            counted = {name: int(words[row + word]) for name, word in _COUNTED.items()}
            counters.append({**counted, "overflow": overflow})
        return counters

    def pauses(self) -> list[int]:
        """Return the number of times that each port asked the other end to pause a class."""
        return asked(self.store.arena, self.at)

    def replace_switch(self, index: int, switch: Switch | None) -> None:
        """Send a node's packets through another switch from now on."""
        _fill_switch(self.network(), index, switch)

    def inject(self, index: int, data: bytes) -> None:
        """Let a controller's packet arrive at a switch, by its CPU port.

        Raises:
            ConfigError: If it is too long.
        """
        if len(data) > self.store.arena.words[HEAD_BYTES]:
            most = int(self.store.arena.words[HEAD_BYTES])
            raise ConfigError(
                f"packet_out: at most {format_count(most, 'byte')} with its header, got {len(data)}"
            )
        if lacks_room(self.store.arena, self.at) == NEEDS_ROOM:
            make_room(self.store, self.at)
        arena = self.store.arena
        packet = write_packet(arena, data)
        push_packet(arena.words, self.at, self.now_ps, ARRIVAL, self._desks[index], packet)

    def take_packets(self) -> list[tuple[int, bytes]]:
        """Return the packets to controllers from switches, as (index of the switch, bytes)."""
        arena = self.store.arena
        packets = []
        for report in take_completions(arena, self._ring):
            packets.append((int(arena.words[report.agent + HOST]), read_packet(arena, report.a)))
            free_packet(arena, report.a)
        return packets

    @property
    def now_ps(self) -> int:
        """The time since the engine was first built."""
        return int(now_of(self.store.arena, self.live))

    @property
    def turn_ps(self) -> int:
        """The time up to which events are handled, unless `serve` returned CAPTURED; none later."""
        return int(self.store.arena.words[self.live + v.TURN_PS])

    def serve(self, until_ps: int) -> int:
        """Serve until agents report, time is up, or a thread asks; return the reason."""
        assert self._sockets is not None
        while True:
            reason = serve(self.store.arena, self.at, self.live, self._sockets.rings, until_ps)
            if reason != NEEDS_ROOM:
                break
            make_room(self.store, self.at)
        self.store.arena.words[self.live + v.ASKED] = 0
        self._sockets.rest()
        return int(reason)

    def ask(self) -> None:
        """Have `serve` return soon; for other threads."""
        if self._sockets is not None:
            self.store.arena.words[self.live + v.ASKED] = 1
            self._sockets.wake()

    def close(self) -> None:
        """Close the sockets; a second call does nothing."""
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None

    def _fill(
        self, nodes: Sequence[LiveNode], lines: Sequence[LinkEnd], queues: Sequence[int]
    ) -> None:
        net = self.network()
        net.state[s.BIN_PS] = BIN_PS
        words, first_agent, number = self.store.arena.words, 0, 0
        for index, node in enumerate(nodes):
            row = net.nodes[index]
            row[s.FIRST_PORT] = number
            if node.is_host:
                row[s.KIND] = s.HOST
                row[s.FIRST_AGENT], row[s.AGENT_COUNT] = first_agent, len(node.agents)
                for agent in node.agents:
                    fill_agent(net.agents[first_agent], agent, index)
                    first_agent += 1
            else:
                _fill_switch(net, index, node.switch)
            for local in range(1, len(node.lines) + 1):
                net.ports[number, s.NODE], net.ports[number, s.LOCAL_PORT] = index, local
                number += 1
        for i, line in enumerate(lines):
            self._fill_line(net, len(lines), i, line)
            net.ports[i, s.QUEUES_AT] = queues[i]
            outside = net.nodes[len(nodes) + i]
            outside[s.KIND], outside[s.INGRESS] = s.OUTSIDE, address_of(emit)
            outside[s.BLOCK_AT] = v.socket_row(words, self.live, i)
            net.ports[len(lines) + i, s.NODE] = len(nodes) + i
        self._fill_sockets(len(lines))
        number_agents(self.store.arena, self.at)

    def _fill_line(self, net: NetworkState, count: int, i: int, line: LinkEnd) -> None:
        own, other = net.ports[i], net.ports[count + i]
        own[s.PEER], other[s.PEER] = count + i, i
        own[s.RATE_BPS], own[s.DELAY_PS] = line.rate_bps, line.delay_ps
        own[s.LOSS] = round(line.loss * s.PROBABILITY_ONE)

    def _fill_desk(self, index: int, cpu_port: int) -> None:
        """Join a switch to a node that stands for its controllers."""
        queues = make_port_queues(self.store, CPU_QUEUE_BYTES, "strict")
        block = self.store.allocate("words", AGENT_WORDS)
        net, number = self.network(), self._desks[index]
        self.store.arena.words[block + COMPLETIONS_AT] = self._ring
        self.store.arena.words[block + HOST] = index
        own, other = net.ports[number], net.ports[number + 1]
        desk = len(net.nodes) - len(self._desks) + list(self._desks).index(index)
        own[s.PEER], other[s.PEER] = number + 1, number
        own[s.NODE], other[s.NODE] = index, desk
        own[s.LOCAL_PORT], own[s.RATE_BPS], own[s.QUEUES_AT] = cpu_port, CPU_RATE_BPS, queues
        net.nodes[index, s.CPU_PORT], net.nodes[index, s.CPU_AT] = cpu_port, number
        net.nodes[desk, s.KIND], net.nodes[desk, s.BLOCK_AT] = s.OUTSIDE, block
        net.nodes[desk, s.INGRESS] = address_of(hand_over)

    def _fill_sockets(self, count: int) -> None:
        assert self._sockets is not None
        words = self.store.arena.words
        poll = words[self.live + v.POLL_AT]
        for i, descriptor in enumerate(self._sockets.descriptors):
            row = v.socket_row(words, self.live, i)
            words[row + v.DESCRIPTOR], words[row + v.PORT] = descriptor, i
            words[poll + i] = descriptor | v.READABLE
        words[poll + count] = self._sockets.wake_descriptor | v.READABLE
        if self._caller is not None:
            words[poll + count + 1] = self._caller | v.READABLE

    def _start_clock(self) -> None:
        """Set time so that it goes on from the first build."""
        if self._start_ps is None:
            self._start_ps = self.now_ps
        self.store.arena.words[self.live + v.START_PS] = self._start_ps


def _fill_switch(net: NetworkState, index: int, switch: Switch | None) -> None:
    row = net.nodes[index]
    if switch is None:
        row[s.KIND], row[s.INGRESS] = s.OUTSIDE, address_of(discard)
        return
    row[s.KIND], row[s.BLOCK_AT] = s.SWITCH, switch.at
    row[s.INGRESS] = address_of(switch.program.ingress)
    row[s.EGRESS] = address_of(switch.program.egress)
