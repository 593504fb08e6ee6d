"""The parts of the event loop, a step at a time: links, hosts, switches, room; by hand.

Everything here runs as plain Python, compiled or not: handlers are Python's functions, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringleaf.networks.endpoints.driver as d
import ringleaf.networks.virtual.pfc.charges as pfc_charges
import ringleaf.networks.virtual.pfc.frames as pfc_frames
import ringleaf.networks.virtual.pfc.handling as pfc_handling
import ringleaf.networks.virtual.pfc.hosts as pfc_hosts
import ringleaf.networks.virtual.pfc.layout as pfc
import ringleaf.networks.virtual.pfc.switches as pfc_switches
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Store
from ringleaf.core.headers import IP_TOS_AT
from ringleaf.core.heap import (
    CAPACITY,
    COUNT,
    LAST_OWN,
    OWN,
    first_time_ps,
    make_heap,
    order_at,
    push_event,
    word_of,
)
from ringleaf.core.packets import (
    AFTER,
    DUE_WORD,
    ENQUEUED_PS,
    FIELD_COUNT,
    IN_PORT,
    MARK,
    OUTBOX_AT,
    OUTBOX_ROWS,
    OWNER,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    PHVS_FREE,
    PLACE,
    POOL_FREE,
    TAIL_LEN,
    TWIN,
    fields_of,
    make_pool,
    open_packet,
    read_packet,
    row_of,
    take_phv,
    write_packet,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import PAUSED as AGENT_PAUSED
from ringleaf.hosts.agent import READY, TIMER_AT_PS, make_agent
from ringleaf.networks.virtual import crossing, lines, loop, stations
from ringleaf.networks.virtual.events import AGAIN, ARRIVAL, CLONED, IDLE, TIMER
from ringleaf.networks.virtual.room import EVENTS_AT_ONCE
from ringleaf.switches.engine import layout
from ringleaf.switches.engine.disciplines import make_port_queues
from ringleaf.switches.engine.queues import (
    BYTES,
    CAPACITY_BYTES,
    DROPPED,
    LENGTHS,
    PACKETS,
    make_queues,
    push,
)

GBPS = 10**9
HOST_PORT, FIRST_SWITCH_PORT, CPU_PORT = 0, 1, 4
HOST, SWITCH = 0, 1
ALWAYS = s.PROBABILITY_ONE
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
run: Callable[[Arena, int, int], int] = getattr(loop.run, "function", loop.run)

Handler = Callable[[Arena, int, int, int], int]
serve_nic: Handler = getattr(pfc_hosts.serve, "function", pfc_hosts.serve)
handle_with_pfc: Handler = getattr(pfc_handling.handle, "function", pfc_handling.handle)


Address = Callable[[Handler], int]


class Net:
    """A host with port 0, and a switch with ports 1 to 3 and a port to its CPU, number 4.

    The host and the switch's first port face each other; so do the second and the third.
    """

    def __init__(self, packets: int = 2 * OUTBOX_ROWS, agents: int = 2) -> None:
        self.store = Store(1 << 12)
        make_pool(self.store, size=packets, head_bytes=128, field_count=32, lane_count=0)
        ring = self.store.allocate("words", 16)
        self.at = s.make_network(
            self.store, ports=5, nodes=2, agents=agents, ring=ring, bins=4, seed=1, owners=2
        )
        self.queues = [make_queues(self.store, 1 << 20) for _ in range(4)]
        self.block = self.store.allocate("words", 64)
        self.agents = [
            make_agent(self.store, 0, host=0, ring=ring, udp_ports=(100 * n, 100 * n + 9))
            for n in range(1, agents + 1)
        ]
        net = self.net
        net.state[s.BIN_PS] = 10**15
        net.ports[:, s.RATE_BPS] = 10 * GBPS
        net.ports[:, s.DELAY_PS] = 7000
        net.ports[:, s.PEER] = [1, 0, 3, 2, 4]
        net.ports[:, s.NODE] = [HOST, SWITCH, SWITCH, SWITCH, SWITCH]
        net.ports[1:, s.LOCAL_PORT] = [1, 2, 3, 510]
        net.ports[1:, s.QUEUES_AT] = self.queues
        net.nodes[:, s.KIND] = s.HOST, s.SWITCH
        net.nodes[SWITCH, [s.BLOCK_AT, s.FIRST_PORT]] = self.block, FIRST_SWITCH_PORT
        net.nodes[SWITCH, [s.CPU_PORT, s.CPU_AT, s.PASS_PS]] = 510, CPU_PORT, 90
        net.nodes[HOST, s.AGENT_COUNT] = agents
        net.agents[:, s.AGENT_AT] = self.agents
        self.words[self.block + layout.PORT_COUNT] = 3
        self.heap = int(self.words[self.at + s.HEAP_AT])

    @property
    def net(self) -> s.NetworkState:
        return s.open_network(self.store.arena, self.at)

    @property
    def arena(self) -> Arena:
        return self.store.arena

    @property
    def words(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.store.arena.words

    def packet(self, size: int = 100) -> int:
        packet = write_packet(self.arena, bytes(range(size)))
        take_phv(self.arena, packet)
        at = fields_of(self.words, packet)
        self.arena.fields[at : at + int(self.words[FIELD_COUNT])] = 0
        return packet

    def row(self, packet: int, column: int) -> int:
        return int(self.words[row_of(self.words, packet) + column])

    def field(self, packet: int, field: int) -> int:
        return int(self.arena.fields[fields_of(self.words, packet) + field])

    def events(self) -> list[tuple[int, int, int]]:
        """Take all events: time, kind and index."""
        found = []
        while self.words[self.heap + COUNT]:
            time_ps = int(first_time_ps(self.words, self.heap))
            event = int(lines.take_event(self.words, self.at))
            found.append((time_ps, event & 7, event >> 3))
        return found


def none(_arena: Arena, _at: int, _packet: int, _now_ps: int) -> int:
    return 0


# Links.


@pytest.mark.parametrize(
    ("rate_bps", "line_ps"),
    [(10 * GBPS, 99_200), (3 * GBPS, 330_667), (992 * GBPS, 1000)],
)
def test_a_frame_is_on_the_line_until_its_last_bit(rate_bps: int, line_ps: int) -> None:
    """100 bytes with FCS, preamble and gap are 992 bits; parts of a picosecond count whole."""
    net = Net()
    net.net.ports[HOST_PORT, [s.RATE_BPS, s.OUTWARD_PS]] = rate_bps, 50
    packet = net.packet()
    net.words[row_of(net.words, packet) + OWNER] = 1
    lines.send(net.arena, net.at, HOST_PORT, packet, 1000)
    port = net.net.ports[HOST_PORT]
    assert port[s.BUSY_UNTIL_PS] == 1000 + line_ps
    assert (port[s.TX_BYTES], port[s.TX_PACKETS], port[s.LOST]) == (124, 1, 0)
    assert net.net.bins[:, 0].tolist() == [0, 124, *8 * [0]]
    assert net.row(packet, PLACE) == 1
    assert net.row(packet, DUE_WORD) == word_of(order_at(1, 1), ARRIVAL | packet << 3)
    assert net.arena.own[PHVS_FREE] == 2 * OUTBOX_ROWS  # on a link it needs none
    assert net.events() == [(1000 + line_ps + 7000, ARRIVAL, packet)]


def test_bytes_count_from_when_the_frame_is_on_the_line() -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.OUTWARD_PS] = 30
    net.words[net.at + s.BIN_PS] = 20
    lines.send(net.arena, net.at, HOST_PORT, net.packet(), 5)
    assert net.net.bins[0].tolist() == [0, 124, 0, 0]


def test_a_lost_packet_is_counted_and_free_again() -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.LOSS] = ALWAYS
    free = net.arena.own[POOL_FREE]
    lines.send(net.arena, net.at, HOST_PORT, net.packet(), 0)
    assert net.net.ports[HOST_PORT, s.LOST] == 1
    assert net.arena.own[POOL_FREE] == free
    assert net.events() == []


@pytest.mark.parametrize(("word", "count"), [(s.DUPLICATE, 2), (s.REORDER, 1)])
def test_duplicates_and_late_packets_are_late_by_up_to_the_jitter(word: int, count: int) -> None:
    """Of 200, some are late by 0 and some by 3 ps, of 3 at most, and nothing is later."""
    net = Net()
    net.words[net.at + word] = ALWAYS
    net.words[net.at + s.JITTER_PS] = 3
    late = set[int]()
    for number in range(200):
        net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = 0
        packet = net.packet()
        lines.send(net.arena, net.at, HOST_PORT, packet, 10**6 * number)
        found = net.events()
        assert len(found) == count
        due_ps = 10**6 * number + 99_200 + 7000
        times = [time_ps - due_ps for time_ps, _, index in found if count == 1 or index != packet]
        late.add(*times)
        if count == 2:
            assert [time_ps for time_ps, _, index in found if index == packet] == [due_ps]
    assert late == {0, 1, 2, 3}


def test_what_cannot_happen_draws_nothing_and_shares_are_of_53_bits() -> None:
    net = Net()
    random = net.arena.fields[int(net.words[net.at + s.RANDOM_AT]) :][:1]
    before = int(random[0])
    assert not lines.happens(random, 0)
    assert int(random[0]) == before
    share = int(lines.draw(random))
    for more, is_less in ((0, False), (1, True)):
        random[0] = before
        assert bool(lines.happens(random, share + more)) is is_less
    draws = [int(lines.draw(random)) for _ in range(2000)]
    assert 0 <= min(draws) < s.PROBABILITY_ONE / 100
    assert s.PROBABILITY_ONE * 0.99 < max(draws) < s.PROBABILITY_ONE
    assert all(lines.happens(random, ALWAYS) for _ in range(9))
    half = sum(bool(lines.happens(random, ALWAYS // 2)) for _ in range(2000))
    assert 880 < half < 1120


@pytest.mark.parametrize("port", [0, 2, 4])
def test_each_port_has_random_numbers_of_its_own(port: int) -> None:
    """So its losses do not depend on what other ports do."""
    net = Net()
    start = int(net.words[net.at + s.RANDOM_AT])
    states = net.arena.fields[start - 5 : start + 10]
    before = states.copy()
    net.net.ports[port, s.LOSS] = ALWAYS // 2
    lines.send(net.arena, net.at, port, net.packet(), 0)
    assert np.flatnonzero(states != before).tolist() == [5 + port]


def test_a_captured_packet_is_head_payload_and_zeros() -> None:
    """The first bit leaves OUTWARD_PS after the agent gave it away; order is that of sent ones."""
    net = Net()
    rows_at = net.store.allocate("words", 5 * s.CAPTURE_ROW_WORDS)
    bytes_at = net.store.allocate("bytes", 512)
    net.arena.bytes[bytes_at:] = 0xEE
    net.arena.memory[40:43] = 7, 8, 9
    state = net.net.state
    state[[s.CAPTURE_AT, s.CAPTURE_BYTES_AT]] = rows_at, bytes_at
    state[s.CAPTURE_COUNT], state[s.CAPTURE_USED] = 1, 11
    net.net.ports[2, [s.CAPTURE, s.OUTWARD_PS]] = s.CAPTURE_SENT | s.PIN, 50
    packet = net.packet(60)
    row = row_of(net.words, packet)
    net.words[row + PAYLOAD_AT], net.words[row + PAYLOAD_LEN], net.words[row + TAIL_LEN] = 40, 3, 4
    lines.send(net.arena, net.at, 2, packet, 1000)
    assert net.net.state[[s.CAPTURE_COUNT, s.CAPTURE_USED]].tolist() == [2, 11 + 67]
    entry = rows_at + s.CAPTURE_ROW_WORDS
    assert net.words[entry : entry + 5].tolist() == [1050, 2, bytes_at + 11, 67, s.SENT]
    got = net.arena.bytes[bytes_at + 10 : bytes_at + 79].tobytes()
    assert got == b"\xee" + bytes(range(60)) + b"\x07\x08\x09" + bytes(4) + b"\xee"
    net.arena.memory[40:43] = 0  # it took its payload along
    assert read_packet(net.arena, packet) == bytes(range(60)) + b"\x07\x08\x09" + bytes(4)


def test_only_what_is_asked_for_is_captured() -> None:
    net = Net()
    net.net.ports[HOST_PORT, s.CAPTURE] = s.CAPTURE_RECEIVED
    packet = net.packet(60)
    net.words[row_of(net.words, packet) + PAYLOAD_LEN] = 3
    lines.send(net.arena, net.at, HOST_PORT, packet, 0)
    assert net.net.state[s.CAPTURE_COUNT] == 0
    assert net.row(packet, PAYLOAD_LEN) == 3  # in the host's memory still


def test_a_busy_port_has_one_event_for_when_it_falls_idle() -> None:
    net = Net()
    net.net.ports[2, s.BUSY_UNTIL_PS] = 500
    for _ in range(2):
        lines.await_idle(net.words, net.at, 2)
    assert net.net.ports[2, s.DRAINING] == 1
    assert net.events() == [(500, IDLE, 2)]


def test_packets_for_another_region_are_left_in_its_box() -> None:
    net = Net()
    boxes = net.store.allocate("words", 4 * s.BOX_WORDS)
    state = net.net.state
    state[[s.MAIL_AT, s.HALF, s.MAIL_PS, s.REGION]] = boxes, 1, FOREVER_PS, 0
    net.net.ports[HOST_PORT, s.PEER_REGION] = 1
    for size, now_ps in ((100, 10**6), (101, 0)):
        net.net.ports[HOST_PORT, s.BUSY_UNTIL_PS] = 0
        lines.send(net.arena, net.at, HOST_PORT, net.packet(size), now_ps)
    box = boxes + 3 * s.BOX_WORDS  # region 1, half 1
    assert net.words[box] == 2
    times = net.words[box + s.BOX_HEADER : box + s.BOX_HEADER + 4 : 2]
    assert times.tolist() == [10**6 + 106_200, 107_000]
    assert net.net.state[s.MAIL_PS] == 107_000
    assert net.events() == []


# Hosts.


def agents_that(net: Net, transmit: Handler, plain_address: Address) -> None:
    for handler in (s.RECEIVE, s.TRANSMIT, s.FIRE_TIMER):
        net.net.agents[:, handler] = plain_address(none)
    net.net.agents[:, s.TRANSMIT] = plain_address(transmit)


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


NIC_PORT = 2


def pausing_nic(net: Net, paused: int) -> tuple[int, int]:
    """Give the host port 2 and the last agent alone; return PFC's row of that port and its queues.

    Args:
        net: The network.
        paused: The port's paused classes, as bits.
    """
    nic = make_port_queues(net.store, 1 << 30, "strict")
    block = net.store.allocate("words", pfc.BLOCK_WORDS)
    rows = net.store.allocate("words", 5 * pfc.ROW_WORDS)
    row = rows + NIC_PORT * pfc.ROW_WORDS
    net.words[net.at + s.PFC_AT], net.words[block + pfc.ROWS_AT] = block, rows
    net.words[row + pfc.NIC_AT], net.words[row + pfc.PAUSED] = nic, paused
    net.net.nodes[HOST, [s.FIRST_PORT, s.FIRST_AGENT, s.AGENT_COUNT]] = NIC_PORT, 1, 1
    return row, nic


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


def udp(port: int, kind: int = 0x0800, protocol: int = 17, size: int = 42) -> bytes:
    """Return an Ethernet, IPv4 and UDP header, as far as it goes."""
    head = bytearray(60)
    head[12:14] = kind.to_bytes(2, "big")
    head[14], head[23] = 0x45, protocol
    head[36:38] = port.to_bytes(2, "big")
    return bytes(head[:size])


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


# Switches.


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
    """Of classes 2, 3 and 4, the first is paused: the others go, one at a time."""
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


# The loop.


def test_a_switchs_own_events_of_an_instant_are_counted(plain_address: Address) -> None:
    """A replay finds by it the place of packets that arrive in that instant."""
    net = Net()
    net.net.nodes[SWITCH, [s.INGRESS, s.EGRESS]] = plain_address(none), plain_address(none)
    node = s.node_row(net.words, net.at, SWITCH)
    clone = net.packet()
    net.words[row_of(net.words, clone) + PLACE] = 2
    again = net.packet()
    net.words[row_of(net.words, again) + PLACE] = 2
    net.arena.fields[fields_of(net.words, again) + layout.EGRESS_SPEC] = layout.DROP_PORT
    counts = []
    for event in (IDLE | 2 << 3, CLONED | clone << 3, AGAIN | again << 3, IDLE | 3 << 3):
        loop.handle(net.arena, net.at, event, 70)
        counts.append(loop.busied(net.words, node, 70))
    assert counts == [1, 2, 3, 4]
    assert net.net.state[s.HOPS] == 1  # the clone and idle ports have not arrived anywhere
    assert loop.busied(net.words, node, 71) == 0
    loop.handle(net.arena, net.at, IDLE | 2 << 3, 71)
    assert loop.busied(net.words, node, 71) == 1


@pytest.mark.parametrize(
    ("kind", "called"),
    [
        (IDLE, ("drain", 2)),
        (TIMER, ("ring_timer", 2)),
        (ARRIVAL, ("cross_switch", 2, 5, 70)),
        (AGAIN, ("cross_switch", 2, 5, 70)),
        (CLONED, ("forward", 3, 70)),
    ],
)
def test_each_kind_of_event_has_its_part(
    kind: int, called: tuple[str, *tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packet 5 is at port 2, which is the switch's; an agent has number 2."""
    net = Net()
    node = s.node_row(net.words, net.at, SWITCH)
    did = []

    def noting(name: str, kept: int) -> Callable[..., int]:
        def note(arena: Arena, at: int, *rest: int) -> int:
            assert arena is net.arena
            assert at == (net.block if name == "send_twin" else net.at)
            did.append((name, *[int(each) for each in rest if each != node][:kept]))
            return 3

        return note

    parts = ("drain", 1), ("ring_timer", 1), ("cross_switch", 3), ("forward", 2), ("send_twin", 1)
    for name, kept in parts:
        monkeypatch.setattr(loop, name, noting(name, kept))
    net.words[row_of(net.words, 5) + PLACE] = 2
    loop.handle(net.arena, net.at, kind | (5 if kind not in (IDLE, TIMER) else 2) << 3, 70)
    assert did == ([("send_twin", 5), called] if kind == CLONED else [called])


@pytest.mark.parametrize(
    ("kind", "node", "busied", "hops", "did"),
    [
        (IDLE, SWITCH, 1, 0, [("drain", 2, 70)]),
        (IDLE, HOST, 0, 0, [("serve", 70)]),
        (TIMER, SWITCH, 0, 0, [("ring_agent", 2, 70), ("serve", 70)]),
        (ARRIVAL, SWITCH, 0, 1, [("cross_switch", 2, 5, 70)]),
        (ARRIVAL, HOST, 0, 1, [("reach_agent", 5, 70), ("serve", 70)]),
        (AGAIN, SWITCH, 1, 1, [("cross_switch", 2, 5, 70)]),
        (CLONED, SWITCH, 1, 0, [("send_twin", 5), ("forward", 3, 70)]),
    ],
)
def test_with_pfc_each_kind_of_event_has_its_part(
    kind: int, node: int, busied: int, hops: int, did: list[tuple[str, *tuple[int, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Packet 5 is at port 2, which is the node's; an agent has number 2."""
    net = Net()
    net.net.ports[2, [s.NODE, s.DRAINING]] = node, 1
    row = s.node_row(net.words, net.at, node)
    called: list[tuple[str, *tuple[int, ...]]] = []

    def noting(name: str) -> Callable[..., int]:
        def note(arena: Arena, at: int, *rest: int) -> int:
            assert arena is net.arena
            assert at == (net.words[row + s.BLOCK_AT] if name == "send_twin" else net.at)
            called.append((name, *[int(each) for each in rest if each != row]))
            return row if name == "ring_agent" else 3

        return note

    parts = ("drain", "serve", "ring_agent", "cross_switch", "reach_agent", "send_twin", "forward")
    for name in parts:
        monkeypatch.setattr(pfc_handling, name, noting(name))
    packet = next(packet for packet in (net.packet() for _ in range(9)) if packet == 5)
    net.words[row_of(net.words, packet) + PLACE] = 2
    handle_with_pfc(net.arena, net.at, kind | (2 if kind in (IDLE, TIMER) else packet) << 3, 70)
    assert called == did
    assert loop.busied(net.words, row, 70) == busied
    assert net.net.state[s.HOPS] == hops
    assert net.net.ports[2, s.DRAINING] == (kind != IDLE)


def test_with_pfc_a_timer_that_is_not_due_serves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    monkeypatch.setattr(pfc_handling, "ring_agent", lambda *_: -1)
    monkeypatch.setattr(pfc_handling, "serve", None)
    handle_with_pfc(net.arena, net.at, TIMER | 1 << 3, 70)


def test_with_pfc_packets_are_captured_and_taken_outside_as_without(
    plain_address: Address,
) -> None:
    """Pause frames, too; the order of a packet is the number of own events of that instant."""
    net = Net()
    rows_at = net.store.allocate("words", 2 * s.CAPTURE_ROW_WORDS)
    bytes_at = net.store.allocate("bytes", 512)
    took = []

    def keep(_arena: Arena, at: int, packet: int, now_ps: int) -> int:
        took.append((at, packet, now_ps))
        return 0

    net.net.state[[s.CAPTURE_AT, s.CAPTURE_BYTES_AT]] = rows_at, bytes_at
    net.net.ports[HOST_PORT, [s.CAPTURE, s.INWARD_PS]] = s.CAPTURE_RECEIVED, 30
    net.net.nodes[HOST, [s.KIND, s.INGRESS, s.BLOCK_AT]] = s.OUTSIDE, plain_address(keep), 77
    loop.note_busied(net.words, s.node_row(net.words, net.at, HOST), 1000)
    packet = net.packet()
    net.words[row_of(net.words, packet) + PLACE] = HOST_PORT
    handle_with_pfc(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert took == [(77, packet, 1000)]
    assert net.words[rows_at : rows_at + 5].tolist() == [970, HOST_PORT, bytes_at, 100, 1]
    net.net.ports[HOST_PORT, s.CAPTURE] = s.CAPTURE_SENT
    handle_with_pfc(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert net.net.state[s.CAPTURE_COUNT] == 1
    assert len(took) == 2


@pytest.mark.parametrize(
    ("goes_on", "waits", "busy_ps", "draining", "drains", "events"),
    [
        (True, 1, 70, 0, [2], []),
        (True, 1, 70, 1, [], []),  # it falls idle at this instant, in an event of its own
        (True, 1, 71, 0, [], [(71, IDLE, 2)]),
        (True, 0, 71, 0, [], []),
        (True, 0, 70, 0, [], []),
        (False, 1, 71, 0, [], []),
        (False, 1, 70, 0, [], []),
    ],
)
def test_a_switch_sends_on_when_a_pause_ends(
    goes_on: bool, waits: int, busy_ps: int, draining: int, drains: list[int],
    events: list[tuple[int, int, int]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    net = Net()
    row, _ = pausing_nic(net, 1 if goes_on else 0)
    net.net.ports[2, [s.BUSY_UNTIL_PS, s.DRAINING]] = busy_ps, draining
    for _ in range(waits):
        push(net.words, net.queues[1], net.packet(), 0)
    drained: list[int] = []
    monkeypatch.setattr(pfc_handling, "drain", lambda _, __, port, ___: drained.append(port))
    told = net.words[pfc.pause_row(net.words, net.at, 3) :]
    told[pfc.UNTOLD], told[pfc.ASKED] = 1, 0 if goes_on else 1
    frame = pfc_frames.make_frame(net.arena, pfc.pause_row(net.words, net.at, 3))
    net.words[row_of(net.words, frame) + PLACE] = 2
    free = net.arena.own[POOL_FREE]
    handle_with_pfc(net.arena, net.at, ARRIVAL | frame << 3, 70)
    assert net.words[row + pfc.PAUSED] == (0 if goes_on else 1)
    assert net.arena.own[POOL_FREE] == free + 1
    assert drained == drains
    assert net.events() == events


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_host_tells_its_agents_of_a_pause_and_sends_when_it_ends(
    goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net()
    row, _ = pausing_nic(net, 1 if goes_on else 0)
    net.net.ports[2, s.NODE] = HOST
    served: list[int] = []
    monkeypatch.setattr(pfc_handling, "serve", lambda _, __, node, now_ps: served.append(now_ps))
    net.words[row + pfc.UNTOLD], net.words[row + pfc.ASKED] = 1, 0 if goes_on else 1
    frame = pfc_frames.make_frame(net.arena, row)
    net.words[row_of(net.words, frame) + PLACE] = 2
    handle_with_pfc(net.arena, net.at, ARRIVAL | frame << 3, 70)
    assert net.words[net.agents[1] + AGENT_PAUSED] == (0 if goes_on else 1)
    assert served == goes_on * [70]


def test_a_hosts_port_that_falls_idle_serves_its_agents(plain_address: Address) -> None:
    net = Net()
    asked: list[int] = []

    def transmit(_arena: Arena, at: int, _packet: int, now_ps: int) -> int:
        asked.append(now_ps)
        return -1

    agents_that(net, transmit, plain_address)
    net.words[net.agents[1] + READY] = 1
    loop.handle(net.arena, net.at, IDLE | HOST_PORT << 3, 70)
    assert asked == [70]


def test_an_idle_port_is_not_waited_for_any_more() -> None:
    net = Net()
    net.net.ports[[HOST_PORT, 2], s.DRAINING] = 1
    for port in (HOST_PORT, 2):
        loop.handle(net.arena, net.at, IDLE | port << 3, 70)
    assert net.net.ports[:, s.DRAINING].tolist() == 5 * [0]
    assert net.net.nodes[HOST, s.BUSIED] == 0


def test_received_packets_are_captured_as_they_came_off_the_line() -> None:
    """INWARD_PS before the host handles them; the order says how many events came before."""
    net = Net()
    rows_at = net.store.allocate("words", s.CAPTURE_ROW_WORDS)
    bytes_at = net.store.allocate("bytes", 512)
    net.net.state[[s.CAPTURE_AT, s.CAPTURE_BYTES_AT]] = rows_at, bytes_at
    net.net.ports[HOST_PORT, [s.CAPTURE, s.INWARD_PS]] = s.CAPTURE_RECEIVED, 30
    packet = net.packet()
    net.words[row_of(net.words, packet) + PLACE] = HOST_PORT
    loop.handle(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert net.net.state[[s.HOPS, s.CAPTURE_COUNT, s.UNCLAIMED]].tolist() == [1, 1, 1]
    assert net.words[rows_at : rows_at + 5].tolist() == [970, HOST_PORT, bytes_at, 100, 0]


def test_places_outside_take_every_packet(plain_address: Address) -> None:
    net = Net()
    took = []

    def keep(_arena: Arena, at: int, packet: int, now_ps: int) -> int:
        took.append((at, packet, now_ps))
        return 0

    net.net.nodes[HOST, [s.KIND, s.INGRESS, s.BLOCK_AT]] = s.OUTSIDE, plain_address(keep), 77
    packet = net.packet()
    net.words[row_of(net.words, packet) + PLACE] = HOST_PORT
    loop.handle(net.arena, net.at, ARRIVAL | packet << 3, 1000)
    assert took == [(77, packet, 1000)]


def test_pausing_handles_all_events_where_it_is_on(plain_address: Address) -> None:
    net = Net()
    took = []

    def handle(_arena: Arena, at: int, event: int, now_ps: int) -> int:
        took.append((at, event, now_ps))
        return 0

    block = net.store.allocate("words", 8)
    net.words[block + s.PFC_HANDLE] = plain_address(handle)
    net.words[net.at + s.PFC_AT] = block
    loop.handle(net.arena, net.at, IDLE | 2 << 3, 9)
    assert took == [(net.at, IDLE | 2 << 3, 9)]


def fill(net: Net, rows: int) -> None:
    net.words[net.heap + COUNT] = rows


def test_there_must_be_room_for_what_one_event_may_lead_to() -> None:
    """Each limit holds to the last packet, event and number."""
    net = Net()
    own, capacity = net.arena.own, int(net.words[net.heap + CAPACITY])
    assert loop.lacks_room(net.arena, net.at) == 0
    for word in (POOL_FREE, PHVS_FREE):
        own[word] = 2 * OUTBOX_ROWS - 1
        assert loop.lacks_room(net.arena, net.at) == loop.NEEDS_ROOM
        own[word] += 1
        assert loop.lacks_room(net.arena, net.at) == 0
    fill(net, capacity - EVENTS_AT_ONCE)
    assert loop.lacks_room(net.arena, net.at) == 0
    fill(net, capacity - EVENTS_AT_ONCE + 1)
    assert loop.lacks_room(net.arena, net.at) == loop.NEEDS_ROOM
    fill(net, 0)
    net.words[net.heap + OWN] = LAST_OWN
    assert loop.lacks_room(net.arena, net.at) == 0
    net.words[net.heap + OWN] += 1
    assert loop.lacks_room(net.arena, net.at) == loop.NEEDS_ROOM


def test_an_agent_is_woken_where_there_is_room_for_what_it_sends() -> None:
    net = Net()
    own, capacity = net.arena.own, int(net.words[net.heap + CAPACITY])
    own[POOL_FREE] = OUTBOX_ROWS
    fill(net, capacity - OUTBOX_ROWS)
    assert loop.lacks_room_to_wake(net.arena, net.at) == 0
    own[POOL_FREE] -= 1
    assert loop.lacks_room_to_wake(net.arena, net.at) == loop.NEEDS_ROOM
    own[POOL_FREE] += 1
    fill(net, capacity - OUTBOX_ROWS + 1)
    assert loop.lacks_room_to_wake(net.arena, net.at) == loop.NEEDS_ROOM


@pytest.mark.parametrize("region", [0, 1])
def test_boxes_of_all_regions_must_have_room(region: int) -> None:
    net = Net()
    boxes = net.store.allocate("words", 4 * s.BOX_WORDS)
    team = net.store.allocate("words", 8)
    net.words[team] = 2  # regions
    net.net.state[[s.TEAM, s.MAIL_AT, s.HALF]] = team, boxes, 1
    box = boxes + (2 * region + 1) * s.BOX_WORDS
    net.words[box] = s.BOX_ROWS - EVENTS_AT_ONCE
    for lacks in (loop.lacks_room, loop.lacks_room_to_wake):
        assert lacks(net.arena, net.at) == 0
    net.words[box] += 1
    for lacks in (loop.lacks_room, loop.lacks_room_to_wake):
        assert lacks(net.arena, net.at) == loop.NEEDS_ROOM


def test_captures_are_emptied_before_an_event_that_might_not_fit() -> None:
    """Room for 10 rows and 1000 bytes, of which an event may take 3 and 300, an agent 2 and 200."""
    net = Net()
    state = net.net.state
    state[[s.CAPTURE_ROWS, s.CAPTURE_ROOM]] = 10, 1000
    state[[s.CAPTURE_RESERVE_ROWS, s.CAPTURE_RESERVE]] = 3, 300
    for lacks, rows, size in ((loop.lacks_room, 3, 300), (loop.lacks_room_to_wake, 2, 200)):
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 10 - rows, 1000 - size
        assert lacks(net.arena, net.at) == 0
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 10 - rows + 1, 1000 - size
        assert lacks(net.arena, net.at) == loop.CAPTURED
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 10 - rows, 1000 - size + 1
        assert lacks(net.arena, net.at) == loop.CAPTURED
        state[[s.CAPTURE_COUNT, s.CAPTURE_USED]] = 0


class Driven(Net):
    """A network with a driver that notes what it is to do, and returns `answers` in turn."""

    def __init__(self, plain_address: Address, *answers: int) -> None:
        super().__init__()
        self.answers, self.did = list(answers), list[int]()
        self.driver = self.store.allocate("words", d.DRIVER_WORDS)
        self.calendar = make_heap(self.store, 8)
        self.words[self.driver + d.DRIVE] = plain_address(self.drive)
        self.words[self.driver + d.RING_AT] = self.words[self.at + s.RING_AT]
        self.words[self.at + s.DRIVER] = self.driver

    def drive(self, _arena: Arena, at: int, what: int, _now_ps: int) -> int:
        assert at == self.driver
        self.did.append(what)
        self.words[self.driver + d.FIRST_CONCERNED] = 0
        self.words[self.calendar + COUNT] = 0
        return self.answers.pop(0)

    def is_due(self, due_ps: int) -> None:
        self.words[self.driver + d.CALENDAR_AT] = self.calendar
        push_event(self.words, self.calendar, due_ps, 0, 0)

    def go_on(self, time_ps: int, until_ps: int = FOREVER_PS) -> int:
        return int(loop.go_on(self.arena, self.at, time_ps, until_ps))


def test_a_driver_does_what_is_pending_and_says_why_it_pauses(
    plain_address: Address,
) -> None:
    net = Driven(plain_address, 0, loop.CAPTURED)
    assert net.go_on(50) == 0
    for answer in (-1, loop.CAPTURED):
        net.words[net.driver + d.FIRST_CONCERNED] = 1
        assert net.go_on(50) == answer
    assert net.did == [d.DISPATCH, d.DISPATCH]


@pytest.mark.parametrize(
    ("due_ps", "time_ps", "until_ps", "reason", "did"),
    [
        (50, 51, 99, -1, [d.ACT]),
        (50, 50, 99, 0, []),  # events of that time come first
        (50, 60, 50, -1, [d.ACT]),
        (50, 60, 49, loop.UNTIL, []),
    ],
)
def test_processors_are_served_before_events_of_a_later_time(
    due_ps: int, time_ps: int, until_ps: int, reason: int, did: list[int],
    plain_address: Address,
) -> None:  # fmt: skip
    net = Driven(plain_address, 0)
    net.is_due(due_ps)
    assert net.go_on(time_ps, until_ps) == reason
    assert net.did == did


@pytest.mark.parametrize("word", [d.FIRST_DONE, d.FAILED, d.OVERLONG, d.WANTED])
def test_python_looks_at_what_the_driver_finds_noteworthy(
    word: int, plain_address: Address
) -> None:
    net = Driven(plain_address, loop.CAPTURED)
    net.words[net.driver + d.FIRST_CONCERNED] = 1
    net.words[net.driver + word] = 1
    assert net.go_on(50) == loop.REPORTED


@given(
    times=st.lists(st.integers(0, 60), max_size=8),
    until_ps=st.one_of(st.integers(0, 60), st.just(FOREVER_PS)),
)
def test_the_loop_handles_events_until_a_time(times: list[int], until_ps: int) -> None:
    """Idle ports of a host without agents: nothing else happens."""
    net = Net(agents=0)
    for number, time_ps in enumerate(times):
        push_event(net.words, net.heap, time_ps, IDLE | HOST_PORT << 3, number + 1)
    reason = run(net.arena, net.at, until_ps)
    left = [time_ps for time_ps in times if time_ps > until_ps]
    assert reason == (loop.UNTIL if left else loop.EMPTY)
    assert net.net.state[s.EVENTS] == len(times) - len(left)
    assert loop.next_time_ps(net.words, net.heap) == min(left, default=FOREVER_PS)


def test_without_a_driver_reports_are_pythons_before_time_goes_on() -> None:
    """Of the instant in which an agent reports, all events are handled first."""
    net = Net(agents=0)
    for number, time_ps in enumerate((10, 10, 20)):
        push_event(net.words, net.heap, time_ps, IDLE | HOST_PORT << 3, number + 1)
    ring = int(net.words[net.at + s.RING_AT])
    assert run(net.arena, net.at, 9) == loop.UNTIL
    net.words[ring] = 1
    assert run(net.arena, net.at, 30) == loop.REPORTED
    assert net.net.state[s.EVENTS] == 0
    net.words[ring] = 0
    assert run(net.arena, net.at, 10) == loop.UNTIL
    assert net.net.state[s.EVENTS] == 2


def test_the_loop_stops_where_room_is_lacking() -> None:
    net = Net(agents=0)
    push_event(net.words, net.heap, 10, IDLE | HOST_PORT << 3, 1)
    net.arena.own[POOL_FREE] -= 1
    assert run(net.arena, net.at, 30) == loop.NEEDS_ROOM
    assert net.net.state[s.EVENTS] == 0
