"""Eager messages that a coordinator leads, over a wire in memory: hosts are late, in any order."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from heapq import heappop, heappush

from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.arena import Store
from ringleaf.core.packets import make_pool
from ringleaf.core.tensors import INT32, Array
from ringleaf.core.units import FOREVER_PS, PS_PER_MS
from ringleaf.hosts.workload.graph import Graph, NodeKind, RankWork, WorkNode
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.hosts.workload.meetings import match
from ringleaf.networks.endpoints.desks import Score, find_teams
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.work import WorkDirector
from ringleaf.networks.groups import Group
from ringleaf.networks.live.coordinator import Coordinator
from ringleaf.networks.live.orders import Begin, Left, PartDone
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies import registry

Said = Left | PartDone


def message(meeting: MatchedWork, elements: int) -> Schedule:
    return Schedule(Collective.BROADCAST, "message", 2, 1, [Transfer(0, 0, 1, 0, Op.COPY)])


class Ledger:
    """Senders bring the message's number, which receivers must have in the end."""

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        tensors[0][:], tensors[1][:] = number + 1, 0

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        assert (tensors[1] == number + 1).all()


class Wire:
    """Hosts that begin and end late; a message comes after it has left, wherever it is awaited."""

    def __init__(self, made: Graph, seed: int) -> None:
        graph = registry.build("leafspine,leaves=1,spines=0,hosts=3", rate_bps=10**7)
        store = Store(shared=True)
        make_pool(store, size=64, head_bytes=2048, field_count=0, lane_count=0)
        matched = match(made)
        groups = [
            Group(1, tuple(f"h{rank}" for rank in team.ranks), (), None)
            for team in find_teams(matched)
        ]
        self._endpoints = Endpoints(graph, store, NetworkOptions(), groups, rtt_ps=PS_PER_MS)
        score = Score(matched, lambda meeting: meeting.size_bytes // 4, message, INT32)
        self.director = WorkDirector(self._endpoints, score, Ledger())
        self._known = {each.at: each for each, _ in self.director.build()}
        self._coordinator = Coordinator(self.director, self._endpoints)
        self._rng = random.Random(seed)
        self._coming: list[tuple[int, int, int, Said, Begin]] = []  # a heap: heard, number, host
        self.left_ps: list[int] = []

    def run(self) -> None:
        now_ps = 0
        self._coordinator.start(0)
        while not self._coordinator.is_over:
            for hosts, order in self._coordinator.take_orders():
                assert isinstance(order, Begin)
                self._begin(
                    Begin(**json.loads(json.dumps(order.message()))["begin"]), hosts, now_ps
                )
            next_ps = self._coordinator.next_ps()
            if self._coming and self._coming[0][0] <= next_ps:
                now_ps, _, host, said, order = heappop(self._coming)
                self._hear(host, said, order, now_ps)
            else:
                assert next_ps < FOREVER_PS, "nobody will ever say anything"
                now_ps = max(next_ps, now_ps)
                self._coordinator.reach(now_ps)

    def _begin(self, order: Begin, hosts: Sequence[int], now_ps: int) -> None:
        place = order.group, order.channel
        assert order.tells
        sender_ps, receiver_ps = (now_ps + self._rng.randrange(PS_PER_MS) for _ in hosts)
        left_ps = sender_ps + self._rng.randrange(PS_PER_MS)
        come_ps = max(left_ps, receiver_ps) + self._rng.randrange(PS_PER_MS)
        self._say(hosts[0], Left(*place, left_ps), left_ps, order)
        self._say(hosts[1], PartDone(*place, receiver_ps, come_ps), come_ps, order)
        self._say(hosts[0], PartDone(*place, sender_ps, come_ps + 5), come_ps + PS_PER_MS, order)

    def _say(self, host: int, said: Said, at_ps: int, order: Begin) -> None:
        number = len(self._coming) + (self._rng.randrange(1 << 30) << 20)
        heappush(self._coming, (at_ps + self._rng.randrange(100), number, host, said, order))

    def _hear(self, host: int, said: Said, order: Begin, now_ps: int) -> None:
        if isinstance(said, Left):
            self.left_ps.append(said.left_ps)
            self._coordinator.hear_left(host, said, now_ps)
            return
        elements = self._known[order.at].plans.elements
        source, target = (
            self._endpoints.memory.view(address, elements, INT32) for address in order.tensors
        )
        target[:] = source
        self._coordinator.hear(host, said, now_ps)


def send(number: int, peer: int, *after: int) -> WorkNode:
    return WorkNode(number, NodeKind.SEND, size_bytes=8, peer=peer, after=after)


def receive(number: int, peer: int, *after: int) -> WorkNode:
    return WorkNode(number, NodeKind.RECEIVE, size_bytes=8, peer=peer, after=after)


def compute(number: int, time_ps: int, *after: int) -> WorkNode:
    return WorkNode(number, NodeKind.COMPUTE, duration_ps=time_ps, after=after)


MADE = Graph(
    "hand",
    (
        RankWork((send(0, 1), receive(1, 2, 0), compute(2, PS_PER_MS, 1), send(3, 1, 2))),
        RankWork((send(0, 2), receive(1, 0, 0), compute(2, 90 * PS_PER_MS), receive(3, 0, 1, 2))),
        RankWork((send(0, 0), receive(1, 1, 0))),
    ),
)
"""All ranks send first; then rank 1 is late for a second message."""


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_messages_leave_and_come_at_the_times_that_hosts_tell(seed: int) -> None:
    wire = Wire(MADE, seed)
    wire.run()
    times = wire.director.replay.times

    assert wire.director.replay.left == 0
    sends = [times[0][0], times[0][3], times[1][0], times[2][0]]
    assert sorted(each.end_ps for each in sends) == sorted(wire.left_ps)
    assert times[1][3].end_ps == 90 * PS_PER_MS, "it has been there for long"
    assert times[0][2].start_ps == times[0][1].end_ps
    assert times[1][1].ready_ps == times[1][0].end_ps
