"""Priorities and congestion controllers, a step at a time, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from rc_agent import MTU, Address, Agent, Told, head_of

import ringleaf.hosts.congestion.control as c
import ringleaf.hosts.rc.state as q
from ringleaf.core.headers import IP_TOS_AT, UDP_LENGTH_AT, get16
from ringleaf.core.packets import open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    PAUSED,
    READY,
    TIMER_AT_PS,
)
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_WORDS, open_fifo
from ringleaf.hosts.rc import congestion, queue, wire


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
@pytest.mark.parametrize("strict", [True, False])
def test_a_priority_changes_only_when_no_packet_overtakes_another(
    acked: int, wanted: int, taken: int, strict: bool
) -> None:
    """It rises when nothing is in flight, and falls at once only where classes are strict."""
    agent = Agent(strict_classes=strict)
    qp = agent.qp()
    rc.set_priority(agent.arena, agent.at, 0, 4)
    qp.state[[q.ACKED_PSN, q.SENT_PSN]] = acked, 5
    congestion.take_priority(agent.arena, agent.at, qp, wanted)
    if wanted < 4 and not strict:
        taken = 4
    assert qp.state[q.PRIORITY] == taken
    template = int(qp.state[q.TEMPLATE_AT])
    assert agent.arena.bytes[template + IP_TOS_AT] >> 5 == taken


def test_without_strict_classes_a_priority_falls_when_all_is_acknowledged() -> None:
    agent = Agent(strict_classes=False)
    rc.set_priority(agent.arena, agent.at, 0, 4)
    agent.qp().state[[q.ACKED_PSN, q.SENT_PSN]] = 5
    congestion.take_priority(agent.arena, agent.at, agent.qp(), 2)
    assert agent.qp().state[q.PRIORITY] == 2


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
