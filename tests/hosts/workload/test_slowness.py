"""Hosts that compute slowly for a while: by hand, and against a clock of small steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.faults import parse_faults
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import Graph, NodeKind, RankWork, WorkNode
from ringleaf.hosts.workload.meetings import match
from ringleaf.hosts.workload.replay import WorkReplay
from ringleaf.hosts.workload.slowness import Slowness, SlowSpan, slowness_of


@pytest.mark.parametrize(
    ("start", "work", "end"),
    [
        (0, 10, 10),  # over before
        (0, 20, 20 + 10),  # 10, then 10 at half of the pace
        (20, 20, 60),  # all of it at half
        (0, 50, 10 + 60 + 10),  # 10, 30 in 60, and 10
        (70, 5, 75),  # begins when it is over
    ],
)
def test_by_hand(start: int, work: int, end: int) -> None:
    slow = Slowness({1: [SlowSpan(10, 70, 2.0)]})
    assert slow.end_ps(1, start, work) == end
    assert slow.end_ps(0, start, work) == start + work


@given(
    edges=st.lists(st.integers(0, 200), min_size=4, max_size=4, unique=True).map(sorted),
    times=st.tuples(st.sampled_from([2, 4, 5]), st.sampled_from([2, 4, 5])),
    start=st.integers(0, 150),
    work=st.integers(0, 100),
)
def test_against_a_clock_of_small_steps(
    edges: list[int], times: tuple[int, int], start: int, work: int
) -> None:
    spans = [SlowSpan(edges[0], edges[1], times[0]), SlowSpan(edges[2], edges[3], times[1])]
    slow = Slowness({0: spans})

    now, done = start, 0.0
    while done < work - 1e-9:
        done += 1 / slow.times_at(0, now)
        now += 1

    assert abs(slow.end_ps(0, start, work) - now) <= 2 * 5  # steps, and what is rounded per span


def test_long_computations_stay_exact() -> None:
    assert Slowness({}).end_ps(0, 1, 10**17 + 1) == 10**17 + 2


def test_a_replay_takes_the_slow_ranks_times() -> None:
    nodes = tuple(
        WorkNode(number, NodeKind.COMPUTE, duration_ps=100, after=(number - 1,) if number else ())
        for number in range(3)
    )
    graph = Graph("two", (RankWork(nodes), RankWork(nodes)))
    faults = parse_faults("h7 slow 3 at 100ps for 150ps", "faults")
    replay = WorkReplay(match(graph), slowness_of(faults, ["h5", "h7"]))

    replay.start(0)
    while replay.left:
        replay.reach(replay.next_ps())

    assert [each.end_ps for each in replay.times[0]] == [100, 200, 300]
    assert [each.end_ps for each in replay.times[1]] == [100, 300, 400]  # 50 of 100 in 150


def test_faults_that_make_no_sense_are_refused() -> None:
    twice = parse_faults("h0 slow 2 at 1ms for 5ms, h0 slow 3 at 2ms", "faults")
    with pytest.raises(ConfigError, match="must not be slow twice at a time, got 2 and 3"):
        slowness_of(twice, ["h0"])
    with pytest.raises(ConfigError, match="slow is for hosts that compute, got 's0 slow 2"):
        slowness_of(parse_faults("s0 slow 2", "faults"), ["h0"])
    with pytest.raises(ConfigError, match="must be more than 1, up to 1e\\+06 times, got '1'"):
        parse_faults("h0 slow 1", "faults")


def test_slow_faults_are_written_as_they_are_read() -> None:
    [fault] = parse_faults("h3 slow 2.5x at 1ms for 2ms every 5ms times 3", "faults")
    assert parse_faults(str(fault), "faults") == (fault,)
    assert fault.value == 2.5
