"""Eager messages on a virtual network: times by hand, and random graphs.

A packet of 8 bytes has 66 bytes with its headers (14 + 20 + 8 + 12 + 8 + 4) and 24 more on the line
(preamble, checksum, gap): 7.2 ns at 100 Gbit/s. An acknowledgement has 4 bytes less.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_work_director import Ledger, Unchecked, compute, graph, receive, schedule_for, send

from ringleaf.core import compiled
from ringleaf.core.tensors import INT32
from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.hosts.workload.graph import Graph, NodeKind, WorkNode
from ringleaf.hosts.workload.meetings import match
from ringleaf.hosts.workload.replay import WorkReplay
from ringleaf.networks.endpoints.desks import Score, find_teams
from ringleaf.networks.endpoints.work import WorkDirector
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

BYTE_PS = 80
HEADERS = 14 + 20 + 8 + 12 + 4 + 24
ACK_PS = (HEADERS + 4) * BYTE_PS
FAST = settings(max_examples=5 if compiled.UNCOMPILED else 40, deadline=None)


def line_ps(size: int) -> int:
    """The time of a packet on a line of 100 Gbit/s."""
    return (HEADERS + size) * BYTE_PS


def hop_ps(size: int) -> int:
    """The time of a packet from a host to another one, over two lines of 1 us."""
    return 2 * (line_ps(size) + PS_PER_US)


def play(
    made: Graph,
    *,
    eager_bytes: int | None = None,
    queue_pairs: int = 1,
    until_acked: bool = False,
    **options: Any,
) -> WorkReplay:
    """Replay a graph on hosts below one switch; all data are checked."""
    matched = match(made, eager_bytes)
    names = [
        Group(1, tuple(f"h{rank}" for rank in team.ranks), (), None) for team in find_teams(matched)
    ]
    topology = build(f"leafspine,leaves=1,spines=0,hosts={len(made.ranks)}")
    network = VirtualNetwork(topology, NetworkOptions(**options), groups=names)
    score = Score(
        matched,
        lambda meeting: -(-meeting.size_bytes // 4),
        schedule_for,
        INT32,
        queue_pairs,
        until_acked,
    )
    ledger = Ledger(made) if options.get("has_data", True) else Unchecked(made)
    director = WorkDirector(network.endpoints, score, ledger)
    network.play(director)
    assert network.drain() == 0, "a packet leaked"
    return director.replay


def ends(replay: WorkReplay, rank: int) -> list[int]:
    return [times.end_ps for times in replay.times[rank]]


def last_ps(replay: WorkReplay) -> int:
    return max(max(ends(replay, rank)) for rank in range(len(replay.times)))


def chain(hops: int, size: int, work_ps: int = 0) -> Graph:
    """A message from each rank to the next, which computes before it passes it on."""
    ranks: list[list[WorkNode]] = [[send(2, 1, size)]]
    for rank in range(1, hops):
        come = receive(0, rank - 1, size)
        done = [compute(1, work_ps, 0)] if work_ps else []
        ranks.append([come, *done, send(2, rank + 1, size, 1 if work_ps else 0)])
    return graph(*ranks, [receive(0, hops - 1, size)])


def test_a_chain_takes_one_way_per_hop() -> None:
    """Each rank but the first acknowledges what has come before it passes it on."""
    replay = play(chain(3, 8))

    assert last_ps(replay) == 3 * hop_ps(8) + 2 * ACK_PS == 6_056_960
    for rank in (1, 2):
        come, gone = replay.times[rank]
        assert gone.start_ps == come.end_ps
        assert gone.end_ps == come.end_ps + ACK_PS


@FAST
@example(hops=3, words=2, work_ps=100_000, threads=1)
@given(
    hops=st.integers(1, 9),
    words=st.integers(1, 256),
    work_ps=st.one_of(st.just(0), st.integers(ACK_PS, 5 * PS_PER_US)),
    threads=st.sampled_from((1, 2, 3)),
)
def test_chains_with_computations_take_what_they_should(
    hops: int, words: int, work_ps: int, threads: int
) -> None:
    size = 4 * words
    replay = play(chain(hops, size, work_ps), threads=threads)

    assert last_ps(replay) == hops * hop_ps(size) + (hops - 1) * (work_ps or ACK_PS)


def test_processors_take_their_time_at_both_ends() -> None:
    """Sending takes a processor's time before the message leaves, receiving after it has come."""
    replay = play(chain(3, 8), message_overhead_ps=300_000)

    assert last_ps(replay) == 3 * (hop_ps(8) + 2 * 300_000)


def test_a_binomial_tree_takes_its_depth() -> None:
    """Each rank sends to the largest subtree first; so does LogGOPSim's broadcast of 32 ranks."""
    ranks: list[list[WorkNode]] = []
    for rank in range(32):
        low = rank & -rank if rank else 32
        need = (0,) if rank else ()
        nodes = [receive(0, rank - low, 8)] if rank else []
        while low := low // 2:
            nodes.append(send(len(nodes), rank + low, 8, *need))
        ranks.append(nodes)

    assert last_ps(play(graph(*ranks))) == 5 * hop_ps(8) + 4 * ACK_PS == 10_099_520


def test_ranks_that_all_send_before_they_receive_are_no_circle() -> None:
    """16 packets of 4 KiB; the last one follows the others, over a second line of its own.

    Acknowledgements of what comes, one in eight packets, go between those that leave.
    """
    size = 1 << 16
    ranks = [
        [send(0, (rank + 1) % 4, size), receive(1, (rank + 3) % 4, size, 0)] for rank in range(4)
    ]
    replay = play(graph(*ranks))

    alone_ps = 17 * line_ps(4096) + 2 * PS_PER_US
    assert alone_ps == 7_682_080
    for rank in range(4):
        sent, come = replay.times[rank]
        assert sent.end_ps < come.end_ps
        assert alone_ps <= come.end_ps <= alone_ps + 2 * ACK_PS


def test_receives_that_are_posted_first_let_sends_begin() -> None:
    """As with MPI_Irecv, MPI_Send and MPI_Wait on all ranks."""
    ranks = [
        [
            receive(0, (rank + 3) % 4, 8),
            replace(send(1, (rank + 1) % 4, 8), begun=(0,)),
            compute(2, PS_PER_US, 0, 1),
        ]
        for rank in range(4)
    ]
    replay = play(graph(*ranks))

    assert [ends(replay, rank) for rank in range(4)] == [[hop_ps(8), 0, hop_ps(8) + PS_PER_US]] * 4


def test_rounds_of_a_dissemination_each_take_one_way() -> None:
    """A barrier of eight ranks: three rounds, in which a rank sends to the one 1, 2, 4 away."""
    ranks = []
    for rank in range(8):
        nodes: list[WorkNode] = []
        for distance in (1, 2, 4):
            after = (len(nodes) - 1,) if nodes else ()
            nodes.append(send(len(nodes), (rank + distance) % 8, 8, *after))
            nodes.append(receive(len(nodes), (rank - distance) % 8, 8))
        ranks.append(nodes)

    assert last_ps(play(graph(*ranks))) == 3 * hop_ps(8) + 2 * ACK_PS


def test_messages_of_a_pair_follow_one_another_without_a_round_trip() -> None:
    """As many as the window has packets."""
    sends = [send(number, 1, 8) for number in range(24)]
    replay = play(graph(sends, [receive(number, 0, 8) for number in range(24)]))

    first_ps = hop_ps(8)
    assert ends(replay, 1) == [first_ps + number * line_ps(8) for number in range(24)]
    assert ends(replay, 0) == [number * line_ps(8) for number in range(24)]


def test_more_messages_than_may_be_under_way_all_come() -> None:
    """A window's packets go in a round trip, not one."""
    sends = [send(number, 1, 8) for number in range(1000)]
    replay = play(graph(sends, [receive(number, 0, 8) for number in range(1000)]))

    assert ends(replay, 1) == sorted(ends(replay, 1))
    assert last_ps(replay) < 150 * PS_PER_US


def test_a_large_message_does_not_slow_down_the_one_before_it() -> None:
    """Both are posted at once: the second comes a message's time on the line later."""
    both = play(graph([send(0, 1, 102_400), send(1, 1, 102_400)],
                      [receive(0, 0, 102_400), receive(1, 0, 102_400)]))  # fmt: skip
    alone = play(graph([send(0, 1, 102_400)], [receive(0, 0, 102_400)]))

    assert ends(both, 1)[0] == ends(alone, 1)[0] == 26 * line_ps(4096) + 2 * PS_PER_US
    assert ends(both, 1)[1] == ends(both, 1)[0] + 25 * line_ps(4096)


def test_a_message_waits_where_it_arrives() -> None:
    """Its sender computes when it has left, and its receiver is 50 us late."""
    replay = play(
        graph(
            [send(0, 1, 8), compute(1, PS_PER_US, 0)],
            [compute(0, 50 * PS_PER_US), receive(1, 0, 8, 0), compute(2, 7, 1)],
        )
    )

    assert ends(replay, 0) == [0, PS_PER_US]
    assert ends(replay, 1) == [50 * PS_PER_US, 50 * PS_PER_US, 50 * PS_PER_US + 7]
    assert replay.over_ps == [hop_ps(8)]


def test_a_longer_message_waits_for_its_receiver_and_ends_with_the_acknowledgement() -> None:
    made = graph(
        [send(0, 1, 12), compute(1, PS_PER_US, 0)],
        [compute(0, 50 * PS_PER_US), receive(1, 0, 12, 0), compute(2, 7, 1)],
    )
    come_ps = 50 * PS_PER_US + hop_ps(12)

    replay = play(made, eager_bytes=11)
    assert ends(replay, 1)[1:] == [come_ps, come_ps + 7]
    acked_ps = come_ps + 2 * (ACK_PS + PS_PER_US)
    assert ends(replay, 0) == [acked_ps, acked_ps + PS_PER_US]
    assert ends(play(made, eager_bytes=12), 0) == [0, PS_PER_US]


def test_a_flow_is_on_the_wire_until_it_is_acknowledged() -> None:
    flow = graph([send(0, 1, 8)], [receive(0, 0, 8)])
    replay = play(flow, queue_pairs=16, until_acked=True)

    acked_ps = hop_ps(8) + 2 * (ACK_PS + PS_PER_US)
    assert replay.over_ps == ends(replay, 0) == [acked_ps]
    assert ends(replay, 1) == [hop_ps(8)]


def test_a_flow_waits_for_nothing_though_another_has_had_its_queue_pair() -> None:
    begin_ps = 50 * PS_PER_US
    flows = graph(
        [send(0, 1, 8), compute(1, begin_ps), send(2, 1, 8, 1)],
        [receive(0, 0, 8), receive(1, 0, 8)],
    )
    replay = play(flows, queue_pairs=16, until_acked=True)

    acked_ps = hop_ps(8) + 2 * (ACK_PS + PS_PER_US)
    assert replay.over_ps == [acked_ps, begin_ps + acked_ps]
    assert ends(replay, 0) == [acked_ps, begin_ps, begin_ps + acked_ps]


@pytest.mark.parametrize("cc", ["dctcp", "dcqcn"])
def test_a_flow_inherits_no_window_of_the_one_that_had_its_queue_pair(cc: str) -> None:
    """The first shares its last link with four others, so it is slowed down; the last is alone.

    Its packets keep its own line busy; the last one goes over the second line, and is acknowledged.
    """
    packets, begin_ps = 200, 1000 * PS_PER_US
    size = packets * 4096
    flows = graph(
        [send(0, 5, size), compute(1, begin_ps), send(2, 5, size, 1)],
        *[[send(0, 5, size)] for _ in range(4)],
        [*(receive(rank, rank, size) for rank in range(5)), receive(5, 0, size)],
    )
    marking = find_controller(cc).marking
    replay = play(flows, queue_pairs=16, until_acked=True, has_data=False, cc=cc, ecn=marking)

    sent_ps = (packets + 1) * line_ps(4096) + 2 * PS_PER_US
    alone_ps = sent_ps + 2 * (ACK_PS + PS_PER_US)
    first_ps, last_ps, *others_ps = replay.over_ps  # by rank
    assert max(first_ps, *others_ps) < begin_ps
    assert last_ps - begin_ps == alone_ps


@st.composite
def legal_graphs(draw: st.DrawFn) -> Graph:
    """Graphs whose nodes can run in the order in which they are drawn, if messages are eager."""
    count = draw(st.integers(2, 4))
    nodes: list[list[WorkNode]] = [[] for _ in range(count)]
    flying: list[tuple[int, int, int, int]] = []  # sender, receiver, size, tag

    def needs(rank: int) -> tuple[int, ...]:
        known = range(len(nodes[rank]))
        return tuple(draw(st.sets(st.sampled_from(known), max_size=2))) if known else ()

    def add(rank: int, kind: NodeKind, **about: Any) -> None:
        begun = needs(rank) if draw(st.booleans()) else ()
        nodes[rank].append(
            WorkNode(len(nodes[rank]), kind, after=needs(rank), begun=begun, **about)
        )

    for tag in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(("compute", "send", "receive")))
        if kind == "compute":
            duration = draw(st.sampled_from((0, 5, 300_000, 5 * PS_PER_US)))
            stream = draw(st.integers(0, 1))
            rank = draw(st.integers(0, count - 1))
            add(rank, NodeKind.COMPUTE, duration_ps=duration, stream=stream)
        elif kind == "send":
            one, other = draw(st.permutations(range(count)))[:2]
            size = 4 * draw(st.sampled_from((1, 2, 255, 1000, 20_000)))
            add(one, NodeKind.SEND, peer=other, size_bytes=size, tag=tag)
            flying.append((one, other, size, tag))
        elif flying:
            one, other, size, its = flying.pop(draw(st.integers(0, len(flying) - 1)))
            add(other, NodeKind.RECEIVE, peer=one, size_bytes=size, tag=its)
    for one, other, size, its in flying:
        add(other, NodeKind.RECEIVE, peer=one, size_bytes=size, tag=its)
    return graph(*nodes)


def check_times(made: Graph, replay: WorkReplay) -> None:
    """All have ended, each no earlier than what it waits for; sends begin at that very time."""
    assert replay.left == 0
    matched = replay.matched
    for rank, work in enumerate(made.ranks):
        times = replay.times[rank]
        for node, own, after in zip(work.nodes, times, matched.after[rank], strict=True):
            ready_ps = max((times[each].end_ps for each in after), default=0)
            assert own.ready_ps >= ready_ps
            assert own.end_ps >= own.start_ps >= own.ready_ps
            if node.kind is NodeKind.SEND:
                assert own.start_ps == own.ready_ps
            if not node.begun:
                assert own.ready_ps == ready_ps
    for meeting, over_ps in zip(matched.meetings, replay.over_ps, strict=True):
        (source, target), (sent, come) = meeting.ranks, meeting.places
        start_ps = replay.times[source][sent].start_ps
        assert over_ps >= start_ps + 2 * PS_PER_US + meeting.size_bytes * BYTE_PS
        received = replay.times[target][come]
        assert received.end_ps == max(over_ps, received.ready_ps)


@FAST
@given(legal_graphs())
def test_whatever_can_run_in_an_order_ends(made: Graph) -> None:
    check_times(made, play(made))


@FAST
@given(
    made=legal_graphs(),
    threads=st.sampled_from((2, 3)),
    options=st.sampled_from(
        ({}, {"loss": 0.05}, {"message_overhead_ps": 300_000}, {"has_data": False})
    ),
)
def test_times_are_the_same_with_threads(
    made: Graph, threads: int, options: dict[str, Any]
) -> None:
    alone, together = (play(made, threads=number, **options) for number in (1, threads))

    assert together.times == alone.times
    assert together.over_ps == alone.over_ps


def test_a_failure_on_a_host_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens at once is a callback of compiled code, which must not swallow anything."""

    def fail(self: WorkReplay, number: int, side: int, end_ps: int) -> None:
        raise RuntimeError("a fault of the replay")

    monkeypatch.setattr(WorkReplay, "end_for", fail)
    with pytest.raises(RuntimeError, match="a fault of the replay"):
        play(chain(3, 8))
