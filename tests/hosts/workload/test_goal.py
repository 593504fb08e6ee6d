"""GOAL schedules: a file by hand, round trips, wrong lines; collectives as messages."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_graphs import call, compute, graph, graphs, play, receive, send
from hypothesis import HealthCheck, given, settings

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.formats.files import read_trace, write_trace
from ringleaf.hosts.workload.formats.goal import write_goal
from ringleaf.hosts.workload.graph import CalledCollective, Graph, NodeKind, WorkNode
from ringleaf.hosts.workload.lower import lower
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.hosts.workload.meetings import match

ours = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

TEXT = """\
// two ranks
num_ranks 2

rank 0 {
  l1: calc 100 cpu 1
  big: send 10b to 1 tag 3 cpu 2 nic 1 /* a comment
  on two lines */
  calc 7
  big requires l1
}
rank 1 {
  a: recv 10b from 0 tag 3
  b: calc 5
  b irequires a
  c: send 8b to 0
  c requires b
}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "t.goal"
    path.write_text(text)
    return str(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    text = TEXT.replace("calc 7", "d: recv 8b from 1")
    zero, one = read_trace(written(tmp_path, text)).ranks

    assert zero.nodes == (
        WorkNode(0, NodeKind.COMPUTE, "l1", 100_000, stream=1),
        WorkNode(1, NodeKind.SEND, "big", size_bytes=10, peer=1, tag=3, stream=2, after=(0,)),
        WorkNode(2, NodeKind.RECEIVE, "d", size_bytes=8, peer=1),
    )
    assert one.nodes == (
        WorkNode(0, NodeKind.RECEIVE, "a", size_bytes=10, peer=0, tag=3),
        WorkNode(1, NodeKind.COMPUTE, "b", 5_000, begun=(0,)),
        WorkNode(2, NodeKind.SEND, "c", size_bytes=8, peer=0, after=(1,)),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("//", "#"),
        ("rank 0 {\n", "rank 0\n\n{"),
        ("rank 1 {\n", "rank 1 { "),
        ("requires b\n}", "requires b }"),
        ("\n", "\r\n"),
        ("\n", "\r"),
        ("10b", "10B"),
        ("cpu 2 nic 1", "nic 1 cpu 2"),
    ],
)
def test_a_file_may_be_spelled_otherwise(tmp_path: Path, old: str, new: str) -> None:
    text = TEXT.replace("calc 7", "d: recv 8b from 1")
    plain = read_trace(written(tmp_path, text))
    assert old in text

    (tmp_path / "t.goal").write_bytes(text.replace(old, new).encode())

    assert read_trace(str(tmp_path / "t.goal")) == plain


def test_a_rank_s_bracket_must_come(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 4: { must follow, got 'rank 0' alone"):
        read_trace(written(tmp_path, TEXT.replace("rank 0 {", "rank 0")))


def unnamed(made: Graph) -> list[tuple[WorkNode, ...]]:
    """Nodes without names, numbered anew, in nanoseconds; streams by their first nodes."""
    found = []
    for work in made.ranks:
        place = {node.id: number for number, node in enumerate(work.nodes)}
        computing = [node.stream for node in work.nodes if node.kind is NodeKind.COMPUTE]
        streams = {each: number for number, each in enumerate(dict.fromkeys(computing))}
        found.append(
            tuple(
                replace(
                    node,
                    id=place[node.id],
                    name="",
                    label="",
                    duration_ps=round(node.duration_ps / 1000) * 1000,
                    stream=streams[node.stream] if node.kind is NodeKind.COMPUTE else 0,
                    after=tuple(place[each] for each in node.after),
                )
                for node in work.nodes
            )
        )
    return found


@ours
@given(graphs(collectives=False))
def test_a_round_trip_changes_names_only(tmp_path: Path, made: Graph) -> None:
    [path] = write_trace(made, "goal", tmp_path, "t")

    assert unnamed(read_trace(str(path))) == unnamed(made)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_ranks 2", "ranks 2", r"t\.goal: line 2: must be num_ranks N, got 'ranks 2'"),
        ("num_ranks 2", "num_ranks 0", "line 2: must have 1 to 4096 ranks, got 0"),
        ("rank 1 {", "rank 2 {", "line 11: must begin another rank below 2, .* got 'rank 2 {'"),
        ("rank 1 {", "rank 0 {", "line 11: must begin another rank"),
        ("calc 7", "compute 7", "line 8: must be calc N, send Nb to R, .* got 'compute 7'"),
        ("calc 7", "calc 7777777777777777", "line 8: must be calc"),
        ("calc 7", "l1: calc 7", "line 8: label must be new, got 'l1'"),
        ("calc 7", "recv 8b to 1", "line 8: must be send to or recv from, got 'recv 8b to 1'"),
        ("calc 7", "recv 8b from -1", "line 8: must name its peer and tag, got 'recv 8b from -1'"),
        ("calc 7", "recv 8b from 1 tag -1", "line 8: must name its peer and tag"),
        ("big requires l1", "big requires l9", "line 9: no such label, got 'l9'"),
        ("c requires b\n}", "c requires b", "line 11: the rank must end with }, got the file's"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ConfigError, match=message):
        read_trace(written(tmp_path, TEXT.replace(old, new)))


@pytest.mark.parametrize(("name", "value"), [("groups", "none.json"), ("flops", 5e12)])
def test_options_of_chakra_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    """They had no effect, even a file that isn't there."""
    with pytest.raises(ConfigError, match=f"{name}: is of Chakra's traces, got {value!r} for"):
        read_trace(written(tmp_path, TEXT), **{name: value})


def test_text_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.goal"
    path.write_bytes(b"num_ranks 1\n# \xff")

    with pytest.raises(ConfigError, match="must be text, got byte 0xff in line 2; write it in UTF"):
        read_trace(str(path))


def test_a_file_without_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must have work to do, got no nodes"):
        read_trace(written(tmp_path, "num_ranks 3\nrank 1 {\n}\n"))


def test_messages_that_never_meet_name_file_rank_and_node(tmp_path: Path) -> None:
    made = read_trace(written(tmp_path, TEXT))

    with pytest.raises(ConfigError, match=r"t\.goal: rank 1, node 2 'c': rank 0 .* must receive"):
        match(made)


def ring(meeting: MatchedWork, elements: int) -> Schedule:
    return ALGORITHMS["ring"].build(len(meeting.ranks), size_bytes=4 * elements)


def elements_of(meeting: MatchedWork) -> int:
    return meeting.size_bytes // 4


def test_a_collective_becomes_the_messages_of_its_algorithm() -> None:
    """A ring of four sends 2 (n - 1) / n of 4,000 bytes from each rank, one after the other."""
    before, then = compute(0, 10), compute(2, 5, 1)
    ranks = [[before, call(1, CalledCollective.ALLREDUCE, 4000, 0), then] for _ in range(4)]
    matched = match(graph(*ranks, groups=[(0, 1, 2, 3)]))

    found = lower(matched, elements_of, ring, 4)

    sent = Counter[tuple[int, int]]()
    for rank, node in found.nodes():
        if node.kind is NodeKind.SEND:
            sent[rank, node.peer] += node.size_bytes
    assert sent == {(rank, (rank + 1) % 4): 6000 for rank in range(4)}
    replay = play(match(found), lambda meeting: 100)
    last = [(times[-1].start_ps, times[-1].end_ps) for times in replay.times]
    assert last == [(10 + 6 * 100, 15 + 6 * 100)] * 4
    assert "send 1000b to 1" in "\n".join(write_goal(found))


@pytest.mark.parametrize("name", ["halvingdoubling", "recursivedoubling"])
def test_a_message_waits_for_all_that_its_sums_are_made_of(name: str) -> None:
    """The third message of a rank has in it what the first two have brought.

    It waited for the second one alone, which may overtake the first. Recursive doubling, whose
    ranks have memory beside the tensor, ended with an IndexError.
    """
    matched = match(
        graph(*[[call(1, CalledCollective.ALLREDUCE, 4096)]] * 8, groups=[tuple(range(8))])
    )

    def schedule_for(meeting: MatchedWork, elements: int) -> Schedule:
        return ALGORITHMS[name].build(len(meeting.ranks), size_bytes=4 * elements)

    lowered = lower(matched, elements_of, schedule_for, 4)

    for work in lowered.ranks:
        sends = [node for node in work.nodes if node.kind is NodeKind.SEND]
        peer_of = {node.id: node.peer for node in work.nodes if node.kind is NodeKind.RECEIVE}
        waits = [{peer_of[each] for each in node.after} for node in sends[:3]]
        first, second = (node.peer for node in sends[:2])
        assert waits == [set(), {first}, {first, second}]


def test_a_copy_needs_what_it_replaces_no_more() -> None:
    """In the second half of a ring a rank passes on what has come last, and that alone."""
    matched = match(graph(*[[call(1, CalledCollective.ALLREDUCE, 16)]] * 4, groups=[(0, 1, 2, 3)]))

    lowered = lower(matched, elements_of, ring, 4)

    for work in lowered.ranks:
        assert [len(node.after) for node in work.nodes if node.kind is NodeKind.SEND] == [
            *(0, 1, 1),
            *(1, 1, 1),
        ]


def test_what_switches_add_up_can_t_be_lowered() -> None:
    matched = match(graph(*[[call(1, CalledCollective.ALLREDUCE, 64)]] * 2, groups=[(0, 1)]))

    def switches(meeting: MatchedWork, elements: int) -> Schedule:
        return ALGORITHMS["switchml"].build(2, size_bytes=4 * elements)

    with pytest.raises(ConfigError, match="rank 0, node 1: must be done by hosts, got 'switchml'"):
        lower(matched, elements_of, switches, 4)


def test_streams_below_0_run_beside_others(tmp_path: Path) -> None:
    """A trace's CPU operations and loads have such streams; all were on `cpu 0`, one by one."""
    made = graph([compute(0, 5000), compute(1, 5000, stream=-1), compute(2, 5000, stream=-2)])

    (path,) = write_trace(made, "goal", tmp_path, "t")

    assert "l0: calc 5\nl1: calc 5 cpu 1\nl2: calc 5 cpu 2\n" in path.read_text()
    replay = play(match(read_trace(str(path))))
    assert [times.end_ps for times in replay.times[0]] == [5000, 5000, 5000]


def test_cpus_of_streams_below_0_are_free_ones(tmp_path: Path) -> None:
    made = graph([compute(0, 5000, stream=1), compute(1, 5000, stream=-1)])

    (path,) = write_trace(made, "goal", tmp_path, "t")

    assert "l0: calc 5 cpu 1\nl1: calc 5 cpu 2\n" in path.read_text()


def test_tags_below_0_are_written_as_others(tmp_path: Path) -> None:
    """-1 would be any tag there, which is refused."""
    made = graph(
        [send(0, 1, 8, tag=-1), send(1, 1, 9, tag=2)],
        [receive(0, 0, 9, tag=2), receive(1, 0, 8, tag=-1)],
    )

    (path,) = write_trace(made, "goal", tmp_path, "t")

    assert "l0: send 8b to 1 tag 0\nl1: send 9b to 1 tag 3\n" in path.read_text()
    assert [each.size_bytes for each in match(read_trace(str(path))).meetings] == [8, 9]


def test_a_graph_with_collectives_is_no_goal_schedule() -> None:
    made = graph([call(1, CalledCollective.ALLREDUCE, 64)], groups=[(0,)])

    with pytest.raises(ConfigError, match="rank 0, node 1: GOAL has messages only"):
        list(write_goal(made))


def test_what_is_no_text_of_goal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.goal"
    path.write_bytes(b"\x7f\x10" + bytes(40))
    with pytest.raises(
        ConfigError, match=r"LogGOPSim.s binary form; files that are read: NAME\.goal"
    ):
        read_trace(str(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"t\.goal: must be a plain file"):
        read_trace(str(path))
