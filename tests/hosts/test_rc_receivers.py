"""Receivers, a step at a time, by hand: where data lands, and which answers are owed."""

from __future__ import annotations

import numpy as np
import pytest
from rc_agent import MTU, Agent, head_of

import ringleaf.hosts.congestion.control as c
import ringleaf.hosts.rc.state as q
from ringleaf.core.headers import UDP_LENGTH_AT, put16
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    READY,
    REFUSALS,
    TIMER_AT_PS,
    take_completions,
)
from ringleaf.hosts.fifo import FIFO_COUNT, open_fifo
from ringleaf.hosts.rc import congestion, queue, receiver, wire


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
