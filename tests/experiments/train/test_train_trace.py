"""The work of ranks becomes a graph, and its replay does the same work at the same times."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from commanding import ROOT, SCRIPTS, ringleaf, train

from ringleaf.experiments.workloads.train.calls import ANY, CollectiveCall
from ringleaf.experiments.workloads.train.fabric import CallDone, Go
from ringleaf.experiments.workloads.train.trace import ASIDE, GrowingTrace
from ringleaf.hosts.workload.graph import NodeKind

SUM = CollectiveCall("all_reduce", "float32", "sum", 8)


def make_trace(ranks: int = 2) -> GrowingTrace:
    trace = GrowingTrace(ranks, lambda dtype: 4)
    trace.join("all", range(ranks))
    return trace


def nodes_of(trace: GrowingTrace, rank: int = 0) -> list[tuple[NodeKind, int, tuple[int, ...]]]:
    nodes = trace.graph("g").ranks[rank].nodes
    return [(node.kind, node.duration_ps, node.after) for node in nodes]


def test_a_rank_computes_between_calls_and_goes_on_behind_those_that_it_waits_for() -> None:
    trace = make_trace()
    trace.call(0, 0, "all", SUM, (100, 100))
    trace.call(0, 1, "all", SUM, (150, 150))
    trace.wait(0, [0], 200, quietly=False)
    trace.answer(CallDone(0, 0, 300))
    trace.answer(Go(0, 300))
    trace.end(0, 350)

    assert nodes_of(trace) == [
        (NodeKind.COMPUTE, 100, ()),
        (NodeKind.COLLECTIVE, 0, (0,)),
        (NodeKind.COMPUTE, 50, (0,)),
        (NodeKind.COLLECTIVE, 0, (2,)),
        (NodeKind.COMPUTE, 50, (2,)),
        (NodeKind.COMPUTE, 50, (4, 1)),
    ]


def test_what_a_rank_sends_to_itself_is_no_node() -> None:
    trace = make_trace()
    for number, kind in enumerate(("send", "recv")):
        trace.call(0, number, "all", CollectiveCall(kind, "float32", count=8), (100, 100))
    trace.wait(0, [0, 1], 100, quietly=False)
    trace.answer(CallDone(0, 0, 100, 0))
    trace.answer(CallDone(0, 1, 100, 0))
    trace.answer(Go(0, 100))
    trace.call(0, 2, "all", SUM, (100, 100))

    assert nodes_of(trace) == [(NodeKind.COMPUTE, 100, ()), (NodeKind.COLLECTIVE, 0, (0,))]


def test_a_call_on_another_stream_follows_what_was_at_its_time() -> None:
    """It is made at 100, where the rank was, and one at 120, which is 20 behind that."""
    trace = make_trace()
    trace.call(0, 0, "all", SUM, (100, 100))
    trace.call(0, 1, "all", SUM, (100, 500))
    trace.call(0, 2, "all", SUM, (120, 500))

    assert nodes_of(trace)[2:] == [
        (NodeKind.COMPUTE, 400, (0,)),
        (NodeKind.COLLECTIVE, 0, (0,)),
        (NodeKind.COMPUTE, 20, (0,)),
        (NodeKind.COLLECTIVE, 0, (4,)),
    ]
    assert trace.graph("g").ranks[0].nodes[4].stream == ASIDE


def test_a_quiet_wait_moves_no_clock_and_what_follows_its_end_depends_on_it() -> None:
    trace = make_trace()
    trace.call(0, 0, "all", SUM, (0, 0))
    trace.wait(0, [0], 0, quietly=True)
    trace.answer(CallDone(0, 0, 80))
    trace.answer(Go(0, 80))
    trace.call(0, 1, "all", SUM, (80, 10))

    assert nodes_of(trace) == [
        (NodeKind.COLLECTIVE, 0, ()),
        (NodeKind.COMPUTE, 10, ()),
        (NodeKind.COLLECTIVE, 0, (0,)),
    ]


def test_sizes_are_what_a_rank_brings_in_and_messages_know_their_ends() -> None:
    trace = make_trace(3)
    trace.join("pair", (2, 0))
    for number, call in enumerate(
        (
            CollectiveCall("reduce_scatter", "float32", "sum", 5),
            CollectiveCall("all_gather", "float32", "", 5),
            CollectiveCall("barrier", "uint8"),
            CollectiveCall("all_to_all", "float32", sends=(0, 2, 1), takes=(0, 3, 0)),
        )
    ):
        trace.call(0, number, "all", call, (0, 0))
    trace.call(0, 4, "pair", CollectiveCall("broadcast", "float32", "", 6, root=0), (0, 0))
    trace.call(0, 5, "pair", CollectiveCall("recv", "float32", "", 7, root=ANY, tag=3), (0, 0))
    trace.answer(CallDone(0, 5, 9, source=0))
    nodes = trace.graph("g").ranks[0].nodes

    assert [node.size_bytes for node in nodes] == [60, 20, 0, 8, 4, 12, 24, 28]
    assert [(node.kind, node.peer) for node in nodes[3:6]] == [
        *((NodeKind.SEND, 1), (NodeKind.SEND, 2), (NodeKind.RECEIVE, 1)),
    ]
    assert (nodes[6].root, nodes[6].group, nodes[7].peer) == (2, 1, 2)
    assert [group.name for group in trace.graph("g").groups] == ["world", "ranks-2-0"]


def calls_of(path: Path) -> Counter[tuple[str, int]]:
    """Return the calls of a training run by kind and bytes that a rank brings in."""
    found: Counter[tuple[str, int]] = Counter()
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            parts = int(row["ranks"]) if row["call"] == "all_gather" else 1
            size = int(row["size_bytes"]) // parts
            found[row["call"].replace("_", ""), size] += int(row["count"])
    return found


@pytest.mark.parametrize(
    ("script", "argument", "ranks", "compute"),
    [
        (SCRIPTS / "three_blocks.py", "fsdp", 2, "flops:1G"),
        (SCRIPTS / "fsdp_kinds.py", "weights.pt", 4, "flops:1G"),
        (ROOT / "examples" / "training" / "ddp.py", "", 4, "flops:1T"),
    ],
)
def test_a_replay_has_the_same_calls_and_takes_as_long(
    script: Path, argument: str, ranks: int, compute: str, tmp_path: Path
) -> None:
    """To 1 %: where calls of several groups wait on each other, each may begin a link's delay
    later than the other time."""
    topo = f"leafspine,leaves=1,spines=1,hosts={ranks}"
    options = f"--topo {topo} --compute {compute} --chakra"
    words = [str(tmp_path / argument)] if argument.endswith(".pt") else [argument] * bool(argument)
    done = train(tmp_path, script, *words, ranks=ranks, options=options)
    assert done.returncode == 0, done.stderr
    given = tmp_path / "out" / "chakra" / f"{script.stem}.*.et"
    out = tmp_path / "replayed"

    again = ringleaf(
        "workload", "run", str(given), "--topo", topo, "--data", "random", "--out", str(out)
    )

    assert again.returncode == 0, again.stderr
    summary = json.loads((out / "summary.json").read_text())
    before = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["wrong"] == 0
    assert summary["iteration_ps"] == pytest.approx(before["totals"]["end_ps"], rel=0.01)
    with (out / "results.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["call"] != "barrier"]
    replayed: Counter[tuple[str, int]] = Counter()
    for row in rows:
        replayed[row["call"], int(row["size_bytes"])] += int(row["count"])
    wanted = calls_of(tmp_path / "out" / "results.csv")
    assert replayed == Counter({each: n for each, n in wanted.items() if each[0] != "barrier"})
