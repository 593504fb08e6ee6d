"""The transport a step at a time, by hand: requests, answers, deadlines, notices, priorities.

Parts run as plain Python, compiled or not, and handlers of controllers are Python's functions, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rc_wire import end_of
from scapy.packet import Packet

import ringleaf.hosts.congestion.control as c
import ringleaf.hosts.rc.state as q
from ringleaf.core.arena import Arena, Store
from ringleaf.core.headers import IP_LENGTH_AT, IP_TOS_AT, UDP_LENGTH_AT, get16, put16
from ringleaf.core.packets import HEAD_LEN, allocate_packet, make_pool, open_packet, read_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import ProtocolError
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    PAUSED,
    PROGRESS,
    READY,
    REFUSALS,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    make_ring,
    take_completions,
)
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_FIRST, FIFO_ROOM, FIFO_WORDS, open_fifo
from ringleaf.hosts.rc import congestion, landing, queue, receiver, sender, trimming, wire
from ringleaf.hosts.rc.layers import AETH, BTH, ICRC, HopTelemetry, Telemetry

MTU = 8
LEAST_PS = 1000
RNR_PS = 500

Handler = Callable[[Arena, int, int, int], int]
Address = Callable[[Handler], int]


class Agent:
    """An agent with two connected queue pairs; whoever faces it is the test."""

    def __init__(self, window: int = 64, controller: str = "") -> None:
        self.store = Store(1 << 16)
        make_pool(self.store, size=64, head_bytes=256, field_count=8, lane_count=0)
        self.ring = make_ring(self.store, 1024)
        self.at = rc.make_rc(
            self.store,
            host=0,
            ring=self.ring,
            mtu=MTU,
            window=window,
            min_timeout_ps=LEAST_PS,
            rnr_wait_ps=RNR_PS,
        )
        rc.add_qps(self.store, self.at, 2)
        rc.connect_qps(self.store, [end_of(self.at, 0, 0), end_of(self.at, 0, 1)])
        self.block = 0
        if controller:
            found = find_controller(controller)
            rc.control_qp(self.store, self.at, 0, found, line_bps=10**11, rtt_ps=8000)
            self.block = int(self.qp().state[q.CONTROL_AT])

    @property
    def arena(self) -> Arena:
        return self.store.arena

    def qp(self, number: int = 0) -> q.Qp:
        return q.open_qp(self.arena, self.at, number)

    def word(self, word: int) -> int:
        return int(self.arena.words[self.at + word])

    def control(self, word: int) -> int:
        return int(self.arena.words[self.block + word])

    def post(self, size: int, tag: int = 0, now_ps: int = 0, number: int = 0) -> bool:
        return bool(rc.post_send(self.arena, self.at, number, 64, size, tag, now_ps))

    def send(self, now_ps: int = 0) -> bytes:
        packet = rc.transmit(self.arena, self.at, 0, now_ps)
        return read_packet(self.arena, packet) if packet >= 0 else b""

    def answer(self, psn: int, syndrome: int, done: int = 0, now_ps: int = 0) -> None:
        sender.receive_answer(
            self.arena, self.at, 0, self.qp(), head_of(psn, syndrome, done), now_ps
        )

    def done(self) -> list[tuple[int, int, int]]:
        """Take reports: kind, queue pair and tag."""
        return [(each.kind, each.a, each.b) for each in take_completions(self.arena, self.ring)]


def head_of(psn: int, syndrome: int = 0, done: int = 0, opcode: int = 0x11) -> np.ndarray:
    """Return the head of an answer, as it comes from the peer."""
    head = np.zeros(256, np.uint8)
    head[wire.OPCODE_AT] = opcode
    head[wire.PSN_AT : wire.PSN_AT + 3] = np.frombuffer(psn.to_bytes(3, "big"), np.uint8)
    head[wire.SYNDROME_AT] = syndrome
    number = np.frombuffer(done.to_bytes(3, "big"), np.uint8)
    head[wire.SYNDROME_AT + 1 : wire.SYNDROME_AT + 4] = number
    put16(head, UDP_LENGTH_AT, 8 + 12 + 4 + 4)
    return head


# Limits.


@pytest.mark.parametrize(
    ("mtu", "window", "is_right"), [(1, 1, True), (0, 1, False), (1, 0, False)]
)
def test_packets_and_windows_have_one_of_each_at_least(
    mtu: int, window: int, is_right: bool
) -> None:
    store = Store(1 << 12)
    make_pool(store, size=4, head_bytes=256, field_count=8, lane_count=0)
    told: dict[str, Any] = {"host": 0, "ring": make_ring(store, 8)}
    told |= {"min_timeout_ps": 1, "rnr_wait_ps": 1}
    if is_right:
        at = rc.make_rc(store, mtu=mtu, window=window, **told)
        assert store.arena.words[at + q.MTU] == 1
    else:
        with pytest.raises(ProtocolError, match=f"must be >= 1, got {mtu}, {window}"):
            rc.make_rc(store, mtu=mtu, window=window, **told)


@pytest.mark.parametrize("rate_bps", [0, 1])
def test_a_rate_may_be_0_for_none(rate_bps: int) -> None:
    agent = Agent()
    rc.set_rate(agent.arena, agent.at, [0], rate_bps)
    assert agent.qp().state[q.RATE_BPS] == rate_bps
    with pytest.raises(ProtocolError, match="must be at least 0, got -1"):
        rc.set_rate(agent.arena, agent.at, [0], -1)


# Requests.


def test_a_full_ring_of_requests_takes_no_more() -> None:
    """There are 256 in each direction."""
    assert q.RING == 256
    agent = Agent()
    assert all(agent.post(3 * MTU) for _ in range(q.RING))
    assert not agent.post(MTU)
    assert agent.qp().state[[q.SENDS_END, q.POSTED_PSN]].tolist() == [q.RING, 3 * q.RING]
    for tag in range(q.RING):
        assert rc.post_receive(agent.arena, agent.at, 0, 64, MTU, tag, rc.COPY)
    assert not rc.post_receive(agent.arena, agent.at, 0, 64, MTU, 0, rc.COPY)
    assert agent.qp().state[q.RECEIVES_END] == q.RING


@pytest.mark.parametrize(("size", "packets"), [(0, 1), (1, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_a_message_has_at_least_one_packet(size: int, packets: int) -> None:
    assert sender.packets_of(size, MTU) == packets
    agent = Agent()
    agent.post(size)
    assert agent.qp().state[q.POSTED_PSN] == packets


def test_messages_are_cut_into_packets_that_name_their_place() -> None:
    """20 bytes are 8, 8 and 4; lengths of IP and UDP are those of the standards."""
    agent = Agent()
    agent.arena.memory[64:84] = np.arange(20)
    agent.post(20)
    frames = [agent.send() for _ in range(3)]
    assert [frame[wire.OPCODE_AT] for frame in frames] == [0x00, 0x01, 0x02]
    assert [frame[wire.PSN_AT : wire.PSN_AT + 3] for frame in frames] == [
        bytes(3), b"\0\0\1", b"\0\0\2",
    ]  # fmt: skip
    assert b"".join(frame[wire.HEAD_BYTES : -4] for frame in frames) == bytes(range(20))
    assert [frame[IP_LENGTH_AT + 1] for frame in frames] == [20 + 8 + 12 + n + 4 for n in (8, 8, 4)]
    assert [frame[UDP_LENGTH_AT + 1] for frame in frames] == [8 + 12 + n + 4 for n in (8, 8, 4)]
    assert agent.send() == b""
    assert agent.qp().state[q.SENDS_CURRENT] == 1


def test_frames_name_both_ends() -> None:
    """Ethernet has the receiver first, IP the sender; queue pairs count from 1 on the wire."""
    agent = Agent()
    near, far = (0x010203040506, 0x0A000001), (0x0A0B0C0D0E0F, 0x0A000102)
    macs, addresses = zip(near, far, strict=True)
    ends = [
        rc.QpEnd(agent.at, n, 0x123450 + n, macs, addresses, 0xC120 + n, 0x8120 + n) for n in (0, 1)
    ]
    rc.connect_qps(agent.store, ends)
    for number in (0, 1):
        agent.post(1, number=number)
        frame = agent.send()
        assert frame[:14].hex() == "0a0b0c0d0e0f" + "010203040506" + "0800"
        assert frame[26:34].hex() == "0a000001" + "0a000102"
        assert frame[34:38].hex() == f"c12{number}" + "12b7"  # to port 4791
        assert frame[wire.PARTITION_AT :][:2].hex() == f"812{number}"
        assert frame[wire.DEST_QP_AT :][:3].hex() == f"12345{1 + number}"


def test_rings_and_templates_of_queue_pairs_are_apart() -> None:
    agent = Agent()
    rc.add_qps(agent.store, agent.at, 3)
    rc.connect_qps(agent.store, [end_of(agent.at, 0, number) for number in range(2, 5)])
    states = [agent.qp(number).state for number in range(5)]
    rings = sorted(int(each[word]) for each in states for word in (q.SENDS_AT, q.RECEIVES_AT))
    assert np.diff(rings).min() >= q.RING * q.REQUEST_WORDS
    assert rings[-1] + q.RING * q.REQUEST_WORDS <= len(agent.arena.words)
    templates = sorted(int(each[q.TEMPLATE_AT]) for each in states)
    assert np.diff(templates).min() >= wire.HEAD_BYTES


def test_new_queue_pairs_take_as_much_as_they_need() -> None:
    """Two rings of 256 requests for each, and 64 bytes of head; three more need room for eight."""
    agent = Agent()
    before = {kind: agent.store.allocate(kind, 16) for kind in ("words", "bytes")}
    rc.connect_qps(agent.store, [end_of(agent.at, 0, number) for number in (0, 1, 0)])
    after = {kind: agent.store.allocate(kind, 1) for kind in ("words", "bytes")}
    assert after["words"] - before["words"] == 16 + 3 * 2 * 256 * 4
    assert after["bytes"] - before["bytes"] == 64 + 3 * 64
    rc.add_qps(agent.store, agent.at, 3)
    grown = agent.store.allocate("words", 1)
    lines = -(-8 * q.QP_WORDS // 8) + 9  # of eight queue pairs, and nine fifos of eight
    assert grown - after["words"] == 8 * (1 + lines)


def test_an_agent_writes_data_and_takes_no_cuts_unless_it_is_told() -> None:
    agent = Agent()
    assert [agent.word(q.HAS_DATA), agent.word(q.TAKES_CUTS)] == [1, 0]
    for has_data, takes_cuts in ((False, True), (True, False)):
        at = rc.make_rc(
            agent.store, host=0, ring=agent.ring, mtu=8, window=1, min_timeout_ps=1, rnr_wait_ps=1,
            has_data=has_data, takes_cuts=takes_cuts,
        )  # fmt: skip
        words = agent.store.arena.words
        assert (words[at + q.HAS_DATA], words[at + q.TAKES_CUTS]) == (has_data, takes_cuts)


def test_settings_are_of_the_queue_pair_that_they_name() -> None:
    """A gain of 1.5 is 384 in units of 1/256; line rate and round trip are the controller's."""
    agent = Agent(controller="dctcp")
    rc.control_qp(
        agent.store, agent.at, 1, find_controller("dctcp"), line_bps=10**10, rtt_ps=9, hops=3
    )
    blocks = [int(agent.qp(number).state[q.CONTROL_AT]) for number in (0, 1)]
    q.set_gain(agent.arena, agent.at, 1, 1.5)
    words = agent.arena.words
    assert [int(words[block + c.GAIN]) for block in blocks] == [256, 384]
    assert [int(words[block + c.LINE_BPS]) for block in blocks] == [10**11, 10**10]
    assert [int(words[block + c.RTT_PS]) for block in blocks] == [8000, 9]
    assert [int(words[block + c.PACKET_BYTES]) for block in blocks] == [MTU + 58 + 24] * 2
    rc.set_rate(agent.arena, agent.at, [1], 77)
    assert [int(agent.qp(number).state[q.RATE_BPS]) for number in (0, 1)] == [0, 77]
    with pytest.raises(ProtocolError, match="rate_bps must be at least 0, got -1"):
        rc.set_rate(agent.arena, agent.at, [1], -1)
    for priority in (-1, 8):
        with pytest.raises(ProtocolError, match="priority must be 0 to 7"):
            rc.set_priority(agent.arena, agent.at, 0, priority)
    for number, marks in ((0, True), (1, False)):
        rc.set_priority(agent.arena, agent.at, number, 7, marks=marks)
        template = int(agent.qp(number).state[q.TEMPLATE_AT])
        assert agent.arena.bytes[template + IP_TOS_AT] >> 5 == (7 if marks else 0)


def test_new_queue_pairs_leave_those_at_work_as_they_are() -> None:
    """What waits in fifos goes on in its order, though the fifo has gone round its room."""
    agent = Agent()
    fifo = open_fifo(agent.arena, agent.at + q.ANSWERS_AT)
    fifo.state[[FIFO_FIRST, FIFO_COUNT]] = 1, 2
    fifo.rows[:] = 0, 1  # 1 waits first, then 0
    before = [agent.qp(number).state.tolist() for number in (0, 1)]
    assert rc.add_qps(agent.store, agent.at, 3) == 2
    assert agent.word(q.QP_COUNT) == 5
    assert [agent.qp(number).state.tolist() for number in (0, 1)] == before
    moved = open_fifo(agent.arena, agent.at + q.ANSWERS_AT)
    assert moved.rows[:2].tolist() == [1, 0]
    assert moved.state[[FIFO_FIRST, FIFO_COUNT, FIFO_ROOM]].tolist() == [0, 2, 8]
    room = int(agent.arena.words[agent.at + q.QPS_AT])
    assert rc.add_qps(agent.store, agent.at, 3) == 5
    assert agent.arena.words[agent.at + q.QPS_AT] == room  # there was room for eight


def test_every_quarter_of_a_window_and_each_last_packet_ask_for_an_answer() -> None:
    """A window of 16: packets 3 and 7 of the first message, and 8, its last; then 9, another."""
    agent = Agent(window=16)
    agent.qp().state[q.LIMIT] = 9
    agent.post(9 * MTU)
    agent.post(1)
    frames = [agent.send() for _ in range(10)]
    asking = [n for n, frame in enumerate(frames) if frame[wire.ACK_REQUEST_AT]]
    assert asking == [3, 7, 8, 9]
    assert {frame[wire.ACK_REQUEST_AT] for frame in frames} == {0, 0x80}


@pytest.mark.parametrize(("window", "every"), [(1, 1), (3, 1), (7, 1), (8, 2), (64, 16)])
def test_answers_are_asked_for_every_quarter_of_a_window_and_never_less_than_each_packet(
    window: int, every: int
) -> None:
    assert Agent(window=window).qp().state[q.ACK_EVERY] == every


@pytest.mark.parametrize("cuts", [1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 1 << 25])
def test_a_notice_tells_of_65536_cut_packets_at_most(cuts: int) -> None:
    """So many fit into its three bytes, and are enough for any controller."""
    agent = Agent()
    agent.qp().state[[q.CUTS, q.WANTS_CUT, q.CUT_PSN]] = cuts, 1, 5
    notice = read_packet(agent.arena, trimming.make_cut_notice(agent.arena, agent.qp()))
    assert int.from_bytes(notice[wire.SYNDROME_AT + 1 : wire.SYNDROME_AT + 4]) == min(cuts, 65536)
    assert agent.qp().state[[q.CUTS, q.WANTS_CUT]].tolist() == [0, 0]


@pytest.mark.parametrize("size", [3, 0])
def test_an_eager_message_has_left_when_its_last_packet_is_sent(size: int) -> None:
    """Its report has its queue pair and the sender's tag; if it is sent again, there is none."""
    agent = Agent()
    agent.qp().state[[q.EAGER, q.LIMIT]] = 1, q.NO_LIMIT
    agent.post(2 * MTU + size, tag=77)
    packets = 3 if size else 2
    for number in range(packets):
        assert agent.done() == []
        assert agent.send(), number
    assert agent.done() == [(q.LEFT, 0, 77)]


def test_telemetry_of_an_answer_is_heard_and_its_absence_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It lies behind the 58 bytes of an answer's headers; without it there are no hops."""
    monkeypatch.setattr(congestion, "tell_controller", lambda *_: None)
    agent = Agent(controller="hpcc")
    heard_at = agent.control(c.HEARD_AT)
    heard = agent.arena.bytes[heard_at : heard_at + TELEMETRY_BYTES]
    agent.post(2 * MTU)
    agent.send()
    agent.send()
    head = head_of(0)
    head[58 : 58 + TELEMETRY_BYTES] = [0, *range(3, TELEMETRY_BYTES + 2)]
    put16(head, UDP_LENGTH_AT, 8 + 12 + 4 + 4 + TELEMETRY_BYTES)
    congestion.note_ack(agent.arena, agent.at, agent.qp(), head, 1, 0, 50)
    assert heard.tolist() == [0, *range(3, TELEMETRY_BYTES + 2)]
    heard[0] = 9
    congestion.note_ack(agent.arena, agent.at, agent.qp(), head_of(1), 1, 0, 60)
    assert heard[:2].tolist() == [0, 3]


@pytest.mark.parametrize(("gap_ps", "is_due"), [(0, 0), (1, 1)])
def test_a_mark_is_told_of_by_a_packet_of_its_own_if_a_controller_wants_that(
    gap_ps: int, is_due: int
) -> None:
    agent = Agent(controller="dctcp")
    agent.arena.words[agent.block + c.CNP_GAP_PS] = gap_ps
    head = head_of(0)
    head[IP_TOS_AT] = 3
    congestion.count_mark(agent.arena, agent.at, 0, agent.qp(), head, 50)
    assert (agent.control(c.CNP_DUE), agent.control(c.MARKS)) == (is_due, 1)


def test_without_a_controller_an_answer_is_no_notice() -> None:
    """Whatever lies where a block at 0 would have its word."""
    agent = Agent()
    queue.owe(agent.arena, agent.at, 0, agent.qp(), wire.ACK)
    before, agent.arena.words[c.CNP_DUE] = agent.arena.words[c.CNP_DUE], 1
    answer = read_packet(agent.arena, receiver.make_answer(agent.arena, agent.at))
    agent.arena.words[c.CNP_DUE] = before
    assert answer[wire.OPCODE_AT] == wire.ACKNOWLEDGE


@pytest.mark.parametrize(("advertised", "is_owed"), [(8, 1), (9, 1), (10, 0)])
def test_a_peer_that_knows_of_one_receive_or_none_is_told_of_a_new_one(
    advertised: int, is_owed: int
) -> None:
    """Eight messages have come, and the ninth receive is posted."""
    agent = Agent()
    agent.qp().state[[q.RECEIVES_FIRST, q.RECEIVES_END, q.ADVERTISED]] = 8, 8, advertised
    agent.qp().state[q.SYNDROME] = -1
    assert rc.post_receive(agent.arena, agent.at, 0, 64, MTU, 0, rc.COPY)
    assert (agent.qp().state[q.SYNDROME] == wire.ACK) == is_owed


def test_a_claim_says_where_and_how_a_message_lands(plain_address: Address) -> None:
    """Its handler is told of the claim alone, and returns how; where is in the claim then."""
    agent = Agent()
    claim = agent.store.allocate("words", landing.CLAIM_WORDS)
    told: list[tuple[int, ...]] = []

    def choose(arena: Arena, at: int, packet: int, now_ps: int) -> int:
        told.append((at, packet, now_ps))
        arena.words[at + landing.TARGET] = 4096
        return landing.INT32

    agent.arena.words[claim + landing.CHOOSE] = plain_address(choose)
    assert landing.choose_landing(agent.arena, claim) == (4096, landing.INT32)
    assert told == [(claim, 0, 0)]


def test_under_control_each_packet_asks_as_a_window_may_close_on_it() -> None:
    agent = Agent(window=16, controller="dctcp")
    agent.post(9 * MTU)
    assert [agent.send()[wire.ACK_REQUEST_AT] for _ in range(9)] == 9 * [0x80]


def test_the_first_packet_that_is_answered_is_timed() -> None:
    agent = Agent(window=16)
    agent.post(9 * MTU)
    for now_ps in range(100, 900, 100):
        agent.send(now_ps)
    state = agent.qp().state
    assert state[[q.TIMED_PSN, q.TIMED_FROM_PS]].tolist() == [3, 400]
    agent.answer(3, wire.ACK, now_ps=2400)
    assert state[[q.TIMED_PSN, q.SMOOTHED_PS, q.VARIATION_PS]].tolist() == [-1, 2000, 1000]
    assert state[q.TIMEOUT_PS] == 2000 + 4 * 1000  # RFC 6298, 2.2


def test_window_pacing_credit_and_waits_each_hold_packets_back() -> None:
    agent = Agent(window=4)
    agent.post(9 * MTU)
    qp = agent.qp()
    assert queue.sendable(qp, 100)
    for word, held, free in (
        (q.ACKED_PSN, -4, -3),
        (q.FREE_AT_PS, 101, 100),
        (q.HOLD_UNTIL_PS, 101, 100),
        (q.LIMIT, 0, 1),
        (q.POSTED_PSN, 0, 1),
    ):
        qp.state[word] = held
        assert not queue.sendable(qp, 100)
        qp.state[word] = free
        assert queue.sendable(qp, 100)


@pytest.mark.parametrize("window", [0, 1 << 23])
def test_windows_are_less_than_half_of_the_packets_numbers(window: int) -> None:
    """Numbers have 24 bits, and the nearest one is meant."""
    assert Agent(window=(1 << 23) - 1).qp().state[q.ALLOWED] == (1 << 23) - 1
    with pytest.raises(ProtocolError, match="window must be >= 1"):
        Agent(window=window)


# What wakes a sender.


def test_a_paced_queue_pair_comes_back_when_pacing_lets_it() -> None:
    agent = Agent()
    agent.post(9 * MTU)
    agent.send()
    agent.qp().state[q.FREE_AT_PS] = 700
    agent.send()
    agent.arena.words[agent.at + TIMER_AT_PS] = FOREVER_PS
    queue.offer(agent.arena, agent.at, 0, agent.qp(), 600)
    assert agent.word(TIMER_AT_PS) == 700
    assert agent.word(READY) == 0
    queue.offer(agent.arena, agent.at, 0, agent.qp(), 700)
    assert agent.word(READY) == 1


def test_another_rate_ends_the_wait_for_the_one_before() -> None:
    """Of those queue pairs alone, which keep to it together, in a ring."""
    agent = Agent()
    rc.add_qps(agent.store, agent.at, 2)
    for number in range(4):
        agent.qp(number).state[[q.FREE_AT_PS, q.RATE_BPS]] = 700, 7
    rc.set_rate(agent.arena, agent.at, [0, 3, 2], 10**9)
    states = [agent.qp(number).state for number in range(4)]
    assert [state[q.FREE_AT_PS] for state in states] == [0, 700, 0, 0]
    assert [state[q.RATE_BPS] for state in states] == [10**9, 7, 10**9, 10**9]
    assert [states[number][q.PACED_WITH] for number in (0, 3, 2)] == [3, 2, 0]


def test_without_credit_a_queue_pair_asks_after_a_timeout() -> None:
    """Twice the least timeout, as nothing has been timed; one deadline is enough."""
    agent = Agent()
    agent.qp().state[q.LIMIT] = 0
    agent.post(MTU, now_ps=50)
    assert agent.qp().state[q.DEADLINE_PS] == agent.word(TIMER_AT_PS) == 50 + 2 * LEAST_PS
    queue.offer(agent.arena, agent.at, 0, agent.qp(), 90)
    assert agent.qp().state[q.DEADLINE_PS] == 50 + 2 * LEAST_PS
    assert agent.send() == b""


@pytest.mark.parametrize(
    ("timeout", "unanswered", "factor"),
    [
        *((2, *each) for each in [(0, 2), (1, 4), (4, 32), (5, 64), (6, 64), (40, 64)]),
        *((100, *each) for each in [(0, 100), (3, 100)]),
        *((300, *each) for each in [(0, 256), (3, 256)]),
    ],
)
def test_probes_without_answers_double_the_timeout_up_to_64_times_the_least(
    timeout: int, unanswered: int, factor: int
) -> None:
    """One that is longer already stays; none is longer than 256 times the least."""
    agent = Agent()
    agent.qp().state[[q.TIMEOUT_PS, q.UNANSWERED]] = timeout * LEAST_PS, unanswered
    for quiet_ps in (0, 5_000_000):  # added once
        agent.arena.words[agent.at + q.QUIET_PS] = quiet_ps
        queue.await_answer(agent.arena, agent.at, agent.qp(), 77)
        assert agent.qp().state[q.DEADLINE_PS] == 77 + quiet_ps + factor * LEAST_PS


@pytest.mark.parametrize(("probes", "sample"), [(0, 90), (1, 64), (5, 64)])
def test_a_round_trip_with_probes_in_it_counts_for_no_more_than_a_gap(
    probes: int, sample: int
) -> None:
    """The first sample R makes a timeout of R + 4 R / 2 (RFC 6298, 2.2)."""
    agent = Agent()
    agent.qp().state[[q.TIMED_PSN, q.TIMED_FROM_PS, q.PROBES]] = 0, 7, probes
    sender.take_sample(agent.arena, agent.at, agent.qp(), 7 + 90 * LEAST_PS)
    assert agent.qp().state[q.TIMEOUT_PS] == 3 * sample * LEAST_PS


def test_a_probe_names_the_last_packet_sent_and_asks_for_an_answer() -> None:
    agent = Agent()
    agent.post(2 * MTU)
    agent.send()
    agent.send()
    sender.expire(agent.arena, agent.at, 0, agent.qp(), 5000)
    probe = agent.send(5000)
    assert probe[wire.OPCODE_AT] == wire.PROBE
    assert probe[wire.PSN_AT : wire.PSN_AT + 3] == b"\0\0\1"
    assert probe[wire.ACK_REQUEST_AT] == 0x80
    assert len(probe) == wire.HEAD_BYTES + 4
    state = agent.qp().state
    assert state[[q.PROBING, q.PROBES, q.UNANSWERED]].tolist() == [0, 1, 1]
    assert agent.word(q.PROBES_SENT) == 1
    assert state[q.DEADLINE_PS] == 5000 + 4 * LEAST_PS


def test_a_deadline_while_packets_wait_in_the_own_host_is_put_off() -> None:
    agent = Agent()
    agent.post(2 * MTU)
    sender.expire(agent.arena, agent.at, 0, agent.qp(), 5000)
    state = agent.qp().state
    assert state[[q.PROBING, q.DEADLINE_PS]].tolist() == [0, 5000 + 2 * LEAST_PS]


def test_data_goes_again_when_an_rnr_wait_is_over_and_no_probe_does() -> None:
    agent = Agent()
    agent.post(MTU)
    agent.send()
    agent.answer(0, wire.RNR_NAK, now_ps=100)
    state = agent.qp().state
    assert state[[q.HOLD_UNTIL_PS, q.DEADLINE_PS, q.LIMIT]].tolist() == [600, 600, 0]
    assert state[q.NEXT_PSN] == 0
    sender.expire(agent.arena, agent.at, 0, agent.qp(), 600)
    assert state[q.PROBING] == 0


# Answers.


def test_an_ack_completes_messages_up_to_its_packet() -> None:
    """Messages of 2, 1 and 3 packets: the ACK of packet 2 completes two, that of 5 all."""
    agent = Agent()
    agent.qp().state[q.LIMIT] = 9
    for tag, packets in ((7, 2), (8, 1), (9, 3)):
        agent.post(packets * MTU, tag)
    for _ in range(6):
        agent.send()
    agent.answer(1 - 1, wire.ACK)
    assert agent.done() == []
    agent.answer(2, wire.ACK, now_ps=100)
    assert agent.done() == [(rc.SENT, 0, 7), (rc.SENT, 0, 8)]
    state = agent.qp().state
    assert state[[q.ACKED_PSN, q.SENDS_FIRST]].tolist() == [3, 2]
    assert state[q.DEADLINE_PS] > 100
    assert agent.word(PROGRESS) == 2
    agent.answer(5, wire.ACK, now_ps=200)
    assert agent.done() == [(rc.SENT, 0, 9)]
    assert state[q.DEADLINE_PS] == FOREVER_PS
    agent.answer(5, wire.ACK, now_ps=300)
    assert agent.done() == []
    assert agent.word(PROGRESS) == 3


def test_an_answer_to_packets_that_were_never_sent_is_not_ours() -> None:
    agent = Agent()
    agent.post(3 * MTU)
    agent.send()
    agent.answer(1, wire.ACK | 5, done=9)
    assert agent.qp().state[[q.ACKED_PSN, q.LIMIT]].tolist() == [0, 1]
    agent.answer(0, wire.ACK | 5, done=0)
    assert agent.qp().state[[q.ACKED_PSN, q.LIMIT]].tolist() == [1, 6]


@pytest.mark.parametrize(
    ("code", "credits"), [(0, 0), (1, 1), (5, 6), (16, 256), (17, 256), (31, 256)]
)
def test_credit_codes_count_from_the_messages_that_are_done(code: int, credits: int) -> None:
    """IBA 9.7.7.2: the code's number of receives is there; any more are as many as the last."""
    agent = Agent()
    agent.qp().state[[q.LIMIT, q.HOLD_UNTIL_PS]] = 0, 99
    agent.post(MTU)
    agent.qp().state[[q.SENT_PSN, q.NEXT_PSN]] = 1
    agent.answer(0, wire.ACK | code, done=3)
    assert agent.qp().state[[q.LIMIT, q.HOLD_UNTIL_PS]].tolist() == [3 + credits, 0]
    agent.answer(0, wire.ACK, done=2)  # an older one takes nothing back
    assert agent.qp().state[q.LIMIT] == 3 + credits


def test_credit_codes_grow_by_halves_of_powers_of_two() -> None:
    """IBA, table 45: 1 to 4, then 1.5 times and twice each power of two, 256 here at most."""
    assert list(wire.CREDITS[:5]) == [0, 1, 2, 3, 4]
    halves = [size for power in range(2, 8) for size in (3 << power - 1, 2 << power)]
    assert list(wire.CREDITS[5:]) == halves
    for code, credits in enumerate(wire.CREDITS):
        assert wire.credit_code(credits) == code
        assert wire.credit_code(credits + 1) == (code + 1 if credits < 4 else min(code, 16))


def test_a_nak_goes_back_once_to_the_packet_that_is_wanted() -> None:
    agent = Agent()
    agent.post(6 * MTU)
    for _ in range(6):
        agent.send()
    state = agent.qp().state
    agent.answer(2, wire.SEQUENCE_NAK, now_ps=100)
    assert state[[q.ACKED_PSN, q.NEXT_PSN, q.NAKED_PSN, q.TIMED_PSN]].tolist() == [2, 2, 2, -1]
    again = agent.send(100)
    assert again[wire.PSN_AT : wire.PSN_AT + 3] == b"\0\0\2"
    assert agent.word(RETRANSMISSIONS) == 1
    agent.answer(2, wire.SEQUENCE_NAK, now_ps=120)  # the same one
    assert state[q.NEXT_PSN] == 3
    state[q.PROBES] = 1
    agent.answer(2, wire.SEQUENCE_NAK, now_ps=140)  # to a probe: it is lost again
    assert state[q.NEXT_PSN] == 2
    assert state[q.SENT_PSN] == 6


def test_a_nak_of_packets_that_have_arrived_says_nothing_but_that_packets_get_through() -> None:
    """Three of six packets are acknowledged: a NAK for the fourth goes back, not one for others."""
    for psn, next_psn in ((2, 6), (3, 3)):
        agent = Agent()
        agent.post(6 * MTU)
        for _ in range(6):
            agent.send()
        state = agent.qp().state
        state[[q.TIMED_PSN, q.TIMED_FROM_PS]] = 2, 0
        agent.answer(2, wire.ACK, now_ps=700)
        assert state[[q.ACKED_PSN, q.TIMED_PSN, q.SMOOTHED_PS]].tolist() == [3, -1, 700]
        state[q.UNANSWERED] = 5
        agent.answer(psn, wire.SEQUENCE_NAK, now_ps=800)
        assert state[[q.NEXT_PSN, q.ACKED_PSN, q.UNANSWERED]].tolist() == [next_psn, 3, 0]
        agent.answer(psn, wire.RNR_NAK, now_ps=900)
        held = 900 + RNR_PS if psn == 3 else 0
        assert state[q.HOLD_UNTIL_PS] == held


def test_packets_that_have_arrived_after_all_are_not_sent_again() -> None:
    agent = Agent()
    agent.post(6 * MTU)
    for _ in range(6):
        agent.send()
    agent.answer(2, wire.SEQUENCE_NAK)
    agent.answer(4, wire.ACK)
    state = agent.qp().state
    assert state[[q.ACKED_PSN, q.NEXT_PSN, q.SENDS_CURRENT]].tolist() == [5, 5, 0]
    agent.answer(5, wire.ACK)
    assert state[[q.NEXT_PSN, q.SENDS_CURRENT]].tolist() == [6, 1]


@pytest.mark.parametrize(
    ("on_wire", "near", "number"),
    [(0, 0, 0), (0xFFFFFF, 0, -1), (0, 0xFFFFFF, 1 << 24), (5, 1 << 25, (1 << 25) + 5),
     (0x7FFFFF, 0, 0x7FFFFF), (0x800000, 0, -0x800000)],
)  # fmt: skip
def test_numbers_of_24_bits_mean_the_nearest(on_wire: int, near: int, number: int) -> None:
    assert wire.full_number(on_wire, near) == number


# Receivers.


def test_probes_hear_how_far_the_receiver_has_come() -> None:
    agent = Agent()
    qp = agent.qp()
    qp.state[q.EXPECTED_PSN] = 5
    cases = ((4, 0, 0, wire.ACK), (5, 1, 0, wire.SEQUENCE_NAK), (5, 0, 1, wire.RNR_NAK))
    for psn, posted, gone, syndrome in cases:
        qp.state[[q.SYNDROME, q.GAP_REPORTED]] = -1, 0
        qp.state[[q.RECEIVES_FIRST, q.RECEIVES_END]] = gone, gone + posted
        receiver.receive_probe(agent.arena, agent.at, 0, qp, head_of(psn))
        assert qp.state[q.SYNDROME] == syndrome
        assert qp.state[q.GAP_REPORTED] == (psn == 5)


def data(agent: Agent, psn: int, body: bytes, *, opcode: int, asks: bool = False) -> None:
    packet = allocate_packet(agent.arena)
    view = open_packet(agent.arena, packet)
    view.head[:] = head_of(psn, opcode=opcode)
    view.head[wire.HEAD_BYTES : wire.HEAD_BYTES + len(body)] = np.frombuffer(body, np.uint8)
    put16(view.head, UDP_LENGTH_AT, 8 + 12 + len(body) + 4)
    view.head[wire.ACK_REQUEST_AT] = 0x80 if asks else 0
    view.row[HEAD_LEN] = wire.HEAD_BYTES + len(body)
    receiver.receive_data(agent.arena, agent.at, 0, agent.qp(), packet, 900)


def test_packets_of_a_message_land_behind_one_another() -> None:
    agent = Agent()
    assert rc.post_receive(agent.arena, agent.at, 0, 400, 20, 3, rc.COPY)
    agent.qp().state[q.SYNDROME] = -1
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_FIRST)
    data(agent, 1, b"ijklmnop", opcode=wire.SEND_MIDDLE)
    assert agent.qp().state[q.SYNDROME] == -1
    assert agent.done() == []
    data(agent, 2, b"qrst", opcode=wire.SEND_LAST, asks=True)
    assert agent.arena.memory[400:420].tobytes() == b"abcdefghijklmnopqrst"
    (report,) = take_completions(agent.arena, agent.ring)
    assert (report.kind, report.a, report.b, report.c) == (rc.RECEIVED, 0, 3, 20)
    state = agent.qp().state
    assert state[[q.EXPECTED_PSN, q.RECEIVES_FIRST, q.SYNDROME]].tolist() == [3, 1, wire.ACK]


def test_a_message_that_is_too_long_is_reported_and_not_written() -> None:
    agent = Agent()
    agent.arena.memory[400:416] = 0
    assert rc.post_receive(agent.arena, agent.at, 0, 400, 12, 3, rc.COPY)
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_FIRST)
    data(agent, 1, b"ijklmnop", opcode=wire.SEND_LAST)
    assert agent.arena.memory[400:416].tobytes() == b"abcdefgh" + bytes(8)
    assert agent.done() == [(rc.OVERRUN, 0, 3), (rc.RECEIVED, 0, 3)]


def test_gaps_are_reported_once_and_duplicates_acknowledged() -> None:
    agent = Agent()
    assert rc.post_receive(agent.arena, agent.at, 0, 400, 80, 3, rc.COPY)
    state = agent.qp().state
    state[q.SYNDROME] = -1
    data(agent, 2, b"late", opcode=wire.SEND_MIDDLE)
    assert state[[q.SYNDROME, q.GAP_REPORTED]].tolist() == [wire.SEQUENCE_NAK, 1]
    state[q.SYNDROME] = -1
    data(agent, 3, b"late", opcode=wire.SEND_MIDDLE)
    assert state[q.SYNDROME] == -1
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_FIRST)
    assert state[[q.EXPECTED_PSN, q.GAP_REPORTED]].tolist() == [1, 0]
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_FIRST)
    assert state[[q.EXPECTED_PSN, q.SYNDROME]].tolist() == [1, wire.ACK]


def test_the_packet_before_one_that_was_cut_leaves_a_gap_that_is_reported() -> None:
    """Packet 1 was cut, and its sender is told of it anyhow; so packet 2 needs no NAK."""
    agent = Agent()
    assert rc.post_receive(agent.arena, agent.at, 0, 400, 80, 3, rc.COPY)
    state = agent.qp().state
    state[[q.CUT_PSN, q.SYNDROME]] = 1, -1
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_FIRST)
    assert state[[q.EXPECTED_PSN, q.GAP_REPORTED]].tolist() == [1, 1]
    data(agent, 2, b"late", opcode=wire.SEND_MIDDLE)
    assert state[q.SYNDROME] == -1
    data(agent, 1, b"ijklmnop", opcode=wire.SEND_MIDDLE)
    assert state[[q.EXPECTED_PSN, q.GAP_REPORTED]].tolist() == [2, 0]


def test_without_a_rate_whatever_closed_a_window_opens_it_again() -> None:
    """The queue pair leaves the line without a timer; with a rate it waits for its turn."""
    for rate_bps, waits in ((0, False), (1, True)):
        agent = Agent()
        rc.set_rate(agent.arena, agent.at, [0], rate_bps)
        agent.post(MTU)
        state = agent.qp().state
        state[q.ALLOWED] = 0
        assert agent.send() == b""
        assert (state[q.DEADLINE_PS] < FOREVER_PS) == waits
        assert (agent.word(TIMER_AT_PS) < FOREVER_PS) == waits


def test_a_nak_that_is_not_sent_yet_becomes_an_ack_when_the_packet_comes() -> None:
    agent = Agent()
    assert rc.post_receive(agent.arena, agent.at, 0, 400, 80, 3, rc.COPY)
    state = agent.qp().state
    data(agent, 1, b"late", opcode=wire.SEND_MIDDLE)
    assert state[q.SYNDROME] == wire.SEQUENCE_NAK
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_FIRST)
    assert state[q.SYNDROME] == wire.ACK
    state[q.SYNDROME] = -1
    data(agent, 1, b"abcdefgh", opcode=wire.SEND_MIDDLE)
    assert state[q.SYNDROME] == -1  # nothing is owed, as nobody has asked


def test_without_a_receive_data_is_refused_and_counted() -> None:
    agent = Agent()
    data(agent, 0, b"abcdefgh", opcode=wire.SEND_ONLY)
    state = agent.qp().state
    assert state[[q.SYNDROME, q.GAP_REPORTED]].tolist() == [wire.RNR_NAK, 1]
    assert state[q.EXPECTED_PSN] == 0
    assert agent.word(REFUSALS) == 1


def test_acks_name_the_last_packet_and_naks_the_one_wanted() -> None:
    """IBA 9.7.5.2; with 7 receives, the code of 6 is told, and 2 messages are complete."""
    agent = Agent()
    qp = agent.qp()
    qp.state[[q.EXPECTED_PSN, q.RECEIVES_FIRST, q.RECEIVES_END]] = 5, 2, 9
    for syndrome, psn, told in ((wire.ACK, 4, 5), (wire.RNR_NAK, 5, wire.RNR_NAK)):
        queue.owe(agent.arena, agent.at, 0, qp, syndrome)
        answer = agent.send()
        assert answer[wire.PSN_AT + 2] == psn
        assert answer[wire.SYNDROME_AT : wire.SYNDROME_AT + 4] == bytes([told, 0, 0, 2])
        assert len(answer) == wire.ACK_HEAD_BYTES + 4
        assert qp.state[q.SYNDROME] == -1
    assert qp.state[q.ADVERTISED] == 2 + 6


def test_a_queue_pair_owes_one_answer_at_a_time_and_the_gravest() -> None:
    agent = Agent()
    qp = agent.qp()
    for syndrome in (wire.ACK, wire.SEQUENCE_NAK, wire.RNR_NAK):
        queue.owe(agent.arena, agent.at, 0, qp, syndrome)
    assert qp.state[q.SYNDROME] == wire.SEQUENCE_NAK
    assert open_fifo(agent.arena, agent.at + q.ANSWERS_AT).state[FIFO_COUNT] == 1
    assert agent.word(READY) == 1


@pytest.mark.parametrize(
    ("syndrome", "cuts", "due", "is_owing"),
    [(-1, 0, 0, False), (0, 0, 0, True), (-1, 1, 0, True), (-1, 0, 1, True)],
)
def test_an_ack_a_cut_packet_or_a_cnp_is_owed(
    syndrome: int, cuts: int, due: int, is_owing: bool
) -> None:
    agent = Agent(controller="dcqcn")
    agent.qp().state[[q.SYNDROME, q.CUTS]] = syndrome, cuts
    agent.arena.words[agent.block + c.CNP_DUE] = due
    assert queue.is_owing(agent.arena, agent.qp()) == is_owing
    plain = Agent()
    plain.qp().state[[q.SYNDROME, q.CUTS]] = syndrome, cuts
    assert queue.is_owing(plain.arena, plain.qp()) == (is_owing and not due)


def test_data_without_room_for_telemetry_leaves_what_was_kept() -> None:
    """A controller that asks for none, as none at all, has no place for it."""
    for controller in ("", "dcqcn"):
        agent = Agent(controller=controller)
        before = agent.arena.bytes.copy()
        congestion.keep_telemetry(agent.arena, agent.qp(), np.full(256, 0x77, np.uint8))
        assert (agent.arena.bytes == before).all()


def test_receives_are_advertised_when_few_are_known_of() -> None:
    """The peer knows of one at first; it is told anew at 1, 2, 4 and so on, not at each."""
    agent = Agent()
    state = agent.qp().state
    told = []
    for number in range(1, 10):
        state[q.SYNDROME] = -1
        assert rc.post_receive(agent.arena, agent.at, 0, 400, 80, number, rc.COPY)
        if state[q.SYNDROME] == wire.ACK:
            told.append(number)
            state[q.ADVERTISED] = number
    assert told == [1, 2, 4, 8]


@pytest.mark.parametrize(("gap", "owes"), [(0, -1), (1, wire.ACK)])
def test_eager_senders_hear_of_receives_only_where_they_were_refused(gap: int, owes: int) -> None:
    agent = Agent()
    state = agent.qp().state
    state[[q.EAGER, q.GAP_REPORTED]] = 1, gap
    assert rc.post_receive(agent.arena, agent.at, 0, 400, 80, 1, rc.COPY)
    assert state[q.SYNDROME] == owes


# Frames, as scapy has them.


@pytest.mark.parametrize(
    ("layer", "frame"),
    [
        (BTH(), "0400ffff" + "00" * 8),
        (BTH(solicited=1, version=2), "0482ffff" + "00" * 8),
        (BTH(migreq=1, padcount=3), "0470ffff" + "00" * 8),
        (BTH(fecn=1, resv6=5, dqpn=0x010203), "0400ffff" + "85010203" + "00" * 4),
        (BTH(becn=1, ackreq=1, psn=0x040506), "0400ffff" + "40000000" + "80040506"),
        (AETH(), "00000000"),
        (AETH(kind=3, value=0, msn=0x010203), "60010203"),
        (AETH(kind=1, value=31), "3f000000"),
        (HopTelemetry(), "00" * 16),
        (Telemetry(), "0000"),
        (ICRC(), "00000000"),
    ],
)
def test_scapys_layers_have_the_standards_bits(layer: Packet, frame: str) -> None:
    """IBA 9.2 and 9.5: BTH and AETH; an ACK's kind is 0, an RNR NAK's 1 and a NAK's 3."""
    assert bytes(layer).hex() == frame


@pytest.mark.parametrize(("kind", "name"), [(0, "ACK"), (1, "RNR NAK"), (2, "2"), (3, "NAK")])
def test_scapy_names_answers(kind: int, name: str) -> None:
    assert AETH(kind=kind).sprintf("%AETH.kind%") == name


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        (0x00, "SEND first"), (0x01, "SEND middle"), (0x02, "SEND last"), (0x04, "SEND only"),
        (0x11, "acknowledge"), (0xC0, "probe"), (0xD0, "SEND first, telemetry"),
        (0xD1, "SEND middle, telemetry"), (0xD2, "SEND last, telemetry"),
        (0xD4, "SEND only, telemetry"),
    ],
)  # fmt: skip
def test_scapy_names_opcodes(opcode: int, name: str) -> None:
    """IBA 9.2, table 38; ours are among those left to manufacturers."""
    assert BTH(opcode=opcode).sprintf("%BTH.opcode%") == name


# Priorities.


def test_higher_priorities_go_first_unless_they_are_paused() -> None:
    agent = Agent()
    for number, priority in ((0, 2), (1, 5)):
        rc.set_priority(agent.arena, agent.at, number, priority)
        agent.post(MTU, number=number)
    assert agent.word(q.LEVELS) == 1 << 2 | 1 << 5
    agent.arena.words[agent.at + PAUSED] = 1 << 5
    assert queue.open_levels(agent.arena, agent.at) == 1 << 2
    agent.arena.words[agent.at + PAUSED] = 0
    assert [queue.take_sender(agent.arena, agent.at) for _ in range(2)] == [1, 0]
    assert agent.word(q.LEVELS) == 0
    for level in range(8):
        fifo = open_fifo(agent.arena, agent.at + q.SENDERS_AT + level * FIFO_WORDS)
        assert fifo.state[FIFO_COUNT] == 0


@pytest.mark.parametrize(("acked", "wanted", "taken"), [(3, 2, 2), (3, 6, 4), (5, 6, 6), (5, 4, 4)])
def test_a_priority_rises_only_when_nothing_is_in_flight(
    acked: int, wanted: int, taken: int
) -> None:
    agent = Agent()
    qp = agent.qp()
    rc.set_priority(agent.arena, agent.at, 0, 4)
    qp.state[[q.ACKED_PSN, q.SENT_PSN]] = acked, 5
    congestion.take_priority(agent.arena, qp, wanted)
    assert qp.state[q.PRIORITY] == taken
    template = int(qp.state[q.TEMPLATE_AT])
    assert agent.arena.bytes[template + IP_TOS_AT] >> 5 == taken


# Controllers.


class Told(Agent):
    """Queue pair 0 has a controller that notes what it is told, and sets nothing."""

    def __init__(self, plain_address: Address, controller: str = "timely") -> None:
        super().__init__(controller=controller)
        self.told: list[tuple[str, int, int]] = []
        names = ("ack", "loss", "cnp", "timer", "post")
        for place, name in enumerate(names):
            self.arena.words[self.block + c.HANDLERS + place] = plain_address(self.noting(name))

    def noting(self, name: str) -> Handler:
        def note(_arena: Arena, at: int, argument: int, now_ps: int) -> int:
            assert at == self.block
            self.told.append((name, argument, now_ps))
            return 0

        return note

    def set(self, word: int, value: int) -> None:
        self.arena.words[self.block + word] = value


def test_controllers_are_told_of_posts_losses_notices_and_time(plain_address: Address) -> None:
    agent = Told(plain_address)
    qp, where = agent.qp(), (agent.arena, agent.at)
    qp.state[[q.POSTED_PSN, q.NEXT_PSN, q.ACKED_PSN]] = 9, 6, 2
    congestion.note_post(*where, qp, 10)
    assert agent.control(c.IN_FLIGHT) == 4
    congestion.note_loss(*where, qp, 1, 20)
    congestion.receive_notice(*where, qp, 30)
    agent.set(c.TIMER_AT_PS, 40)
    congestion.tend(*where, qp, 39)
    assert agent.word(TIMER_AT_PS) == 40
    congestion.tend(*where, qp, 40)
    assert agent.told == [("post", 7, 10), ("loss", 1, 20), ("cnp", 0, 30), ("timer", 0, 40)]
    assert agent.control(c.TIMER_AT_PS) == FOREVER_PS
    other = agent.qp(1)  # has none
    congestion.note_loss(*where, other, 1, 50)
    congestion.receive_notice(*where, other, 50)
    assert len(agent.told) == 4


def test_a_controllers_decisions_are_taken_over(plain_address: Address) -> None:
    agent = Told(plain_address)
    rc.set_priority(agent.arena, agent.at, 0, 4)
    agent.arena.words[agent.at + TIMER_AT_PS] = 80
    for word, value in ((c.WINDOW, 17), (c.PRIORITY, 3), (c.TIMER_AT_PS, 90)):
        agent.set(word, value)
    congestion.note_loss(agent.arena, agent.at, agent.qp(), 0, 20)
    assert agent.qp().state[[q.ALLOWED, q.PRIORITY]].tolist() == [17, 3]
    assert agent.word(TIMER_AT_PS) == 80
    for word, value in ((c.PRIORITY, c.UNSET), (c.TIMER_AT_PS, 70)):
        agent.set(word, value)
    congestion.note_loss(agent.arena, agent.at, agent.qp(), 0, 20)
    assert agent.qp().state[q.PRIORITY] == 3
    assert agent.word(TIMER_AT_PS) == 70


def test_an_acknowledgement_tells_marks_since_the_last_and_the_delay(
    plain_address: Address,
) -> None:
    """Marks are counted modulo 64: 5 after 62 are 7 more. Packet 6, the last, was sent at 150."""
    agent = Told(plain_address)
    qp = agent.qp()
    qp.state[[q.ACKED_PSN, q.SENT_PSN, q.NEXT_PSN]] = 7
    agent.set(c.SEEN_MARKS, 62)
    times_at, mask = agent.control(c.TIMES_AT), agent.control(c.TIMES_MASK)
    assert mask == 63
    qp.state[q.SENT_PSN] = 6
    congestion.note_sent(agent.arena, qp, 6, 150)
    qp.state[q.SENT_PSN] = 7
    head = head_of(6)
    head[wire.NOTICES_AT] = wire.BECN | 5
    where = (agent.arena, agent.at)
    congestion.note_ack(*where, qp, head, 0, 0, 390)  # nothing new
    assert agent.told == []
    congestion.note_ack(*where, qp, head, 3, 0, 400)
    assert agent.told == [("ack", 3, 400)]
    assert agent.control(c.MARKED) == 7
    assert agent.control(c.DELAY_PS) == 250
    congestion.note_ack(*where, qp, head, 3, 1, 400)  # may be a probe's answer
    assert (agent.control(c.MARKED), agent.control(c.DELAY_PS)) == (0, 0)
    congestion.note_sent(agent.arena, qp, 6, 300)  # again
    assert agent.arena.words[times_at + 6] == congestion.AGAIN_PS
    congestion.note_ack(*where, qp, head, 3, 0, 400)
    assert agent.control(c.DELAY_PS) == 0
    congestion.note_sent(agent.arena, qp, 7 + 64, 500)  # takes the place of packet 7
    assert agent.arena.words[times_at + 7] == 500


def test_telemetry_goes_from_data_to_answers_and_to_the_controller(plain_address: Address) -> None:
    agent = Told(plain_address, "hpcc")
    qp = agent.qp()
    assert congestion.telemetry_room(agent.arena, qp) == TELEMETRY_BYTES
    assert congestion.telemetry_room(agent.arena, agent.qp(1)) == 0
    sample = np.arange(1, TELEMETRY_BYTES + 1, dtype=np.uint8)
    head = head_of(0, opcode=wire.TELEMETRY)
    head[wire.HEAD_BYTES : wire.HEAD_BYTES + TELEMETRY_BYTES] = sample
    congestion.keep_telemetry(agent.arena, qp, head)
    told_at, heard_at = agent.control(c.TOLD_AT), agent.control(c.HEARD_AT)
    assert agent.arena.bytes[told_at : told_at + TELEMETRY_BYTES].tolist() == sample.tolist()
    queue.owe(agent.arena, agent.at, 0, qp, wire.ACK)
    answer = np.frombuffer(agent.send(), np.uint8)
    assert answer[wire.ACK_HEAD_BYTES : -4].tolist() == sample.tolist()
    congestion.hear_telemetry(agent.arena, qp, answer)
    assert agent.arena.bytes[heard_at : heard_at + TELEMETRY_BYTES].tolist() == sample.tolist()
    congestion.hear_telemetry(agent.arena, qp, head_of(0))  # an answer without any
    assert agent.arena.bytes[heard_at] == 0


def test_data_leaves_room_of_zeros_for_telemetry() -> None:
    """Whatever was in the packet's memory before."""
    agent = Agent(controller="hpcc")
    for packet in range(64):
        open_packet(agent.arena, packet).head[:] = 0xEE
    agent.arena.memory[64:67] = 1, 2, 3
    agent.post(3)
    frame = agent.send()
    assert frame[wire.OPCODE_AT] == wire.TELEMETRY | wire.SEND_ONLY
    assert frame[wire.HEAD_BYTES : -4] == bytes(TELEMETRY_BYTES) + b"\1\2\3"


def test_marks_are_counted_and_told_with_the_next_answer(plain_address: Address) -> None:
    """A CNP is due for the first of them, and for others only after the gap."""
    agent = Told(plain_address, "dcqcn")
    qp = agent.qp()
    agent.set(c.CNP_GAP_PS, 100)
    head = head_of(0)
    for tos, now_ps in ((0, 5), (1, 6), (2, 7)):
        head[IP_TOS_AT] = tos
        congestion.count_mark(agent.arena, agent.at, 0, qp, head, now_ps)
    assert (agent.control(c.MARKS), agent.control(c.CNP_DUE)) == (0, 0)
    head[IP_TOS_AT] = 3
    due = []
    for now_ps in (10, 109, 110, 111):
        agent.set(c.CNP_DUE, 0)
        congestion.count_mark(agent.arena, agent.at, 0, qp, head, now_ps)
        due.append(agent.control(c.CNP_DUE))
    assert (due, agent.word(READY)) == ([1, 0, 1, 0], 1)
    assert (agent.control(c.MARKS), agent.control(c.CNP_FROM_PS)) == (4, 210)
    for marks, notices in ((4, wire.BECN | 4), (4, 4), (66, wire.BECN | 2)):
        agent.set(c.MARKS, marks)
        congestion.write_notices(agent.arena, qp, head)
        assert head[wire.NOTICES_AT] == notices


def test_a_cnp_is_16_zeros_behind_a_becn_and_an_answer_follows(plain_address: Address) -> None:
    """Annex A17.9.3."""
    agent = Told(plain_address, "dcqcn")
    queue.owe(agent.arena, agent.at, 0, agent.qp(), wire.ACK)
    agent.set(c.CNP_DUE, 1)
    cnp, answer = agent.send(), agent.send()
    assert cnp[wire.OPCODE_AT] == wire.CNP
    assert cnp[wire.NOTICES_AT] == wire.BECN
    assert cnp[wire.HEAD_BYTES :] == bytes(16 + 4)
    assert get16(np.frombuffer(cnp, np.uint8), UDP_LENGTH_AT) == 8 + 12 + 16 + 4
    assert answer[wire.OPCODE_AT] == wire.ACKNOWLEDGE
    assert agent.send() == b""


@pytest.mark.parametrize(
    ("rate_bps", "pause_ps"),
    # 8 + 82 bytes are 720 bits: at 1 Gbit/s, 720 ns; at most 256 times the least timeout
    [(0, 0), (10**12, 720), (10**10, 72_000), (10**9, 256_000), (1, 256_000)],
)
def test_a_controllers_pause_is_the_packets_line_time_up_to_a_limit(
    rate_bps: int, pause_ps: int, plain_address: Address
) -> None:
    agent = Told(plain_address)
    agent.set(c.RATE_BPS, rate_bps)
    for free_ps, now_ps in ((0, 1000), (1000, 300)):
        agent.qp().state[q.FREE_AT_PS] = free_ps
        congestion.pace(agent.arena, agent.at, agent.qp(), MTU, now_ps)
        assert agent.qp().state[q.FREE_AT_PS] == (1000 + pause_ps if rate_bps else 0)


def test_queue_pairs_of_one_rate_are_paced_together() -> None:
    """720 bits at 1 Gbit/s."""
    agent = Agent()
    rc.set_rate(agent.arena, agent.at, [0, 1], 10**9)
    agent.qp(1).state[q.FREE_AT_PS] = 10**9
    congestion.pace(agent.arena, agent.at, agent.qp(), MTU, 1000)
    assert [int(agent.qp(n).state[q.FREE_AT_PS]) for n in (0, 1)] == [721_000, 10**9]


# Packets that were cut.


def test_a_cut_packet_is_asked_for_once_and_counted() -> None:
    agent = Agent()
    qp = agent.qp()
    qp.state[q.EXPECTED_PSN] = 3
    trimming.receive_cut(agent.arena, agent.at, 0, qp, head_of(9, opcode=wire.SEND_ONLY + 1))
    assert qp.state[q.CUTS] == 0
    for psn in (4, 6, 3):
        trimming.receive_cut(agent.arena, agent.at, 0, qp, head_of(psn, opcode=wire.SEND_ONLY))
    assert qp.state[[q.CUTS, q.CUT_PSN, q.WANTS_CUT, q.GAP_REPORTED]].tolist() == [3, 3, 1, 1]
    trimming.receive_cut(agent.arena, agent.at, 0, qp, head_of(2, opcode=wire.SEND_FIRST))
    assert qp.state[q.SYNDROME] == wire.ACK
    notice, answer = agent.send(), agent.send()
    assert notice[wire.OPCODE_AT] == wire.CUT
    assert notice[wire.PSN_AT : wire.PSN_AT + 3] == b"\0\0\3"
    assert notice[wire.SYNDROME_AT : wire.SYNDROME_AT + 4] == bytes([1, 0, 0, 3])
    assert notice[IP_TOS_AT] >> 5 == 7
    assert answer[wire.OPCODE_AT] == wire.ACKNOWLEDGE
    assert qp.state[[q.CUTS, q.WANTS_CUT]].tolist() == [0, 0]


def test_the_first_packet_that_was_cut_is_asked_for_whenever_it_is_cut_again() -> None:
    """The receiver waits for packet 3: later ones change nothing; 3 itself is asked for anew."""
    agent = Agent()
    qp = agent.qp()
    qp.state[q.EXPECTED_PSN] = 3
    for psn, cut_psn, wants in ((3, 3, 1), (4, 3, 0), (3, 3, 1), (5, 3, 0)):
        qp.state[q.WANTS_CUT] = 0
        trimming.receive_cut(agent.arena, agent.at, 0, qp, head_of(psn, opcode=wire.SEND_ONLY))
        assert qp.state[[q.CUT_PSN, q.WANTS_CUT]].tolist() == [cut_psn, wants]
    assert agent.word(READY) == 1


@pytest.mark.parametrize(("rate_bps", "turn"), [(0, 0), (1, 1), (10**12, 1)])
def test_queue_pairs_of_a_shared_rate_take_turns(rate_bps: int, turn: int) -> None:
    agent = Agent()
    rc.set_rate(agent.arena, agent.at, [0, 1], rate_bps)
    for number in (0, 1):
        agent.qp(number).state[q.LIMIT] = 9
        agent.post(2 * MTU, number=number)
    assert agent.send()[wire.DEST_QP_AT :][:3] == b"\0\0\1"
    assert agent.word(q.TURN) == turn


def test_a_notice_leads_back_to_the_message_of_the_cut_packet() -> None:
    """Messages of 2, 1 and 3 packets, all sent; packet 4 is in the third."""
    agent = Agent()
    agent.qp().state[q.LIMIT] = 9
    for packets in (2, 1, 3):
        agent.post(packets * MTU)
    for _ in range(6):
        agent.send()
    qp = agent.qp()
    for psn, wants, next_psn, current in (
        (4, 0, 6, 3), (6, 1, 6, 3), (4, 1, 4, 2), (2, 1, 2, 1), (3, 1, 2, 1), (1, 1, 1, 0)
    ):  # fmt: skip
        qp.state[q.UNANSWERED] = 2
        head = head_of(psn, wants, 1, opcode=wire.CUT)
        trimming.receive_cut_notice(agent.arena, agent.at, 0, qp, head, 50)
        assert qp.state[[q.NEXT_PSN, q.SENDS_CURRENT, q.UNANSWERED]].tolist() == [
            next_psn, current, 0,
        ]  # fmt: skip


@pytest.mark.parametrize(("counts", "losses"), [(0, 1), (1, 3)])
def test_controllers_hear_of_a_loss_or_of_each_cut_packet(
    counts: int, losses: int, plain_address: Address
) -> None:
    agent = Told(plain_address)
    agent.set(c.COUNTS_CUTS, counts)
    agent.qp().state[[q.NEXT_PSN, q.SENT_PSN]] = 6
    head = head_of(4, 1, 3, opcode=wire.CUT)
    trimming.receive_cut_notice(agent.arena, agent.at, 0, agent.qp(), head, 50)
    assert agent.told == losses * [("loss", 0, 50)]
