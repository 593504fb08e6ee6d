"""Senders are woken, a step at a time, by hand: pacing, deadlines, acknowledgements and NAKs."""

from __future__ import annotations

import pytest
from rc_agent import LEAST_PS, MTU, RNR_PS, Agent

import ringleaf.hosts.rc.state as q
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    PROGRESS,
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
)
from ringleaf.hosts.rc import queue, sender, wire


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
    """Only those queue pairs keep to it, together, in a ring."""
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
