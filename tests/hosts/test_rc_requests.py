"""Requests, a step at a time, by hand: messages become packets, and what holds them back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rc_agent import MTU, Address, Agent, head_of
from rc_wire import end_of

import ringleaf.hosts.congestion.control as c
import ringleaf.hosts.rc.state as q
from ringleaf.core.arena import Arena, Store
from ringleaf.core.headers import IP_LENGTH_AT, IP_TOS_AT, UDP_LENGTH_AT, put16
from ringleaf.core.packets import make_pool, read_packet
from ringleaf.errors import ProtocolError
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    make_ring,
)
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_FIRST, FIFO_ROOM, open_fifo
from ringleaf.hosts.rc import congestion, landing, queue, receiver, sender, trimming, wire


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
        with pytest.raises(ProtocolError, match=r"(mtu|window) must be .* got 0"):
            rc.make_rc(store, mtu=mtu, window=window, **told)


@pytest.mark.parametrize("rate_bps", [0, 1])
def test_a_rate_may_be_0_for_none(rate_bps: int) -> None:
    agent = Agent()
    rc.set_rate(agent.arena, agent.at, [0], rate_bps)
    assert agent.qp().state[q.RATE_BPS] == rate_bps
    with pytest.raises(ProtocolError, match="must be at least 0, got -1"):
        rc.set_rate(agent.arena, agent.at, [0], -1)


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
    """Fifos keep the order of what waits, also when they have gone round their room."""
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
    with pytest.raises(ProtocolError, match=f"window must be 1 to 8388607, got {window}"):
        Agent(window=window)
