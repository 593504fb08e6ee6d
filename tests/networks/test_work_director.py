"""Graphs of work on a virtual network: each meeting's data, order and time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.core.tensors import INT32, Array
from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.workload.graph import (
    CalledCollective,
    CallGroup,
    Graph,
    NodeKind,
    RankWork,
    WorkNode,
)
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.hosts.workload.meetings import match
from ringleaf.networks.endpoints.desks import Score, find_teams
from ringleaf.networks.endpoints.work import WorkDirector
from ringleaf.networks.flow.network import FlowNetwork
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies import registry

GRAPH = registry.build("leafspine,leaves=1,spines=0,hosts=4", rate_bps=10**11, delay_ps=10**6)


def graph(*ranks: Sequence[WorkNode], groups: Sequence[tuple[int, ...]] = ()) -> Graph:
    works = tuple(RankWork(tuple(nodes)) for nodes in ranks)
    return Graph("hand", works, tuple(CallGroup(f"g{i}", each) for i, each in enumerate(groups)))


def compute(number: int, time_ps: int, *after: int) -> WorkNode:
    return WorkNode(number, NodeKind.COMPUTE, duration_ps=time_ps, after=after)


def call(number: int, what: CalledCollective, size: int, *after: int, group: int = 0) -> WorkNode:
    return WorkNode(
        number, NodeKind.COLLECTIVE, size_bytes=size, call=what, group=group, after=after
    )


def send(number: int, peer: int, size: int, *after: int) -> WorkNode:
    return WorkNode(number, NodeKind.SEND, size_bytes=size, peer=peer, after=after)


def receive(number: int, peer: int, size: int, *after: int) -> WorkNode:
    return WorkNode(number, NodeKind.RECEIVE, size_bytes=size, peer=peer, after=after)


def schedule_for(meeting: MatchedWork, elements: int) -> Schedule:
    if meeting.call is None:
        return Schedule(Collective.BROADCAST, "message", 2, 1, [Transfer(0, 0, 1, 0, Op.COPY)])
    return ALGORITHMS["ring"].build(len(meeting.ranks), size_bytes=4 * elements)


class Ledger:
    """Rank r brings r + 1 to each meeting; results are the sum, or what the sender brings."""

    def __init__(self, made: Graph) -> None:
        self._meetings = match(made).meetings
        self.checked: list[int] = []

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        for rank, tensor in zip(self._meetings[number].ranks, tensors, strict=True):
            tensor[:] = rank + 1

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        meeting = self._meetings[number]
        brought = [rank + 1 for rank in meeting.ranks]
        wanted = sum(brought) if meeting.call else brought[0]
        taking = tensors if meeting.call else tensors[1:]
        assert all((tensor == wanted).all() for tensor in taking)
        self.checked.append(number)


def run(
    made: Graph,
    ledger: Ledger | None = None,
    on: type[VirtualNetwork] | type[FlowNetwork] = VirtualNetwork,
    **options: object,
) -> tuple[WorkDirector, Ledger]:
    matched = match(made)
    groups = [
        Group(1, tuple(f"h{rank}" for rank in team.ranks), (), None) for team in find_teams(matched)
    ]
    network = on(GRAPH, NetworkOptions(**options), groups=groups)  # type: ignore[arg-type]
    score = Score(matched, lambda meeting: meeting.size_bytes // 4, schedule_for, INT32)
    ledger = ledger or Ledger(made)
    director = WorkDirector(network.endpoints, score, ledger)
    network.play(director)
    assert not director.replay.left
    return director, ledger


def spans(director: WorkDirector, rank: int) -> list[tuple[int, int]]:
    return [(each.start_ps, each.end_ps) for each in director.replay.times[rank]]


EVERYTHING = graph(
    [
        compute(0, 10 * PS_PER_US),
        call(1, CalledCollective.ALLREDUCE, 40_000, 0),
        send(2, 3, 8000, 1),
    ],
    [
        call(1, CalledCollective.ALLREDUCE, 40_000),
        call(2, CalledCollective.ALLREDUCE, 400, group=1),
    ],
    [call(1, CalledCollective.ALLREDUCE, 40_000), compute(2, 5 * PS_PER_US)],
    [
        call(2, CalledCollective.ALLREDUCE, 400, group=1),
        receive(3, 0, 8000),
        compute(4, PS_PER_US, 3),
    ],
    groups=[(0, 1, 2), (3, 1)],
)


def test_everything_meets_with_the_right_data() -> None:
    director, ledger = run(EVERYTHING)

    assert sorted(ledger.checked) == [0, 1, 2]
    first, reduced, sent = spans(director, 0)
    assert first == (0, 10 * PS_PER_US)
    assert reduced[0] >= first[1]
    assert sent[0] >= reduced[1]
    arrived, after = spans(director, 3)[1:]
    assert arrived[0] == sent[0]
    assert sent[0] + 2 * PS_PER_US < arrived[1] < sent[0] + 4 * PS_PER_US
    assert after == (arrived[1], arrived[1] + PS_PER_US)
    assert spans(director, 2)[1] == (0, 5 * PS_PER_US)
    small = spans(director, 1)[1]
    assert small[0] == 0
    assert small[1] < 10 * PS_PER_US


class Unchecked(Ledger):
    """There are no data."""

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        pass

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        pass


@pytest.mark.parametrize("options", [{"threads": 2}, {"has_data": False}])
def test_times_are_the_same_with_threads_and_without_data(options: dict[str, Any]) -> None:
    usual, _ = run(EVERYTHING)
    other, _ = run(EVERYTHING, Unchecked(EVERYTHING), **options)

    assert [spans(other, rank) for rank in range(4)] == [spans(usual, rank) for rank in range(4)]


def test_a_call_after_messages_from_another_region_begins_when_it_does_in_one_thread() -> None:
    """A receiver's part of a message is over before the sender's, which is in another region.

    Computations end at 3.09 us, in the fourth window: of 1 us, and 84 bytes at 100 Gbit/s.
    """
    made = graph(
        [send(0, 2, 8000)],
        [send(0, 3, 8000)],
        *(
            [
                receive(0, sender, 8000),
                compute(1, PS_PER_US // 10, 0),
                call(2, CalledCollective.ALLREDUCE, 40_000, 1),
            ]
            for sender in (0, 1)
        ),
        groups=[(2, 3)],
    )
    alone, together = (run(made, threads=number)[0] for number in (1, 2))

    assert [spans(together, rank) for rank in (2, 3)] == [spans(alone, rank) for rank in (2, 3)]
    assert spans(alone, 2)[2][0] == 4 * (PS_PER_US + 6720) - 1
    _, computed, called = spans(run(made, on=FlowNetwork)[0], 2)
    assert called[0] == computed[1]  # flows have no windows


def test_a_team_s_meetings_run_one_after_the_other() -> None:
    calls = [call(number, CalledCollective.ALLREDUCE, 40_000) for number in range(3)]
    director, _ = run(graph(calls, calls, groups=[(0, 1)]))

    found = spans(director, 0)
    assert all(one[1] <= two[0] <= one[1] + PS_PER_US for one, two in pairwise(found))
    assert found == spans(director, 1)


def test_messages_in_opposite_directions_overlap() -> None:
    """Each takes the line's time of 100 kB, 8 us, and some microseconds."""
    director, _ = run(
        graph(
            [send(0, 1, 100_000), receive(1, 1, 100_000)],
            [receive(0, 0, 100_000), send(1, 0, 100_000)],
        )
    )

    assert [start for start, _ in spans(director, 0)] == [0, 0]
    assert all(8 * PS_PER_US < end < 15 * PS_PER_US for _, end in spans(director, 0))


def test_a_rank_alone_has_nothing_to_wait_for() -> None:
    director, ledger = run(
        graph(
            [compute(0, 7), call(1, CalledCollective.ALLREDUCE, 4000, 0), compute(2, 5, 1)],
            [call(0, CalledCollective.ALLREDUCE, 40, group=1)],
            [call(0, CalledCollective.ALLREDUCE, 40, group=1)],
            groups=[(0,), (1, 2)],
        )
    )

    assert spans(director, 0) == [(0, 7), (7, 7), (7, 12)]
    assert ledger.checked == [1]


def test_memory_is_used_again() -> None:
    """A hundred meetings of 1 MB have memory for one."""
    calls = [call(number, CalledCollective.ALLREDUCE, 1 << 20) for number in range(100)]
    matched = match(graph(calls, calls, groups=[(0, 1)]))
    network = VirtualNetwork(
        GRAPH, NetworkOptions(has_data=False), groups=[Group(1, ("h0", "h1"), (), None)]
    )
    score = Score(matched, lambda meeting: meeting.size_bytes // 4, schedule_for, INT32)
    WorkDirector(network.endpoints, score, Ledger(matched.graph))

    assert network.store.memory_used < 4 << 20
