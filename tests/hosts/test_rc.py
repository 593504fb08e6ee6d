"""Two rc agents facing each other over a wire that loses, repeats and reorders."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.arena import Store
from ringleaf.errors import ProtocolError
from ringleaf.headers import ECN_MARKED, IP_TOS_AT
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    Completion,
    make_ring,
    take_completions,
)
from ringleaf.hosts.congestion.control import CNP_GAP_PS
from ringleaf.hosts.congestion.registry import CONTROLLERS, find_controller
from ringleaf.hosts.rc.state import ACKED_PSN, ALLOWED, CONTROL_AT, NEXT_PSN, open_qp
from ringleaf.packets import (
    POOL_FREE,
    POOL_SIZE,
    copy_packet,
    free_packet,
    make_pool,
    open_packet,
    read_packet,
    write_packet,
)
from ringleaf.units import FOREVER_PS, PS_PER_S

MTU = 8
LINE_BPS = 1_000_000_000_000
DELAY_PS = 1000
LINE_GAPS = 24  # preamble, FCS and gap of Ethernet


@dataclass
class Wire:
    """Both ends in one arena; packets fly DELAY_PS unless the wire misbehaves."""

    seed: int = 0
    loss: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    flat: bool = False  # packets arrive as network interfaces give them: all in the head
    cut: float = 0.0  # how many lose their last byte on the way
    window: int = 4
    controller: str = "fixed"
    marks: float = 0.0  # how many meet congestion on the way
    sent: list[bytes] = field(default_factory=list)
    sent_ps: list[int] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.store = Store(1 << 16)
        make_pool(self.store, size=256, head_bytes=128, field_count=8, lane_count=0)
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
            )
            for host in range(2)
        ]
        for end, at in enumerate(self.ends):
            assert rc.add_qp(self.store, at) == 0
            rc.connect_qp(
                self.store,
                at,
                0,
                peer_qp=0,
                macs=(end + 1, 2 - end),
                addresses=(0x0A000001 + end, 0x0A000002 - end),
                source_port=0xC000,
            )
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
        assert rc.post_receive(self.store.arena, self.ends[end], 0, address, size, tag)

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
        assert rc.add_qp(wire.store, at) == number
        rc.connect_qp(
            wire.store,
            at,
            number,
            peer_qp=number,
            macs=(end + 1, 2 - end),
            addresses=(0x0A000001 + end, 0x0A000002 - end),
            source_port=0xC000 + number,
        )


def kinds(wire: Wire) -> list[tuple[int, int]]:
    return [(c.kind, c.b) for c in wire.completions]


def test_message_arrives_and_both_ends_are_told() -> None:
    wire = Wire()
    wire.expect(1, 4096, 100, tag=7)
    wire.post(0, b"gradient" * 5, 0, tag=3)
    wire.run()

    assert wire.store.arena.memory[4096 : 4096 + 40].tobytes() == b"gradient" * 5
    assert kinds(wire) == [(rc.RECEIVED, 7), (rc.SENT, 3)]


def test_frames_are_roce_v2_to_scapy() -> None:
    from scapy.contrib.roce import AETH, BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import split_layers

    split_layers(UDP, BTH, dport=4791)  # our own layers have this port in other tests
    wire = Wire(window=16)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"0123456789", 0, tag=0)
    wire.run()

    packets = [Ether(frame) for frame in wire.sent]
    transports = [BTH(packet[UDP].payload.original) for packet in packets]
    first, _, credit, ack = transports
    assert [transport.opcode for transport in transports] == [0x00, 0x02, 0x11, 0x11]
    assert [transport.psn for transport in transports] == [0, 1, 0xFFFFFF, 1]
    assert bytes(first.payload)[:8] == b"01234567"
    assert (credit[AETH].syndrome, credit[AETH].msn) == (1, 0), "one receive is posted"
    assert (ack[AETH].syndrome, ack[AETH].msn) == (0, 1), "it is used up"
    for packet in packets:
        assert packet[UDP].dport == 4791
        assert packet[IP].len == len(packet) - 14
        chksum = packet[IP].chksum
        del packet[IP].chksum
        assert Ether(bytes(packet))[IP].chksum == chksum


def test_sender_without_credit_waits_and_sends_nothing_twice() -> None:
    """Two messages, one receive: the second message waits for the second receive."""
    wire = Wire()
    wire.expect(1, 4096, 8, tag=0)
    wire.post(0, b"gradient", 0, tag=0)
    wire.post(0, b"tensor..", 64, tag=1)
    wire.run(until_ps=8 * DELAY_PS)
    assert kinds(wire) == [(rc.RECEIVED, 0), (rc.SENT, 0)]

    wire.expect(1, 8192, 8, tag=1)
    wire.run()
    assert kinds(wire)[2:] == [(rc.RECEIVED, 1), (rc.SENT, 1)]
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 0


def test_credit_is_told_when_it_has_doubled() -> None:
    """A sender that knows of two receives would otherwise send two messages per round trip."""
    wire = Wire()
    for tag in range(8):
        wire.expect(1, 4096 + 8 * tag, 8, tag)
        wire.run()
    syndrome_at = 14 + 20 + 8 + 12  # Ethernet, IPv4, UDP, BTH
    codes = [frame[syndrome_at] for frame in wire.sent]
    assert codes == [1, 2, 4, 6]  # for 1, 2, 4 and 8 credits


def test_message_waits_for_a_receive_to_be_posted() -> None:
    wire = Wire()
    wire.post(0, b"early", 0, tag=1)
    wire.run(until_ps=30 * DELAY_PS)
    assert kinds(wire) == []

    wire.expect(1, 4096, 100, tag=2)
    wire.run()
    assert kinds(wire) == [(rc.RECEIVED, 2), (rc.SENT, 1)]
    assert wire.store.arena.memory[4096:4101].tobytes() == b"early"


def test_message_longer_than_its_receive_is_reported_and_writes_nothing_beyond() -> None:
    wire = Wire()
    wire.store.arena.memory[4096:4200] = 0xEE
    wire.expect(1, 4096, 10, tag=2)
    wire.post(0, bytes(12), 0, tag=1)
    wire.run()

    assert (rc.OVERRUN, 2) in kinds(wire)
    assert set(wire.store.arena.memory[4106:4200].tolist()) == {0xEE}


def test_lost_packet_is_sent_again_after_a_nak() -> None:
    wire = Wire(window=8)
    wire.loss = 0.5
    draws = iter([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])  # twice, loss, mark, late; then packet 2 is lost
    wire.rng.random = lambda: next(draws, 1.0)  # type: ignore[method-assign]
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(40)), 0, tag=0)
    wire.run()

    assert wire.store.arena.memory[4096:4136].tobytes() == bytes(range(40))
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 4
    assert wire.completions[-1].time_ps == 4 * DELAY_PS, "a NAK brings it back, no timeout"


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


def test_a_lost_tail_is_sent_again_when_a_probe_has_found_it_missing() -> None:
    """Nothing comes after the last packet that would make a NAK.

    The first two are acknowledged after 2 delays; the timeout is the floor then, 10.
    """
    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(24)), 0, tag=0)
    lose(wire, 2)
    wire.run()

    assert wire.store.arena.memory[4096:4120].tobytes() == bytes(range(24))
    assert opcodes(wire, 0) == [0x00, 0x01, 0x02, 0xC0, 0x02]
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 1
    assert wire.completions[-1].time_ps == (2 + 10 + 2 + 2) * DELAY_PS


def test_a_probe_whose_answer_is_lost_is_followed_by_one_after_twice_the_time() -> None:
    """RFC 6298, 5.5; and what has arrived is never sent again."""
    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"tensor", 0, tag=0)
    lose(wire, 2, 4)  # the acknowledgement, behind that of credit, and the first probe's answer
    wire.run()

    assert opcodes(wire, 0) == [0x04, 0xC0, 0xC0]
    assert [ps for f, ps in zip(wire.sent, wire.sent_ps, strict=True) if f[42] == 0xC0] == [
        20 * DELAY_PS,
        (20 + 40) * DELAY_PS,
    ]
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 0
    assert kinds(wire)[-1] == (rc.SENT, 0)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    held=st.lists(st.integers(0, 3000), min_size=1, max_size=8),
    window=st.integers(1, 9),
)
def test_nothing_is_sent_again_however_long_queues_hold_it(
    sizes: list[int], held: list[int], window: int
) -> None:
    """Packets wait for up to 75 times the first timeout, and stay in order: none is lost."""
    wire = Wire(window=window)
    free_ps = [0, 0]
    times = iter(held * 1000)

    def fly(end: int, packet: int) -> None:
        wire.sent.append(read_packet(wire.store.arena, packet))
        free_ps[end] = max(free_ps[end], wire.now_ps + DELAY_PS) + next(times, 0) * DELAY_PS
        wire.order += 1
        heapq.heappush(wire.flying, (free_ps[end], wire.order, 1 - end, packet))

    wire._fly = fly  # type: ignore[method-assign]
    for tag, size in enumerate(sizes):
        wire.expect(1, 4096 + 64 * tag, 64, tag)
        wire.post(0, bytes(size), 64 * tag, tag)
    wire.run()

    assert [b for kind, b in kinds(wire) if kind == rc.SENT] == list(range(len(sizes)))
    data = [frame for frame in wire.sent if frame[29] == 1 and frame[42] < 0x11]
    assert len(data) == sum(-(-size // MTU) for size in sizes)


def test_a_nak_that_comes_twice_makes_the_sender_go_back_once() -> None:
    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, bytes(range(40)), 0, tag=0)
    lose(wire, 1)
    fly = wire._fly

    def fly_twice(end: int, packet: int) -> None:
        if read_packet(wire.store.arena, packet)[42] == 0x11:
            fly(end, copy_packet(wire.store.arena, packet))
        fly(end, packet)

    wire._fly = fly_twice  # type: ignore[method-assign]
    wire.run()

    assert wire.store.arena.memory[4096:4136].tobytes() == bytes(range(40))
    assert wire.store.arena.words[wire.ends[0] + RETRANSMISSIONS] == 4


def test_a_probe_is_a_packet_without_data_to_scapy() -> None:
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether

    from ringleaf.hosts.rc.layers import BTH, ICRC

    wire = Wire(window=8)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"tensor", 0, tag=0)
    lose(wire, 0)
    wire.run()

    (probe,) = (Ether(frame) for frame in wire.sent if frame[42] == 0xC0)
    assert (probe[BTH].opcode, probe[BTH].psn, probe[BTH].ackreq) == (0xC0, 0, 1)
    assert isinstance(probe[BTH].payload, ICRC)
    assert probe[IP].len == len(probe) - 14


@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=8),
    back=st.lists(st.integers(0, 50), max_size=4),
    seed=st.integers(0, 1 << 30),
    loss=st.sampled_from([0.0, 0.05, 0.3]),
    twice=st.sampled_from([0.0, 0.3]),
    late=st.sampled_from([0.0, 0.3]),
    flat=st.booleans(),
    cut=st.sampled_from([0.0, 0.1]),
    window=st.integers(1, 9),
    controller=st.sampled_from(list(CONTROLLERS)),
    marks=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_messages_arrive_exactly_once_in_order(
    sizes: list[int],
    back: list[int],
    seed: int,
    loss: float,
    twice: float,
    late: float,
    flat: bool,
    cut: float,
    window: int,
    controller: str,
    marks: float,
) -> None:
    wire = Wire(
        seed=seed,
        loss=loss,
        twice=twice,
        late=late,
        flat=flat,
        cut=cut,
        window=window,
        controller=controller,
        marks=marks,
    )
    payload = random.Random(seed)
    expected: dict[int, bytes] = {}
    for end, lengths in enumerate((sizes, back)):
        for tag, length in enumerate(lengths):
            data = payload.randbytes(length)
            source, target = 8192 * end + 64 * tag, 32768 + 8192 * end + 64 * tag
            wire.expect(1 - end, target, 64, tag)
            wire.post(end, data, source, tag)
            expected[target] = data
    wire.run()

    arena = wire.store.arena
    for target, data in expected.items():
        assert arena.memory[target : target + len(data)].tobytes() == data
    for end, lengths in enumerate((sizes, back)):
        sent = [c.b for c in wire.completions if (c.agent, c.kind) == (wire.ends[end], rc.SENT)]
        got = [
            c.b for c in wire.completions if (c.agent, c.kind) == (wire.ends[1 - end], rc.RECEIVED)
        ]
        assert sent == got == list(range(len(lengths)))
    assert arena.words[POOL_FREE] == arena.words[POOL_SIZE], "a packet was leaked"


def test_full_ring_of_requests_is_refused() -> None:
    wire = Wire()
    for tag in range(rc.RING):
        wire.expect(1, 0, 8, tag)
    assert not rc.post_receive(wire.store.arena, wire.ends[1], 0, 0, 8, 0)


def test_bad_window_is_refused() -> None:
    with pytest.raises(ProtocolError, match="rc on h0: mtu and window must be >= 1, got 8, 0"):
        Wire(window=0)


def test_priority_is_in_dscp_of_data_and_acknowledgements_and_checksums_hold() -> None:
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether

    wire = Wire(window=16)
    for end, priority in enumerate((5, 3)):
        rc.set_priority(wire.store.arena, wire.ends[end], 0, priority)
    wire.expect(1, 4096, 100, tag=0)
    wire.post(0, b"0123456789", 0, tag=0)
    wire.run()

    packets = [Ether(frame) for frame in wire.sent]
    assert {(packet[IP].src, packet[IP].tos) for packet in packets} == {
        ("10.0.0.1", 5 << 5 | 2),
        ("10.0.0.2", 3 << 5 | 2),
    }
    for packet in packets:
        chksum = packet[IP].chksum
        del packet[IP].chksum
        assert Ether(bytes(packet))[IP].chksum == chksum


def test_priority_out_of_range_is_refused() -> None:
    wire = Wire()
    with pytest.raises(ProtocolError, match="rc on h0: priority must be 0 to 7, got 8"):
        rc.set_priority(wire.store.arena, wire.ends[0], 0, 8)


@given(
    rate_bps=st.integers(10**8, 10**13),
    size=st.integers(1, 400),
    loss=st.sampled_from([0.0, 0.2]),
    controller=st.sampled_from(sorted(CONTROLLERS)),
)
def test_a_paced_queue_pair_keeps_to_its_rate(
    rate_bps: int, size: int, loss: float, controller: str
) -> None:
    wire = Wire(window=16, loss=loss, controller=controller, marks=0.1)
    rc.set_rate(wire.store.arena, wire.ends[0], [0], rate_bps)
    wire.expect(1, 4096, size, tag=0)
    wire.post(0, bytes(size), 0, tag=0)
    wire.run()

    assert (rc.SENT, 0) in kinds(wire)
    frames = zip(wire.sent, wire.sent_ps, strict=True)
    data = [(len(f), at_ps) for f, at_ps in frames if f[29] == 1 and f[42] < 0x11]
    for (length, at_ps), (_, later_ps) in pairwise(data):
        assert later_ps - at_ps >= 8 * (length + LINE_GAPS) * PS_PER_S // rate_bps


@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=5),
    rate_bps=st.integers(10**9, 10**11),
)
def test_queue_pairs_share_a_rate_in_turn(sizes: list[int], rate_bps: int) -> None:
    wire = Wire(window=64)
    for number in range(1, len(sizes)):
        add_pair(wire, number)
    arena = wire.store.arena
    rc.set_rate(arena, wire.ends[0], range(len(sizes)), rate_bps)
    for number, size in enumerate(sizes):
        assert rc.post_receive(arena, wire.ends[1], number, 0, size, number)
        assert rc.post_send(arena, wire.ends[0], number, 0, size, number, 0)
    wire.run()

    assert sorted(kinds(wire)) == sorted(
        (kind, number) for kind in (rc.SENT, rc.RECEIVED) for number in range(len(sizes))
    )
    frames = zip(wire.sent, wire.sent_ps, strict=True)
    data = [(f, at_ps) for f, at_ps in frames if f[29] == 1 and f[42] < 0x11]
    for (frame, at_ps), (_, later_ps) in pairwise(data):
        gap_ps = 8 * (len(frame) + LINE_GAPS) * PS_PER_S // rate_bps
        assert gap_ps <= later_ps - at_ps <= gap_ps + 1, "or the rate is left unused"
    turn = {int.from_bytes(frame[47:50]) for frame, _ in data[: 2 * len(sizes)]}
    assert len(turn) == len(sizes), "nobody waits for long"


def test_rate_below_zero_is_refused() -> None:
    wire = Wire()
    with pytest.raises(ProtocolError, match="rc on h0: rate_bps must be at least 0, got -1"):
        rc.set_rate(wire.store.arena, wire.ends[0], [0], -1)


@given(priorities=st.lists(st.integers(0, 7), min_size=1, max_size=9), size=st.integers(1, 40))
def test_queue_pairs_send_by_priority_and_in_turn_among_equals(
    priorities: list[int], size: int
) -> None:
    wire = Wire(window=64)
    arena = wire.store.arena
    for number, priority in enumerate(priorities):
        if number:
            add_pair(wire, number)
            arena = wire.store.arena
        rc.set_priority(arena, wire.ends[0], number, priority)
    for number in range(len(priorities)):
        assert rc.post_send(arena, wire.ends[0], number, 0, size, number, 0)

    order = []
    while arena.words[wire.ends[0] + READY]:
        packet = rc.transmit(arena, wire.ends[0], 0, 0)
        if packet >= 0:
            order.append(int.from_bytes(read_packet(arena, packet)[47:50]) - 1)
            free_packet(arena, packet)

    turns = -(-size // MTU)
    levels = sorted(set(priorities), reverse=True)
    members = [[n for n, p in enumerate(priorities) if p == level] for level in levels]
    assert order == [number for same in members for number in same * turns]


def test_notices_tell_of_marks_and_come_at_most_once_per_gap() -> None:
    """RoCEv2's CNPs (annex A17.9.3), which scapy knows; acknowledgements count marks besides."""
    from scapy.contrib.roce import BTH

    wire = Wire(window=16, controller="dctcp", marks=1.0)
    for at in wire.ends:
        arena = wire.store.arena
        arena.words[open_qp(arena, at, 0).state[CONTROL_AT] + CNP_GAP_PS] = 10**9
    wire.expect(1, 4096, 200, tag=0)
    wire.post(0, bytes(200), 0, tag=0)
    wire.run()

    frames = [(frame, BTH(frame[42:])) for frame in wire.sent]
    notices = [(len(frame), bth) for frame, bth in frames if bth.opcode == 0x81]
    assert [(size, bth.becn, bth.dqpn) for size, bth in notices] == [(42 + 12 + 16 + 4, 1, 1)]
    acks = [bth for frame, bth in frames if bth.opcode == 0x11 and frame[29] == 2]
    assert acks[-1].resv6 == 25, "all packets came marked"
    assert [bth.becn for bth in acks] == [int(i > 0) for i in range(len(acks))]
