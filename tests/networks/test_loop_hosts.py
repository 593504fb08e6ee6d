"""Hosts in the event loop, a step at a time: who sends, who waits, whom timers ring for."""

from __future__ import annotations

import numpy as np
import pytest
from loop_net import (
    HOST,
    HOST_PORT,
    NIC_PORT,
    SWITCH,
    Address,
    Handler,
    Net,
    agents_that,
    none,
    pausing_nic,
    udp,
)

import ringleaf.networks.virtual.pfc.charges as pfc_charges
import ringleaf.networks.virtual.pfc.frames as pfc_frames
import ringleaf.networks.virtual.pfc.hosts as pfc_hosts
import ringleaf.networks.virtual.pfc.layout as pfc
import ringleaf.networks.virtual.pfc.switches as pfc_switches
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.headers import IP_TOS_AT
from ringleaf.core.packets import (
    AFTER,
    ENQUEUED_PS,
    IN_PORT,
    MARK,
    OWNER,
    POOL_FREE,
    open_packet,
    read_packet,
    row_of,
    write_packet,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import PAUSED as AGENT_PAUSED
from ringleaf.hosts.agent import READY, TIMER_AT_PS
from ringleaf.networks.virtual import lines, stations
from ringleaf.networks.virtual.events import ARRIVAL, IDLE, TIMER
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.queues import (
    DROPPED,
    LENGTHS,
    PACKETS,
    push,
)

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


serve_nic: Handler = getattr(pfc_hosts.serve, "function", pfc_hosts.serve)


def test_agents_with_something_to_send_take_turns(plain_address: Address) -> None:
    net = Net(agents=3)
    asked = []

    def transmit(_arena: Arena, at: int, packet: int, now_ps: int) -> int:
        assert (packet, now_ps) == (0, 0)
        asked.append(net.agents.index(at))
        return net.packet()

    agents_that(net, transmit, plain_address)
    net.net.agents[:, s.AGENT_OWNER] = 1
    net.words[np.array(net.agents) + READY] = 1, 0, 1
    packets = [stations.take_packet(net.arena, net.at, s.node_row(net.words, net.at, HOST), 0)
               for _ in range(4)]  # fmt: skip
    assert asked == [0, 2, 0, 2]
    assert [net.row(packet, OWNER) for packet in packets] == [1, 1, 1, 1]


@pytest.mark.parametrize(("partition", "owner"), [(0x8003, 3), (0x0003, 3), (0xFFFF, 0x7FFF)])
def test_a_packet_s_partition_says_who_owns_it_where_its_agent_has_many(
    partition: int, owner: int, plain_address: Address
) -> None:
    """Whether it is a full member's or not."""
    net = Net()

    def transmit(arena: Arena, _at: int, _packet: int, _now_ps: int) -> int:
        packet = net.packet()
        open_packet(arena, packet).head[44:46] = divmod(partition, 256)
        return packet

    agents_that(net, transmit, plain_address)
    net.words[net.agents[0] + READY] = 1
    packet = stations.take_packet(net.arena, net.at, s.node_row(net.words, net.at, HOST), 0)
    assert net.row(packet, OWNER) == owner


def test_agents_that_have_nothing_after_all_are_passed_over(
    plain_address: Address,
) -> None:
    """Their timers count; the port stays idle, and nobody comes back."""
    net = Net()

    def transmit(arena: Arena, at: int, _packet: int, _now_ps: int) -> int:
        arena.words[at + TIMER_AT_PS] = 400
        arena.words[at + READY] = 0
        return -1

    agents_that(net, transmit, plain_address)
    net.words[np.array(net.agents) + READY] = 1
    stations.serve_agents(net.arena, net.at, s.node_row(net.words, net.at, HOST), 300)
    assert net.net.ports[HOST_PORT, s.TX_PACKETS] == 0
    assert net.events() == [(400, TIMER, 0), (400, TIMER, 1)]


def of_levels(net: Net, levels: list[int]) -> Handler:
    """Return an agent's handler that gives away a packet of each of these priorities."""

    def transmit(arena: Arena, at: int, _packet: int, _now_ps: int) -> int:
        packet = net.packet()
        open_packet(net.arena, packet).head[IP_TOS_AT] = levels.pop(0) << 5
        arena.words[at + READY] = bool(levels)
        return packet

    return transmit


def test_a_nic_keeps_packets_of_paused_classes_64_at_a_time(plain_address: Address) -> None:
    """After these it asks for more in an event of its own, of the same time, and of one only."""
    net = Net(packets=300)
    row, nic = pausing_nic(net, 0b0100_0000)
    agents_that(net, of_levels(net, 200 * [6]), plain_address)
    net.words[net.agents[1] + READY] = 1
    host = s.node_row(net.words, net.at, HOST)
    assert serve_nic(net.arena, net.at, host, 700) == 1
    assert net.words[nic + LENGTHS + 6] == net.words[nic + PACKETS] == 64
    assert net.net.ports[NIC_PORT, s.DRAINING] == 1
    assert serve_nic(net.arena, net.at, host, 700) == 1
    assert net.words[nic + PACKETS] == 128
    assert net.events() == [(700, IDLE, NIC_PORT)]
    assert net.net.ports[NIC_PORT, s.TX_PACKETS] == 0

    net.words[row + pfc.PAUSED] = 0b1011_1111
    assert serve_nic(net.arena, net.at, host, 700) == 1
    assert (net.words[nic + PACKETS], net.net.ports[NIC_PORT, s.TX_PACKETS]) == (127, 1)


@pytest.mark.parametrize("more", [0, 1])
def test_a_nic_sends_the_first_packet_whose_class_goes(plain_address: Address, more: int) -> None:
    """It comes back when the port falls idle, if agents are ready; what is paused stays."""
    net = Net()
    _, nic = pausing_nic(net, 0b0000_0001)
    levels = [0, 0, 7, *more * [1]]
    agents_that(net, of_levels(net, levels), plain_address)
    net.words[net.agents[1] + READY] = 1
    serve_nic(net.arena, net.at, s.node_row(net.words, net.at, HOST), 0)
    assert len(levels) == more
    assert (net.words[nic + PACKETS], net.words[nic + LENGTHS]) == (2, 2)
    assert net.net.ports[NIC_PORT, s.TX_PACKETS] == 1
    kinds = [event[:2] for event in net.events()]
    assert kinds == [*more * [(99_200, IDLE)], (106_200, ARRIVAL)]


def test_a_nic_sends_what_waits_before_it_asks_agents(plain_address: Address) -> None:
    net = Net()
    _, nic = pausing_nic(net, 0b0000_0001)
    agents_that(net, of_levels(net, [7]), plain_address)
    net.words[net.agents[1] + READY] = 1
    net.net.ports[NIC_PORT, s.BUSY_UNTIL_PS] = 500  # it falls idle now
    waits = net.packet()
    push(net.words, nic, waits, 1)
    serve_nic(net.arena, net.at, s.node_row(net.words, net.at, HOST), 500)
    assert net.words[net.agents[1] + READY] == 1
    assert net.events() == [(99_700, IDLE, NIC_PORT), (106_700, ARRIVAL, waits)]


def test_a_nic_with_packets_of_paused_classes_only_waits_for_nothing(
    plain_address: Address,
) -> None:
    net = Net()
    _, nic = pausing_nic(net, 0b0000_0001)
    agents_that(net, none, plain_address)
    host = s.node_row(net.words, net.at, HOST)
    push(net.words, nic, net.packet(), 0)
    serve_nic(net.arena, net.at, host, 0)
    assert net.events() == []
    net.net.ports[NIC_PORT, s.BUSY_UNTIL_PS] = 500
    serve_nic(net.arena, net.at, host, 0)
    assert net.events() == []
    push(net.words, nic, net.packet(), 1)
    serve_nic(net.arena, net.at, host, 0)
    assert net.events() == [(500, IDLE, NIC_PORT)]


def test_a_pause_frame_takes_64_bytes_of_an_idle_line() -> None:
    """With FCS, preamble and gap 84 bytes, 67.2 ns at 10 Gbit/s; it is counted, and captured."""
    net = Net()
    row, _ = pausing_nic(net, 0)
    net.words[row + pfc.ASKED] = 0b0000_1000
    net.words[row + pfc.MAC] = 0x0A0B0C0D0E0F
    pfc_frames.tell(net.arena, net.at, NIC_PORT, 3, 1000)
    port = net.net.ports[NIC_PORT]
    assert port[s.BUSY_UNTIL_PS] == 1000 + 67_200
    assert (port[s.TX_BYTES], port[s.TX_PACKETS]) == (84, 1)
    assert net.net.bins[2 * NIC_PORT].tolist() == [84, 0, 0, 0]  # nobody owns it
    assert (net.words[row + pfc.PAUSES], net.words[row + pfc.UNTOLD]) == (1, 0)
    ((time_ps, kind, packet),) = net.events()
    assert (time_ps, kind) == (1000 + 67_200 + 7000, ARRIVAL)
    frame = read_packet(net.arena, packet)
    assert frame.hex() == (
        "0180c20000010a0b0c0d0e0f880801010008" + "0000" * 3 + "ffff" + "0000" * 17
    )

    pfc_frames.tell(net.arena, net.at, NIC_PORT, 5, 1000)  # when the line is idle again
    assert (net.words[row + pfc.PAUSES], net.words[row + pfc.UNTOLD]) == (1, 1 << 5)
    assert net.net.ports[NIC_PORT, s.TX_PACKETS] == 1
    assert net.events() == [(1000 + 67_200, IDLE, NIC_PORT)]


@pytest.mark.parametrize("number", [0, 1])
def test_copies_of_one_packet_need_no_more_room(number: int) -> None:
    """The one that is in a queue has paid for all, whatever its number; others are dropped, also
    those of another size or class, which no copy has paid for.
    """
    net = Net(packets=8)
    row, _ = pausing_nic(net, 0)
    net.net.ports[[1, 2], s.BUSY_UNTIL_PS] = 500
    packets = [net.packet() for _ in range(8)]
    copy = next(packet for packet in packets if packet == number)
    first, second = (packet for packet in packets if packet > 1 and packet < 4)
    for packet in (copy, first, second):
        net.words[row_of(net.words, packet) + IN_PORT] = 1
    node = s.node_row(net.words, net.at, SWITCH)
    assert push(net.words, net.queues[0], copy, 0)
    pfc_charges.join_ring(net.words, copy, -1)
    assert pfc_switches.enqueue(net.arena, net.at, node, 2, first, copy, 0)
    assert net.words[row - pfc.ROW_WORDS + pfc.HELD] == 0  # of the port that they came by
    assert not pfc_switches.enqueue(net.arena, net.at, node, 2, second, -1, 0)
    for size, level in ((99, 0), (100, 1)):
        other = net.packet(size)
        open_packet(net.arena, other).fields[layout.PRIORITY] = level
        net.words[row_of(net.words, other) + IN_PORT] = 1
        assert not pfc_switches.enqueue(net.arena, net.at, node, 2, other, copy, 0)
    assert net.words[net.queues[1] + PACKETS] == 1


@pytest.mark.parametrize(
    ("busy_ps", "paused", "untold", "waits", "is_queued", "events"),
    [
        (500, 0, 0, 0, False, []),  # the port falls idle now
        (501, 0, 0, 0, True, [(501, IDLE, 2)]),
        (0, 0, 0, 1, True, [(501, IDLE, 2)]),  # another packet is before it
        (0, 0, 0, 4, True, [(501, IDLE, 2)]),
        (0, 0, 4, 0, True, [(501, IDLE, 2)]),  # so is a pause frame
        (0, 0b1000, 0, 0, False, []),  # of another class
        (0, 0b0100, 0, 0, True, []),  # nothing comes until the pause ends
        (0, 0b1000, 0, 8, False, []),  # what waits is of the class that is paused
    ],
)
def test_a_switch_sends_what_no_pause_holds_and_queues_the_rest(
    busy_ps: int, paused: int, untold: int, waits: int, is_queued: bool,
    events: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A packet of class 2; `waits` is the class, as a bit, of one that is in the queue."""
    net = Net()
    row, _ = pausing_nic(net, paused)
    net.words[row + pfc.UNTOLD] = untold
    net.words[int(net.words[net.at + s.PFC_AT]) + pfc.XOFF] = 10**6
    net.net.ports[2, s.BUSY_UNTIL_PS] = busy_ps
    if waits:
        push(net.words, net.queues[1], net.packet(), waits.bit_length() - 1)
    packet = net.packet()
    open_packet(net.arena, packet).fields[layout.PRIORITY] = 2
    net.words[row_of(net.words, packet) + IN_PORT] = 3
    left: list[tuple[int, ...]] = []
    monkeypatch.setattr(pfc_switches, "leave_switch", lambda _, *told: left.append(told))
    node = s.node_row(net.words, net.at, SWITCH)
    assert pfc_switches.enqueue(net.arena, net.at, node, 2, packet, -1, 500) == is_queued
    assert net.words[net.queues[1] + PACKETS] == is_queued + (waits > 0)
    assert left == ([] if is_queued else [(net.at, 2, packet, 500)])
    held = int(net.words[row + pfc.ROW_WORDS + pfc.HELD + 2])
    assert held == (100 * is_queued)
    if is_queued:
        assert net.row(packet, ENQUEUED_PS) == 500
        assert net.row(packet, AFTER) == packet
        assert net.row(packet, MARK) == (waits == 4)
        assert [event[1:] for event in net.events()] == [event[1:] for event in events]


def test_a_switch_drops_what_exceeds_headroom_and_tells_where() -> None:
    net = Net(packets=8)
    row, _ = pausing_nic(net, 0)
    net.words[row - pfc.ROW_WORDS + pfc.HEADROOM] = 99  # of the port that packets come by
    net.words[int(net.words[net.at + s.PFC_AT]) + pfc.XOFF] = 100
    net.net.ports[2, s.BUSY_UNTIL_PS] = 500
    node = s.node_row(net.words, net.at, SWITCH)
    for number in range(2):
        packet = net.packet()
        net.words[row_of(net.words, packet) + IN_PORT] = 1
        free = net.arena.own[POOL_FREE]
        taken = pfc_switches.enqueue(net.arena, net.at, node, 2, packet, -1, 0)
        assert taken == (number == 0)
        assert net.arena.own[POOL_FREE] == free + number
        assert net.words[net.queues[1] + DROPPED] == number
    assert net.words[net.queues[1] + PACKETS] == 1


def test_a_nic_does_not_come_back_to_an_agent_that_has_nothing_after_all(
    plain_address: Address,
) -> None:
    net = Net()
    pausing_nic(net, 0)
    agents_that(net, lambda *_: -1, plain_address)
    net.words[net.agents[1] + READY] = 1
    net.net.ports[NIC_PORT, s.BUSY_UNTIL_PS] = 500
    serve_nic(net.arena, net.at, s.node_row(net.words, net.at, HOST), 500)
    assert net.events() == []


def test_a_hosts_own_agents_are_told_which_classes_are_paused() -> None:
    """Here the second node is a host."""
    net = Net(agents=3)
    pausing_nic(net, 0b0001_0010)
    net.net.nodes[SWITCH, [s.FIRST_AGENT, s.AGENT_COUNT]] = 2, 1
    pfc_hosts.tell_agents(net.words, net.at, NIC_PORT)
    blocks = np.array(net.agents)
    assert net.words[blocks + AGENT_PAUSED].tolist() == [0, 0, 0b0001_0010]
    assert net.words[blocks + READY].tolist() == [0, 0, 1]


@pytest.mark.parametrize(("busy_ps", "is_ready", "events"), [
    (600, 1, [(600, IDLE, HOST_PORT)]),
    (600, 0, []),
    (500, 0, []),
])  # fmt: skip
def test_a_busy_port_is_come_back_to_if_somebody_waits(
    busy_ps: int, is_ready: int, events: list[tuple[int, int, int]]
) -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = busy_ps
    net.words[net.agents[1] + READY] = is_ready
    stations.serve_agents(net.arena, net.at, s.node_row(net.words, net.at, HOST), 500)
    assert net.events() == events


def test_a_port_that_falls_idle_now_serves_the_next_agent(
    plain_address: Address,
) -> None:
    net = Net()
    sent: list[int] = []

    def transmit(arena: Arena, at: int, _packet: int, _now_ps: int) -> int:
        arena.words[at + READY] = 0
        sent.append(net.packet())
        return sent[-1]

    agents_that(net, transmit, plain_address)
    net.net.agents[:, s.AGENT_OWNER] = 1
    net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = 500
    net.words[np.array(net.agents) + READY] = 1
    stations.serve_agents(net.arena, net.at, s.node_row(net.words, net.at, HOST), 500)
    assert net.events() == [(500 + 99_200, IDLE, HOST_PORT), (500 + 106_200, ARRIVAL, sent[0])]


def test_timers_ring_when_they_are_due_and_once(plain_address: Address) -> None:
    """At 400 the agent wants 900 by then, so it is not called; at 900 it is, and wants no more."""
    net = Net()
    rung: list[tuple[int, int]] = []

    def fire(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
        rung.append((net.agents.index(at), now_ps))
        arena.words[at + TIMER_AT_PS] = FOREVER_PS
        return 0

    agents_that(net, none, plain_address)
    net.net.agents[:, s.FIRE_TIMER] = plain_address(fire)
    net.net.agents[:, s.AGENT_NODE] = HOST
    net.words[net.agents[1] + TIMER_AT_PS] = 400
    stations.arm_timer(net.words, net.at, 1, 100)
    stations.arm_timer(net.words, net.at, 1, 100)  # is armed already
    net.words[net.agents[1] + TIMER_AT_PS] = 900
    assert stations.ring_agent(net.arena, net.at, 1, 399) == -1
    assert stations.ring_agent(net.arena, net.at, 1, 400) == s.node_row(net.words, net.at, HOST)
    assert net.net.agents[1, s.TIMER_PS] == 900
    assert rung == []
    assert stations.ring_agent(net.arena, net.at, 1, 900) >= 0
    assert rung == [(1, 900)]
    assert net.net.agents[1, s.TIMER_PS] == FOREVER_PS
    assert net.events() == [(400, TIMER, 1), (900, TIMER, 1)]


def test_a_timer_that_is_over_rings_now() -> None:
    net = Net()
    net.words[net.agents[0] + TIMER_AT_PS] = 50
    stations.arm_timer(net.words, net.at, 0, 100)
    assert net.events() == [(100, TIMER, 0)]


def test_timers_of_an_instant_come_before_all_else() -> None:
    """Whatever was put on the heap first, and whichever numbers agents and ports have."""
    net = Net()
    net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = 400
    lines.await_idle(net.words, net.at, HOST_PORT)
    net.words[net.agents[1] + TIMER_AT_PS] = 400
    stations.arm_timer(net.words, net.at, 1, 0)
    assert net.events() == [(400, TIMER, 1), (400, IDLE, HOST_PORT)]


@pytest.mark.parametrize(("data", "taker"), [
    (udp(100), 0), (udp(109), 0), (udp(200), 1), (udp(209), 1),
    (udp(99), -1), (udp(110), -1), (udp(210), -1),
    (udp(100, kind=0x86DD), -1), (udp(100, protocol=6), -1), (udp(100, size=41), -1),
])  # fmt: skip
def test_packets_reach_the_agent_of_their_udp_port(
    data: bytes, taker: int, plain_address: Address
) -> None:
    net = Net()
    took: list[int] = []

    def receive(arena: Arena, at: int, _packet: int, _now_ps: int) -> int:
        took.append(net.agents.index(at))
        arena.words[at + TIMER_AT_PS] = 900
        return 0

    agents_that(net, none, plain_address)
    net.net.agents[:, s.RECEIVE] = plain_address(receive)
    free = net.arena.own[POOL_FREE]
    stations.reach_host(
        net.arena, net.at, s.node_row(net.words, net.at, HOST), write_packet(net.arena, data), 5
    )
    assert took == ([taker] if taker >= 0 else [])
    assert net.net.state[s.UNCLAIMED] == (taker < 0)
    assert net.arena.own[POOL_FREE] == free
    assert net.events() == [(900, TIMER, number) for number in took]
