"""Which nodes meet, and errors that name file, rank and node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_graphs import call, compute, graph, graphs, play, receive, send
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.graph import CalledCollective, Graph
from ringleaf.hosts.workload.meetings import match
from ringleaf.hosts.workload.order import program_order


def test_calls_of_a_group_meet_in_the_order_of_nodes() -> None:
    both = (0, 1)
    made = graph(
        [call(5, CalledCollective.ALLREDUCE, 8), call(7, CalledCollective.BROADCAST, 4, root=1)],
        [
            call(1, CalledCollective.ALLREDUCE, 8),
            compute(2, 9),
            call(3, CalledCollective.BROADCAST, 4, root=1),
        ],
        groups=[both],
    )

    first, second = match(made).meetings

    assert (first.call, first.ranks, first.places) == (CalledCollective.ALLREDUCE, both, (0, 0))
    assert (second.call, second.places, second.root) == (CalledCollective.BROADCAST, (1, 2), 1)


def test_messages_meet_by_sender_receiver_and_tag() -> None:
    made = graph(
        [send(0, 1, 10, tag=7), send(1, 1, 20), send(2, 1, 30, tag=7)],
        [receive(0, 0, 20), receive(1, 0, 10, tag=7), receive(2, 0, 30, tag=7)],
    )

    found = {each.size_bytes: each.places for each in match(made).meetings}

    assert found == {10: (0, 1), 20: (1, 0), 30: (2, 2)}


def test_nodes_that_wait_for_later_ones_meet_after_them() -> None:
    """Rank 0 sends its second message first, as its first one waits for what follows that."""
    made = graph(
        [send(1, 1, 10, 3), send(2, 1, 10), compute(3, 1000, 2)],
        [receive(1, 0, 10), compute(2, 1000, 1), receive(3, 0, 10, 1)],
    )

    assert {each.places for each in match(made).meetings} == {(1, 0), (0, 2)}
    replayed = play(match(made))
    assert max(each.end_ps for times in replayed.times for each in times) == 1000


def test_calls_may_stand_in_another_order_than_they_are_made() -> None:
    what = CalledCollective.ALLREDUCE
    made = graph(
        [call(1, what, 8, 2), call(2, what, 8)], [call(2, what, 8), call(1, what, 8)],
        groups=[(0, 1)],
    )  # fmt: skip

    assert [each.places for each in match(made).meetings] == [(1, 0), (0, 1)]


@given(st.permutations(range(6)), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_program_order_is_the_file_s_as_far_as_waits_allow(
    names: list[int], pairs: set[tuple[int, int]]
) -> None:
    """Waits are from later to earlier names, so there is no circle; the least place comes next."""
    after: list[list[int]] = [[] for _ in names]
    for a, b in pairs:
        if names[a] > names[b]:
            after[a].append(b)
    places = tuple(tuple(sorted(each)) for each in after)
    order: list[int] = []
    while len(order) < len(names):
        order.append(min(p for p in range(6) if p not in order and {*places[p]} <= {*order}))

    assert list(program_order(places, ((),) * 6)) == order


BROKEN: list[tuple[Graph, str]] = [
    (graph([compute(4, 1), compute(4, 2)]), r"0\.et: rank 0, node 4: .* unique"),
    (graph([compute(4, 1, 9)]), r"0\.et: rank 0, node 4: depends .* not there, got 9"),
    (graph([compute(4, -1)]), r"0\.et: rank 0, node 4: computations .* got -1 ps"),
    (graph([compute(4, 10**18), compute(5, 1)]), "rank 0, node 5: .* together, .* got 1 ps"),
    (graph([send(3, 0, -1)]), "rank 0, node 3: must have 0 to 68719476736 bytes, got -1"),
    (graph([send(3, 0, 1 << 37)]), "rank 0, node 3: must have 0 to 6.* got 137438953472"),
    (graph([send(3, 5, 8)]), r"0\.et: rank 0, node 3: its peer .* of 1 rank, got 5"),
    (graph([send(3, 0, 8)]), r"node 3: its peer must be another of 1 rank, got 0"),
    (graph([], groups=[(0, 0)]), "hand: group 'g0': ranks must differ .* got 0, 0"),
    (graph([], groups=[(0, 3)]), "hand: group 'g0': .* below 1, got 0, 3"),
    (
        graph([call(1, CalledCollective.ALLREDUCE, 8)], [], groups=[(1,)]),
        r"0\.et: rank 0, node 1: the rank must be in group 'g0'",
    ),
    (
        graph([call(1, CalledCollective.ALLREDUCE, 8, group=2)], groups=[(0,)]),
        "rank 0, node 1: must have a collective and a group, got group 2",
    ),
    (
        graph([call(1, CalledCollective.REDUCE, 8, root=1)], [], groups=[(0,)]),
        "rank 0, node 1: its root must be in group 'g0', got rank 1",
    ),
    (
        graph([call(1, CalledCollective.ALLREDUCE, 8)],
              [call(2, CalledCollective.ALLREDUCE, 12)], groups=[(0, 1)]),
        r"1\.et: rank 1, node 2: must be the same call in group 'g0' as allreduce of 8 bytes of "
        r"0\.et: rank 0, node 1, got allreduce of 12 bytes",
    ),
    (
        graph([call(1, CalledCollective.REDUCE, 8, root=0)],
              [call(2, CalledCollective.REDUCE, 8, root=1)], groups=[(0, 1)]),
        "rank 1, node 2: .* with root 0 .*, got reduce of 8 bytes with root 1",
    ),
    (
        graph([call(1, CalledCollective.ALLREDUCE, 8), call(3, CalledCollective.BARRIER, 0)],
              [call(2, CalledCollective.ALLREDUCE, 8)], groups=[(0, 1)]),
        r"0\.et: rank 0, node 3: call 2 in group 'g0' .* got 1 call of rank 1 \(1\.et\)",
    ),
    (
        graph([send(1, 1, 8, tag=3)], [receive(2, 0, 8, tag=4)]),
        r"0\.et: rank 0, node 1: rank 1 \(1\.et\) must receive it, got no such node with tag 3",
    ),
    (
        graph([], [receive(2, 0, 8)]),
        r"1\.et: rank 1, node 2: rank 0 \(0\.et\) must send it",
    ),
    (
        graph([send(1, 1, 8)], [receive(2, 0, 7)]),
        r"1\.et: rank 1, node 2: must be as long as its message or longer, 8 bytes .*, got 7",
    ),
    (
        graph([compute(1, 5, 3), compute(2, 5, 1), compute(3, 5, 2)]),
        r"0\.et: rank 0, node \d: nodes must not wait for each other in a circle.*rank 0, node",
    ),
    (
        graph([receive(1, 1, 8), send(2, 1, 8, 1)], [receive(3, 0, 8), send(4, 0, 8, 3)]),
        r"circle, got it waiting for rank \d, node \d",
    ),
    (
        graph(
            [call(1, CalledCollective.ALLREDUCE, 8),
             call(2, CalledCollective.ALLREDUCE, 8, 1, group=1)],
            [call(3, CalledCollective.ALLREDUCE, 8, 4),
             call(4, CalledCollective.ALLREDUCE, 8, group=1)],
            groups=[(0, 1), (0, 1)],
        ),
        "circle",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "message"), BROKEN)
def test_a_graph_that_would_wait_forever_is_refused(made: Graph, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        match(made)


def test_a_receive_may_be_longer_than_its_message_which_counts() -> None:
    """As in MPI, whose traces have the lengths of buffers."""
    (meeting,) = match(graph([send(1, 1, 8)], [receive(2, 0, 4096)])).meetings

    assert meeting.size_bytes == 8


RING = range(4)

SENDS_FIRST = graph(
    *([send(0, (rank + 1) % 4, 8), receive(1, (rank + 3) % 4, 8, 0)] for rank in RING)
)

LEGAL: list[Graph] = [
    SENDS_FIRST,
    graph(  # MPI_Irecv, MPI_Send on all ranks
        *(
            [receive(0, (rank + 3) % 4, 8), replace(send(1, (rank + 1) % 4, 8), begun=(0,))]
            for rank in RING
        )
    ),
    graph(  # the second message is received first
        [send(0, 1, 8, tag=1), send(1, 1, 8, 0, tag=2)],
        [receive(0, 0, 8, tag=2), receive(1, 0, 8, 0, tag=1)],
    ),
    graph(  # a computation on each side, which waits for the other one's message by way of a third
        [send(0, 1, 8), receive(1, 2, 8, 0), compute(2, 5, 1)],
        [send(0, 2, 8), receive(1, 0, 8, 0)],
        [send(0, 0, 8), receive(1, 1, 8, 0)],
    ),
    graph(  # a collective between the send and its receive
        [send(0, 1, 8), call(1, CalledCollective.ALLREDUCE, 8, 0)],
        [call(0, CalledCollective.ALLREDUCE, 8), receive(1, 0, 8, 0)],
        groups=[(0, 1)],
    ),
]


@pytest.mark.parametrize("made", LEGAL)
def test_a_send_does_not_wait_for_its_receive(made: Graph) -> None:
    assert not play(match(made)).left


@pytest.mark.parametrize("made", [*LEGAL[:1], *LEGAL[2:]])
def test_a_message_beyond_the_limit_waits_for_its_receive(made: Graph) -> None:
    match(made, 8)
    with pytest.raises(ConfigError, match=r"in a circle.*; remove a dependency, or make"):
        match(made, 7)


def test_a_receive_that_has_begun_lets_others_begin_whatever_the_limit() -> None:
    """The begin of a node is not its end: a rank that only waits for begins is in no circle."""
    assert not play(match(LEGAL[1], 0)).left


CIRCLES: list[Graph] = [
    graph(  # all receive first
        *([receive(0, (rank + 3) % 4, 8), send(1, (rank + 1) % 4, 8, 0)] for rank in RING)
    ),
    graph(  # by way of a computation, and of its begin
        [receive(0, 1, 8), compute(1, 5, 0), replace(send(2, 1, 8), begun=(1,))],
        [receive(0, 0, 8), send(1, 0, 8, 0)],
    ),
    graph(  # the message after the collective would have to be there before it
        [call(0, CalledCollective.ALLREDUCE, 8), send(1, 1, 8, 0)],
        [receive(0, 0, 8), call(1, CalledCollective.ALLREDUCE, 8, 0)],
        groups=[(0, 1)],
    ),
    graph([receive(0, 1, 8, 1), replace(compute(1, 5), begun=(0,))], [send(0, 0, 8)]),
]


@pytest.mark.parametrize("made", CIRCLES)
def test_true_circles_are_refused(made: Graph) -> None:
    with pytest.raises(ConfigError, match=r"in a circle, .*; remove a dependency$"):
        match(made)


@given(graphs())
def test_whatever_matches_ends(made: Graph) -> None:
    replay = play(match(made))

    assert all(times.end_ps >= times.start_ps >= 0 for ranks in replay.times for times in ranks)


@given(graphs())
def test_no_node_begins_before_what_it_waits_for_has_ended(made: Graph) -> None:
    matched = match(made)
    replay = play(matched, lambda meeting: 7)

    for after, times in zip(matched.after, replay.times, strict=True):
        for own, needed in zip(times, after, strict=True):
            assert own.ready_ps == max((times[each].end_ps for each in needed), default=0)
            assert own.start_ps >= own.ready_ps
