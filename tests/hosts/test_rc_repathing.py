"""Queue pairs that take another UDP source port, and so another path, if nothing gets through."""

from __future__ import annotations

import pytest
from rc_agent import MTU, Agent, head_of

import ringleaf.hosts.rc.state as q
from ringleaf.core.headers import UDP_SRC_AT
from ringleaf.hosts.agent import REPATHS
from ringleaf.hosts.rc import receiver, repathing, wire
from ringleaf.hosts.rc.queue import offer

FIRST = 0xC000


def asking(after: int) -> Agent:
    agent = Agent()
    agent.arena.words[agent.at + q.REPATH_AFTER] = after
    agent.qp().state[q.LIMIT] = 9
    agent.post(MTU)
    agent.send()
    return agent


def probe(agent: Agent) -> int:
    """Have a probe sent; return its source port."""
    agent.qp().state[q.PROBING] = 1
    agent.qp().state[q.IN_SENDERS] = 0
    offer(agent.arena, agent.at, 0, agent.qp(), 0)
    sent = agent.send()
    assert sent[wire.OPCODE_AT] == wire.PROBE
    return int.from_bytes(sent[UDP_SRC_AT : UDP_SRC_AT + 2])


@pytest.mark.parametrize(
    ("after", "changes"),
    [(0, [0, 0, 0, 0, 0]), (1, [0, 1, 2, 3, 4]), (2, [0, 0, 1, 1, 2])],
)
def test_probes_without_an_answer_lead_to_another_port(after: int, changes: list[int]) -> None:
    agent = asking(after)
    ports = [probe(agent) for _ in changes]
    kinds = [ports[changes.index(change)] for change in changes]
    assert ports == kinds
    assert len(set(ports)) == changes[-1] + 1
    assert agent.word(REPATHS) == changes[-1]


def test_an_answer_keeps_the_path() -> None:
    agent = asking(1)
    first = probe(agent)
    agent.answer(0, wire.ACK)
    agent.post(MTU)
    agent.send()
    assert probe(agent) == first


def test_one_who_is_asked_again_in_vain_answers_by_another_port() -> None:
    """The first probe may have come late; the second shows that its answer was lost."""
    agent = asking(1)
    head = head_of(0, opcode=wire.PROBE)
    for expected, moved in ((3, 0), (3, 1), (3, 2), (4, 2), (4, 3)):
        agent.qp().state[q.EXPECTED_PSN] = expected
        receiver.receive_probe(agent.arena, agent.at, 0, agent.qp(), head)
        assert agent.word(REPATHS) == moved


def test_all_ports_come_in_turn() -> None:
    port, seen = FIRST, set()
    for _ in range(1 << 14):
        seen.add(port)
        port = int(repathing.next_port(port))
    assert seen == set(range(FIRST, FIRST + (1 << 14)))


@pytest.mark.parametrize(("after", "doublings"), [(0, 5), (1, 0)])
def test_timeouts_do_not_back_off_while_other_paths_are_tried(after: int, doublings: int) -> None:
    agent = asking(after)
    for _ in range(5):
        probe(agent)
    gap = agent.qp().state[q.TIMEOUT_PS] << doublings
    assert agent.qp().state[q.DEADLINE_PS] == gap
