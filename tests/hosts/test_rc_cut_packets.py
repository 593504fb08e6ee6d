"""Packets that switches have cut, a step at a time, by hand: asked for, counted, told of."""

from __future__ import annotations

import pytest
from rc_agent import MTU, Address, Agent, Told, head_of

import ringleaf.hosts.congestion.control as c
import ringleaf.hosts.rc.state as q
from ringleaf.core.headers import IP_TOS_AT
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    READY,
)
from ringleaf.hosts.rc import trimming, wire


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


def test_a_packet_that_is_cut_again_is_followed_by_half_as_many() -> None:
    """Of eight packets the third is cut; what is acknowledged ends the caution."""
    agent = Agent(window=7)
    agent.qp().state[q.LIMIT] = 9
    agent.post(8 * MTU)
    state = agent.qp().state

    def sent_after_notice(psn: int) -> list[int]:
        head = head_of(psn, 1, 1, opcode=wire.CUT)
        trimming.receive_cut_notice(agent.arena, agent.at, 0, agent.qp(), head, 50)
        return sent()

    def sent() -> list[int]:
        return [int.from_bytes(each[wire.PSN_AT :][:3]) for each in iter(agent.send, b"")]

    assert sent() == [0, 1, 2, 3, 4, 5, 6]
    assert sent_after_notice(2) == [2, 3, 4, 5, 6]
    assert sent_after_notice(2) == [2, 3, 4]
    for _ in range(3):
        assert sent_after_notice(2) == [2]
    agent.answer(1, wire.ACK)
    assert sent() == [3, 4, 5, 6, 7]
    assert sent_after_notice(2) == [2, 3, 4]
    assert state[q.RETRIES] == 1


def test_a_packet_that_is_cut_too_often_waits_for_a_probe() -> None:
    """Its notices may be copies, each of which would have it sent again."""
    agent = Agent(window=3)
    agent.qp().state[q.LIMIT] = 9
    agent.post(3 * MTU)
    for _ in range(3):
        agent.send()
    head = head_of(1, 1, 1, opcode=wire.CUT)
    sent = 0
    for _ in range(100):
        trimming.receive_cut_notice(agent.arena, agent.at, 0, agent.qp(), head, 50)
        sent += sum(1 for _ in iter(agent.send, b""))
    assert sent == 2 + trimming.MOST_RETRIES
    agent.qp().state[q.PROBES] = 1
    agent.answer(0, wire.SEQUENCE_NAK)
    assert sum(1 for _ in iter(agent.send, b"")) == 2, "the first, and the one that was cut"


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
