"""Ranks' clocks: computations one at a time per stream, communication beside them."""

from __future__ import annotations

from dataclasses import replace

from hand_graphs import call, compute, graph, play, receive, send

from ringleaf.hosts.workload.graph import CalledCollective, Graph
from ringleaf.hosts.workload.meetings import match
from ringleaf.hosts.workload.replay import WorkReplay


def spans(made: Graph, takes_ps: int = 0) -> list[list[tuple[int, int]]]:
    replay = play(match(made), lambda meeting: takes_ps)
    return [[(each.start_ps, each.end_ps) for each in times] for times in replay.times]


def test_computations_run_one_at_a_time_in_program_order() -> None:
    made = graph([compute(0, 10), compute(1, 5), compute(2, 3, 0)])

    assert spans(made) == [[(0, 10), (10, 15), (15, 18)]]


def test_streams_run_beside_each_other() -> None:
    made = graph([compute(0, 10), compute(1, 5, stream=1), compute(2, 3, 1)])

    assert spans(made) == [[(0, 10), (0, 5), (10, 13)]]


def test_what_may_run_does_not_wait_for_what_may_not() -> None:
    """Rank 0's node 1 waits for a message of rank 1, and node 2 goes first."""
    made = graph(
        [receive(0, 1, 8), compute(1, 4, 0), compute(2, 6)],
        [compute(0, 3), send(1, 0, 8, 0)],
    )

    assert spans(made, 2) == [[(3, 5), (6, 10), (0, 6)], [(0, 3), (3, 5)]]


def test_a_collective_begins_with_its_last_rank_and_overlaps_with_computations() -> None:
    made = graph(
        [
            compute(0, 4),
            call(1, CalledCollective.ALLREDUCE, 8, 0),
            compute(2, 10),
            compute(3, 1, 1),
        ],
        [compute(0, 9), call(1, CalledCollective.ALLREDUCE, 8, 0)],
        groups=[(0, 1)],
    )

    assert spans(made, 20) == [[(0, 4), (9, 29), (4, 14), (29, 30)], [(0, 9), (9, 29)]]


def test_an_end_that_was_reported_late_lets_go_from_its_true_time() -> None:
    made = graph(
        [receive(0, 1, 8), compute(1, 4, 0)],
        [send(0, 0, 8), compute(1, 100)],
    )
    replay = WorkReplay(match(made))
    replay.start(0)
    [number] = replay.take_ready()
    replay.begin(number, 0)
    replay.finish(number, 30)  # now it is 50, say
    replay.reach(50)

    assert (replay.times[0][1].start_ps, replay.times[0][1].end_ps) == (30, 34)
    assert replay.next_ps() == 100


def test_a_message_that_comes_first_waits_for_its_receiver() -> None:
    made = graph(
        [send(0, 1, 8), compute(1, 5, 0)],
        [compute(0, 40), receive(1, 0, 8, 0), receive(2, 0, 8, 1, tag=1), compute(3, 2, 2)],
    )
    made = graph([*made.ranks[0].nodes, send(2, 1, 8, tag=1)], made.ranks[1].nodes)
    replay = WorkReplay(match(made))
    replay.start(0)
    assert sorted(replay.take_ready()) == [0, 1]
    for number in (0, 1):
        replay.begin(number, 0)
        replay.end_for(number, 0, 3)
        replay.end_for(number, 1, 9)
    assert [each.end_ps for each in replay.times[0]] == [3, -1, 3]
    assert replay.times[0][1].start_ps == 3
    replay.reach(40)
    assert [(each.ready_ps, each.end_ps) for each in replay.times[1][1:3]] == [(40, 40)] * 2
    assert (replay.times[1][3].start_ps, replay.next_ps()) == (40, 42)


def test_a_receiver_that_waits_has_its_message_on_the_wire_from_its_begin() -> None:
    made = graph([compute(0, 10), send(1, 1, 8, 0)], [receive(0, 0, 8)])
    replay = WorkReplay(match(made))
    replay.start(0)
    assert not replay.take_ready()
    replay.reach(10)
    [number] = replay.take_ready()
    replay.begin(number, 10)
    replay.finish(0, 30)

    come = replay.times[1][0]
    assert (come.ready_ps, come.start_ps, come.end_ps) == (0, 10, 30)
    assert (replay.over_ps, replay.left) == ([30], 0)


def test_a_rank_s_computations_may_end_before_others() -> None:
    made = graph([compute(0, 5), compute(1, 0, 0), compute(2, 5, 1)], [compute(0, 5)])
    replay = WorkReplay(match(made))
    replay.start(0)
    replay.reach_on(0, 5)

    assert [each.end_ps for each in replay.times[0]] == [5, 5, -1]
    assert replay.times[1][0].end_ps == -1
    assert replay.next_ps() == 5
    replay.reach(5)
    assert replay.times[1][0].end_ps == 5
    assert replay.next_ps() == 10
    assert replay.take_computing() == [(0, 5), (1, 5), (0, 5), (0, 10)]


def test_streams_whose_computations_wait_for_a_begin_run_once() -> None:
    """The begin of one lets another begin on a stream that is free; both streams had some."""
    first = compute(0, 10)
    second = replace(compute(1, 5, stream=1), begun=(0,))
    made = graph([first, second, compute(2, 3, stream=1)])

    assert spans(made) == [[(0, 10), (0, 5), (5, 8)]]


def test_a_node_may_wait_for_a_begin() -> None:
    """As GOAL's irequires: node 1 begins with node 0, not after it; so does what waits for it."""
    other = replace(compute(1, 5, stream=1), begun=(0,))
    third = replace(compute(2, 5, stream=2), begun=(1,))
    made = graph([compute(3, 2), compute(0, 10, 3), other, third])

    assert spans(made) == [[(0, 2), (2, 12), (2, 7), (2, 7)]]


def test_a_message_has_begun_when_its_rank_arrives() -> None:
    """A thousand sends, each of which waits for the begin of the one before."""
    count = 1000
    sends = [send(0, 1, 8)] + [replace(send(i, 1, 8), begun=(i - 1,)) for i in range(1, count)]
    made = graph(sends, [receive(i, 0, 8) for i in range(count)])

    assert spans(made, 5)[0] == [(0, 5)] * count
