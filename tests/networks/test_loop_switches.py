"""Switches in the event loop, a step at a time: what leaves, waits, and is dropped."""

from __future__ import annotations

import pytest
from loop_net import CPU_PORT, SWITCH, Address, Net, none, pausing_nic

import ringleaf.networks.virtual.pfc.layout as pfc
import ringleaf.networks.virtual.pfc.switches as pfc_switches
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.packets import (
    ENQUEUED_PS,
    IN_PORT,
    MARK,
    OUTBOX_AT,
    OUTBOX_ROWS,
    PLACE,
    POOL_FREE,
    TWIN,
    fields_of,
    row_of,
)
from ringleaf.networks.virtual import crossing
from ringleaf.networks.virtual.events import AGAIN, ARRIVAL, CLONED, IDLE
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.queues import (
    BYTES,
    CAPACITY_BYTES,
    LENGTHS,
    PACKETS,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


@pytest.mark.parametrize(
    ("local", "number"), [(0, -1), (1, 1), (3, 3), (4, -1), (509, -1), (510, CPU_PORT)]
)
def test_switches_know_their_ports_by_numbers_from_1(local: int, number: int) -> None:
    net = Net()
    node = s.node_row(net.words, net.at, SWITCH)
    assert crossing.find_port(net.words, node, local) == number
    net.words[node + s.CPU_PORT] = 0
    assert crossing.find_port(net.words, node, 0) == -1


WITH_AND_WITHOUT_PFC = pytest.mark.parametrize("pauses", [False, True], ids=["plain", "pfc"])


class Leaving:
    """A switch whose egress returns flags, and notes what it saw; with PFC, nobody is paused."""

    def __init__(self, plain_address: Address, *flags: int, pauses: bool = False) -> None:
        self.net = Net()
        self.pauses = pauses
        if pauses:
            pausing_nic(self.net, 0)
            self.net.words[int(self.net.words[self.net.at + s.PFC_AT]) + pfc.XOFF] = 10**9
        self.flags = list(flags)
        self.saw: list[tuple[int, ...]] = []
        self.twin = self.net.packet()
        self.net.net.nodes[SWITCH, [s.INGRESS, s.EGRESS]] = (
            plain_address(none),
            plain_address(self.egress),
        )

    def egress(self, _arena: Arena, _at: int, packet: int, now_ps: int) -> int:
        net = self.net
        names = (layout.EGRESS_PORT, layout.ENQ_TIMESTAMP, layout.ENQ_QDEPTH,
                 layout.DEQ_TIMEDELTA, layout.DEQ_QDEPTH)  # fmt: skip
        self.saw.append((packet, *(net.field(packet, name) for name in names), now_ps))
        flags = self.flags.pop(0)
        if flags & layout.CLONE:
            net.words[row_of(net.words, packet) + TWIN] = self.twin
        return flags

    def enqueue(self, port: int, now_ps: int, level: int = 0, size: int = 100) -> int:
        net = self.net
        packet = net.packet(size)
        net.words[row_of(net.words, packet) + IN_PORT] = 1
        net.arena.fields[fields_of(net.words, packet) + layout.PRIORITY] = level
        if self.pauses:
            node = s.node_row(net.words, net.at, SWITCH)
            pfc_switches.enqueue(net.arena, net.at, node, port, packet, -1, now_ps)
        else:
            crossing.enqueue(net.arena, net.at, port, packet, now_ps)
        return packet

    def drain(self, port: int, now_ps: int) -> None:
        """Have a port fall idle."""
        net = self.net
        net.net.ports[port, s.DRAINING] = 0
        (pfc_switches if self.pauses else crossing).drain(net.arena, net.at, port, now_ps)
        if self.pauses:  # what is in queues is charged to the port that it came by
            held = int(net.words[net.queues[port - 1] + BYTES])
            assert net.words[pfc.pause_row(net.words, net.at, 1) + pfc.HELD :][:8].sum() == held


@WITH_AND_WITHOUT_PFC
def test_egress_sees_how_long_a_packet_waited_and_behind_how_many(
    pauses: bool, plain_address: Address
) -> None:
    """Depths are of the packet's class: of three in class 2, the second one leaves one behind."""
    leaving = Leaving(plain_address, *3 * [layout.SEND], pauses=pauses)
    net = leaving.net
    net.net.ports[2, s.BUSY_UNTIL_PS] = 5_000_000
    first, second, other = (
        leaving.enqueue(2, 1_000_000 * n, level) for n, level in ((1, 2), (2, 2), (3, 5))
    )
    assert net.row(second, MARK) == 1
    assert net.row(second, ENQUEUED_PS) == 2_000_000
    assert net.words[net.queues[1] + LENGTHS + 5] == 1
    assert net.events() == [(5_000_000, IDLE, 2)]
    for now_ps in (5_000_000, 6_000_000, 7_500_000):
        leaving.drain(2, now_ps)
    assert leaving.saw == [
        (other, 2, 3, 0, 2, 0, 5_000_000),
        (first, 2, 1, 0, 5, 1, 6_000_000),
        (second, 2, 2, 1, 5, 0, 7_500_000),
    ]


@WITH_AND_WITHOUT_PFC
def test_an_idle_port_sends_at_once_and_a_busy_one_when_it_falls_idle(
    pauses: bool, plain_address: Address
) -> None:
    leaving = Leaving(plain_address, layout.SEND, layout.SEND, pauses=pauses)
    net = leaving.net
    net.net.ports[2, s.BUSY_UNTIL_PS] = 1000
    first, second = leaving.enqueue(2, 1000), leaving.enqueue(2, 1000)
    assert [row[0] for row in leaving.saw] == [first]
    assert net.words[net.queues[1] + PACKETS] == 1
    assert net.events() == [(100_200, IDLE, 2), (107_200, ARRIVAL, first)]
    leaving.drain(2, 100_200)
    assert net.events() == [(100_200 + 106_200, ARRIVAL, second)]  # nobody waits any more


@WITH_AND_WITHOUT_PFC
def test_packets_that_egress_drops_do_not_hold_up_others(
    pauses: bool, plain_address: Address
) -> None:
    leaving = Leaving(plain_address, 0, 0, layout.SEND, pauses=pauses)
    net = leaving.net
    net.net.ports[2, s.BUSY_UNTIL_PS] = 1000
    free = net.arena.own[POOL_FREE]
    packets = [leaving.enqueue(2, 0) for _ in range(4)]
    assert len(net.events()) == 1
    leaving.drain(2, 1000)
    assert [row[0] for row in leaving.saw] == packets[:3]
    assert net.arena.own[POOL_FREE] == free - 2
    assert net.events() == [(100_200, IDLE, 2), (107_200, ARRIVAL, packets[2])]


def test_a_packet_without_room_is_dropped(plain_address: Address) -> None:
    leaving = Leaving(plain_address)
    net = leaving.net
    net.words[net.queues[1] + CAPACITY_BYTES] = 150
    net.net.ports[2, s.BUSY_UNTIL_PS] = 1000
    free = net.arena.own[POOL_FREE]
    leaving.enqueue(2, 0)
    leaving.enqueue(2, 0)
    assert net.words[net.queues[1] + BYTES] == 100
    assert net.arena.own[POOL_FREE] == free - 1


@WITH_AND_WITHOUT_PFC
def test_one_event_serves_a_limited_number_of_packets(pauses: bool, plain_address: Address) -> None:
    """Egress drops them all; the rest is served by another event, at the same time."""
    leaving = Leaving(plain_address, *(OUTBOX_ROWS + 1) * [0], pauses=pauses)
    net = leaving.net
    net.net.ports[2, s.BUSY_UNTIL_PS] = 1000
    for _ in range(OUTBOX_ROWS + 1):
        leaving.enqueue(2, 0)
    net.events()
    leaving.drain(2, 1000)
    assert len(leaving.saw) == OUTBOX_ROWS
    assert net.events() == [(1000, IDLE, 2)]


@pytest.mark.parametrize("flags", [layout.SEND, layout.ROUND, 0])
@WITH_AND_WITHOUT_PFC
def test_egress_may_clone_and_send_or_go_round_or_drop(
    pauses: bool, flags: int, plain_address: Address
) -> None:
    """The clone is an event of its own now; a packet that goes round passes ingress first."""
    leaving = Leaving(plain_address, layout.CLONE | flags, pauses=pauses)
    net = leaving.net
    free = net.arena.own[POOL_FREE]
    packet = leaving.enqueue(3, 500)
    clone = (500, CLONED, leaving.twin)
    after = {
        layout.SEND: [(500 + 106_200, ARRIVAL, packet)],
        layout.ROUND: [(500 + 90, AGAIN, packet)],
        0: [],
    }[flags]
    assert net.row(leaving.twin, PLACE) == 3
    assert net.row(packet, PLACE) == {layout.SEND: 2, layout.ROUND: 1}.get(flags, 0)
    assert net.events() == [clone, *after]
    assert net.arena.own[POOL_FREE] == free - bool(flags)


@WITH_AND_WITHOUT_PFC
def test_packets_go_where_the_outbox_says(pauses: bool, plain_address: Address) -> None:
    flags = layout.SEND, layout.CLONE | layout.ROUND
    leaving = Leaving(plain_address, *flags, pauses=pauses)
    net = leaving.net
    outs = [2, 9, layout.AGAIN_PORT, layout.ROUND_PORT]
    packets = [net.packet() for _ in outs]
    outbox = int(net.arena.own[OUTBOX_AT])
    for row, (packet, out) in enumerate(zip(packets, outs, strict=True)):
        net.words[row_of(net.words, packet) + IN_PORT] = 1 + row % 3
        net.words[outbox + 2 * row : outbox + 2 * row + 2] = packet, out
    free = net.arena.own[POOL_FREE]
    node = s.node_row(net.words, net.at, SWITCH)
    forward = pfc_switches.forward if pauses else crossing.forward
    forward(net.arena, net.at, node, 4, 1000)
    assert leaving.saw[1][:2] == (packets[3], layout.ROUND_PORT)
    assert net.row(packets[2], PLACE) == 3
    assert net.row(leaving.twin, PLACE) == 1
    assert net.events() == [
        (1000, CLONED, leaving.twin),
        (1090, AGAIN, packets[2]),
        (1090, AGAIN, packets[3]),
        (107_200, ARRIVAL, packets[0]),
    ]
    assert net.arena.own[POOL_FREE] == free + 1  # there is no port 9


@WITH_AND_WITHOUT_PFC
def test_depths_are_noted_as_packets_come_and_before_they_leave(
    pauses: bool, plain_address: Address
) -> None:
    """In bins of 1 ns, of which the network has 4."""
    leaving = Leaving(plain_address, layout.SEND, pauses=pauses)
    net = leaving.net
    s.watch_queues(net.store, net.at)
    net.net.state[s.QUEUE_BIN_PS] = 1000
    net.net.ports[2, s.BUSY_UNTIL_PS] = 3000
    leaving.enqueue(2, 0, level=1, size=60)
    leaving.enqueue(2, 1500, level=6)
    leaving.drain(2, 3000)
    bins = net.net.queue_bins[2 * 8 : 3 * 8]
    assert bins[1].tolist() == [60, 60, 0, 60]
    assert bins[6].tolist() == [0, 100, 0, 100]


def test_copies_are_charged_once_until_the_last_has_left(plain_address: Address) -> None:
    """A packet for two busy ports, and a shorter one behind it; 100 and 60 bytes came by port 1."""
    leaving = Leaving(plain_address, *3 * [layout.SEND], pauses=True)
    net = leaving.net
    net.net.ports[[2, 3], s.BUSY_UNTIL_PS] = 500
    outbox, outs = int(net.arena.own[OUTBOX_AT]), ((100, 2), (100, 3), (60, 3))
    for row, (size, out) in enumerate(outs):
        packet = net.packet(size)
        net.words[row_of(net.words, packet) + IN_PORT] = 1
        net.words[outbox + 2 * row : outbox + 2 * row + 2] = packet, out
    pfc_switches.forward(net.arena, net.at, s.node_row(net.words, net.at, SWITCH), 3, 0)
    held = net.words[pfc.pause_row(net.words, net.at, 1) + pfc.HELD :][:1]
    peak = net.words[pfc.pause_row(net.words, net.at, 1) + pfc.PEAKS :][:1]
    counts = [int(held[0])]
    for port, now_ps in ((3, 500), (2, 500), (3, 10**9)):
        pfc_switches.drain(net.arena, net.at, port, now_ps)
        counts.append(int(held[0]))
    assert counts == [160, 160, 60, 0]
    assert peak[0] == 160


@pytest.mark.parametrize(
    ("busy_ps", "frames", "events"),
    [
        (500, 1, [(500 + 67_200, IDLE, 2), (500 + 67_200 + 7000, ARRIVAL)]),
        (501, 0, [(501, IDLE, 2)]),
    ],
)
@pytest.mark.parametrize("waits", [0, 1])
def test_pause_frames_overtake_what_waits_but_not_what_is_on_the_line(
    waits: int, busy_ps: int, frames: int, events: list[tuple[int, ...]], plain_address: Address
) -> None:
    leaving = Leaving(plain_address, pauses=True)
    net = leaving.net
    net.net.ports[2, s.BUSY_UNTIL_PS] = busy_ps
    if waits:
        leaving.enqueue(2, 0)
    net.events()
    net.net.ports[2, s.DRAINING] = 0
    net.words[pfc.pause_row(net.words, net.at, 2) + pfc.UNTOLD] = 1
    pfc_switches.drain(net.arena, net.at, 2, 500)
    assert net.net.ports[2, s.TX_PACKETS] == frames
    assert net.words[net.queues[1] + PACKETS] == waits
    found = [event[:3] if event[1] == IDLE else event[:2] for event in net.events()]
    assert found == (events if waits or not frames else events[1:])


def test_a_port_waits_for_nothing_if_all_that_it_has_is_paused(plain_address: Address) -> None:
    """Class 2 is paused: classes 3 and 4 go, one packet at a time."""
    leaving = Leaving(plain_address, *2 * [layout.SEND], pauses=True)
    net = leaving.net
    net.net.ports[2, s.BUSY_UNTIL_PS] = 500
    packets = [leaving.enqueue(2, 0, level) for level in (2, 3, 4)]
    net.words[pfc.pause_row(net.words, net.at, 2) + pfc.PAUSED] = 1 << 2
    net.events()
    for now_ps, is_more in ((500, True), (10**6, False)):
        leaving.drain(2, now_ps)
        kinds = [kind for _, kind, _ in net.events()]
        assert kinds == ([IDLE, ARRIVAL] if is_more else [ARRIVAL])
    assert [row[0] for row in leaving.saw] == packets[:0:-1]
    assert net.words[net.queues[1] + PACKETS] == 1
