"""GOAL schedules: a file by hand, round trips, wrong lines; collectives as messages."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hand_graphs import call, compute, graph, graphs, play
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
    """Nodes without names, numbered anew, in nanoseconds, and with GOAL's streams."""
    found = []
    for work in made.ranks:
        place = {node.id: number for number, node in enumerate(work.nodes)}
        found.append(
            tuple(
                replace(
                    node,
                    id=place[node.id],
                    name="",
                    label="",
                    duration_ps=round(node.duration_ps / 1000) * 1000,
                    stream=max(node.stream, 0),
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


def test_what_switches_add_up_can_t_be_lowered() -> None:
    matched = match(graph(*[[call(1, CalledCollective.ALLREDUCE, 64)]] * 2, groups=[(0, 1)]))

    def switches(meeting: MatchedWork, elements: int) -> Schedule:
        return ALGORITHMS["switchml"].build(2, size_bytes=4 * elements)

    with pytest.raises(ConfigError, match="rank 0, node 1: must be done by hosts, got 'switchml'"):
        lower(matched, elements_of, switches, 4)


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
