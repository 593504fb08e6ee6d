"""Two rc agents facing each other over a wire that loses, repeats and reorders."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

import numpy as np

from ringleaf.core.arena import Store
from ringleaf.core.headers import ECN_MARKED, IP_TOS_AT
from ringleaf.core.packets import (
    copy_packet,
    free_packet,
    make_pool,
    open_packet,
    read_packet,
    write_packet,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts import rc
from ringleaf.hosts.agent import READY, TIMER_AT_PS, Completion, make_ring, take_completions
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.hosts.rc.state import ACKED_PSN, ALLOWED, NEXT_PSN, open_qp

MTU = 8
LINE_BPS = 1_000_000_000_000
DELAY_PS = 1000
LINE_GAPS = 24  # preamble, FCS and gap of Ethernet


def end_of(agent: int, end: int, number: int) -> rc.QpEnd:
    """Return an end of the connection between the wire's two queue pairs of a number."""
    macs, addresses = (end + 1, 2 - end), (0x0A000001 + end, 0x0A000002 - end)
    return rc.QpEnd(agent, number, number, macs, addresses, 0xC000 + number)


@dataclass
class Wire:
    """Both ends in one arena; packets fly DELAY_PS unless the wire misbehaves."""

    seed: int = 0
    loss: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    flat: bool = False  # packets arrive as network interfaces give them: all in the head
    cut: float = 0.0  # how many lose their last byte on the way
    takes_cuts: bool = False
    window: int = 4
    controller: str = "fixed"
    marks: float = 0.0  # how many meet congestion on the way
    sent: list[bytes] = field(default_factory=list)
    sent_ps: list[int] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.store = Store(1 << 16)
        make_pool(self.store, size=256, head_bytes=256, field_count=8, lane_count=0)
        self.ring = make_ring(self.store, 1024)
        self.ends = [
            rc.make_rc(
                self.store,
                host=host,
                ring=self.ring,
                mtu=MTU,
                window=self.window,
                min_timeout_ps=10 * DELAY_PS,
                rnr_wait_ps=5 * DELAY_PS,
                takes_cuts=self.takes_cuts,
            )
            for host in range(2)
        ]
        for end, at in enumerate(self.ends):
            assert rc.add_qps(self.store, at) == 0
            rc.connect_qps(self.store, [end_of(at, end, 0)])
            rc.control_qp(
                self.store,
                at,
                0,
                find_controller(self.controller),
                line_bps=LINE_BPS,
                rtt_ps=2 * DELAY_PS,
            )
        self.flying: list[tuple[int, int, int, int]] = []
        self.now_ps = self.order = 0

    def post(self, end: int, data: bytes, address: int, tag: int) -> None:
        self.store.arena.memory[address : address + len(data)] = np.frombuffer(data, np.uint8)
        assert rc.post_send(
            self.store.arena, self.ends[end], 0, address, len(data), tag, self.now_ps
        )

    def expect(self, end: int, address: int, size: int, tag: int) -> None:
        assert rc.post_receive(self.store.arena, self.ends[end], 0, address, size, tag, rc.COPY)

    def _fly(self, end: int, packet: int) -> None:
        self.sent.append(read_packet(self.store.arena, packet))
        self.sent_ps.append(self.now_ps)
        if self.rng.random() < self.twice:
            self._fly(end, copy_packet(self.store.arena, packet))
        if self.rng.random() < self.loss:
            free_packet(self.store.arena, packet)
            return
        if self.rng.random() < self.marks:
            open_packet(self.store.arena, packet).head[IP_TOS_AT] |= ECN_MARKED
        packet = self._arrive(packet)
        late = self.rng.randrange(20 * DELAY_PS) if self.rng.random() < self.late else 0
        self.order += 1
        heapq.heappush(self.flying, (self.now_ps + DELAY_PS + late, self.order, 1 - end, packet))

    def _arrive(self, packet: int) -> int:
        """Return the packet as the peer gets it."""
        cut = self.cut > 0 and self.rng.random() < self.cut
        if not (self.flat or cut):
            return packet
        data = read_packet(self.store.arena, packet)
        free_packet(self.store.arena, packet)
        return write_packet(self.store.arena, data[:-5] if cut else data + bytes(3))

    def _is_data(self, packet: int) -> bool:
        return read_packet(self.store.arena, packet)[42] < 0x11

    def _drain(self) -> None:
        arena = self.store.arena
        for end, at in enumerate(self.ends):
            while arena.words[at + READY]:
                packet = rc.transmit(arena, at, 0, self.now_ps)
                state = open_qp(arena, at, 0).state
                before = state[NEXT_PSN] - state[ACKED_PSN]
                assert packet < 0 or before <= max(state[ALLOWED], 1) or not self._is_data(packet)
                if packet >= 0:
                    self._fly(end, packet)
        self.completions += take_completions(arena, self.ring)

    def run(self, until_ps: int = FOREVER_PS) -> None:
        arena = self.store.arena
        self._drain()
        while True:
            timers = [int(arena.words[at + TIMER_AT_PS]) for at in self.ends]
            arrival = self.flying[0][0] if self.flying else FOREVER_PS
            now = min(*timers, arrival)
            if now >= until_ps:
                return
            self.now_ps = now
            if arrival == now:
                _, _, end, packet = heapq.heappop(self.flying)
                rc.receive(arena, self.ends[end], packet, now)
                free_packet(arena, packet)
            else:
                rc.fire_timer(arena, self.ends[timers.index(now)], 0, now)
            self._drain()


def add_pair(wire: Wire, number: int) -> None:
    """One more queue pair between the two, of this number on both."""
    for end, at in enumerate(wire.ends):
        assert rc.add_qps(wire.store, at) == number
        rc.connect_qps(wire.store, [end_of(at, end, number)])


def kinds(wire: Wire) -> list[tuple[int, int]]:
    return [(c.kind, c.b) for c in wire.completions]


def lose(wire: Wire, *numbers: int) -> None:
    """Let the wire lose the packets that are sent as these, counted from 0."""
    fly = wire._fly

    def fly_or_not(end: int, packet: int) -> None:
        if len(wire.sent) in numbers:
            wire.sent.append(read_packet(wire.store.arena, packet))
            wire.sent_ps.append(wire.now_ps)
            free_packet(wire.store.arena, packet)
        else:
            fly(end, packet)

    wire._fly = fly_or_not  # type: ignore[method-assign]


def opcodes(wire: Wire, end: int) -> list[int]:
    """Of what one end has sent."""
    return [frame[42] for frame in wire.sent if frame[29] == end + 1]
