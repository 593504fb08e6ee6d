"""Timelines of collectives as Chrome traces: a two-rank ring by hand, aggregation, and limits."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Aggregate, Collective, Op, Schedule, Transfer
from ringleaf.experiments.records import tracks
from ringleaf.experiments.records.tracks import MOST_EVENTS
from ringleaf.experiments.runs import drawing
from ringleaf.experiments.workloads.collective import experiment, timeline
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import AGGREGATE, RECEIVE, SEND, Note, RunResult
from ringleaf.networks.virtual import VirtualNetwork
from ringleaf.topologies.registry import build

Event = dict[str, Any]
STAR = build("leafspine,leaves=1,spines=1,hosts=2")
LINK = 1_000_000  # ps
RC_BYTES = 58  # Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4
ACK_BYTES = 62  # and AETH 4


def load(text: str) -> tuple[list[Event], Event]:
    """The events of a trace, each of which has all that the format asks for; and its metadata."""
    whole = json.loads(text)
    assert whole["displayTimeUnit"] == "ns"
    for event in whole["traceEvents"]:
        assert event["ph"] in ("X", "M", "C")
        assert isinstance(event["name"], str)
        assert all(isinstance(event[key], int) for key in ("pid", "tid"))
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
    return whole["traceEvents"], whole["otherData"]


def of(events: list[Event], phase: str) -> list[Event]:
    return [event for event in events if event["ph"] == phase]


def result(notes: list[Note], left_out: int = 0, **series: Any) -> RunResult:
    return RunResult(
        time_ps=10, finish_ps=[10, 10], wire_bytes=[0, 0], retransmissions=0, drops=0, lost=0,
        link_bytes={}, bin_ps=1, link_series={}, peak_queue_bytes=0, packet_hops=0, events=0,
        wall_s=0.0, notes=notes, left_out=left_out, **series,
    )  # fmt: skip


def line_ps(frame_bytes: int) -> int:
    """100 Gbit/s is 80 ps per byte, of which 24 are preamble, FCS and gap; a frame has 60."""
    return (max(frame_bytes, 60) + 24) * 80


def test_a_ring_of_two_ranks_is_as_by_hand() -> None:
    """Each rank sends its half at 0, and what it has added up when it has the other's.

    A message is there after two links and two line times; its acknowledgement takes as long with a
    short frame. Before the first message hosts send credit for the two streams, reduced and copied
    messages, and before the second one the acknowledgement of the first.
    """
    schedule = ALGORITHMS["ring"].build(2, size_bytes=800, hierarchy=(2,))
    network = VirtualNetwork(STAR, NetworkOptions(watch_messages=100))
    outcome = network.run(schedule, [torch.ones(200), torch.ones(200)])

    way_ps, back_ps = (2 * (LINK + line_ps(size)) for size in (400 + RC_BYTES, ACK_BYTES))
    first_ps = 2 * line_ps(ACK_BYTES) + way_ps
    second_ps = first_ps + line_ps(ACK_BYTES) + way_ps
    assert sorted(outcome.notes) == sorted(
        note
        for rank in (0, 1)
        for note in (
            Note(RECEIVE, rank, 1 - rank, 1 - rank, 0, first_ps),
            Note(SEND, rank, 1 - rank, rank, 0, first_ps + back_ps),
            Note(RECEIVE, rank, 1 - rank, 3 - rank, first_ps, second_ps),
            Note(SEND, rank, 1 - rank, 2 + rank, first_ps, second_ps + back_ps),
        )
    )
    assert outcome.time_ps == second_ps
    events, about = load(timeline.as_chrome(STAR, schedule, outcome).text)
    assert about == {"events": 8, "most": MOST_EVENTS, "left_out": 0}
    first = next(event for event in of(events, "X") if (event["pid"], event["cat"]) == (1, SEND))
    assert first == {
        "ph": "X", "name": "chunk 0 to 1", "cat": "send", "pid": 1, "tid": 100, "ts": 0.0,
        "dur": (first_ps + back_ps) / 1e6,
        "args": {"step": 0, "peer": 1, "chunk": 0, "chunks": 1, "op": "reduce"},
    }  # fmt: skip
    second = [e for e in of(events, "X") if (e["pid"], e["cat"]) == (2, RECEIVE)][1]
    assert (second["name"], second["ts"]) == ("chunk 1 from 0", first_ps / 1e6)
    assert second["args"]["step"] == 1
    assert second["args"]["op"] == "copy"
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in of(events, "M") if e["tid"]}
    assert names[1, 100] == names[2, 100] == "sends"
    assert names[1, 200] == "receives"
    assert [e["args"]["name"] for e in of(events, "M") if not e["tid"]] == [
        "network", "rank 0 on h0", "rank 1 on h1",
    ]  # fmt: skip


RING = Schedule(
    algorithm="mixed", collective=Collective.ALLREDUCE, ranks=2, chunks=1,
    rows=(Transfer(0, 0, 1, 0, Op.REDUCE), Transfer(1, 1, 0, 0, Op.COPY), Aggregate(2, (0, 1), 0)),
)  # fmt: skip


def test_counters_change_only_where_series_do() -> None:
    outcome = result(
        [Note(AGGREGATE, 1, -1, 2, 3, 2_000_003)],
        queue_bin_ps=500_000,
        queue_series={
            ("s0", "h0"): np.array([[0, 5, 5, 0], [0, 1, 1, 0]]),
            ("s0", "h1"): np.zeros((2, 4), np.int64),
        },
        memory_interval_ps=1_000_000,
        memory_series={"s0": np.array([[0, 0, 0], [4, 4, 2]])},
    )

    events, about = load(timeline.as_chrome(STAR, RING, outcome).text)

    assert [(e["name"], e["ts"], e["args"]["value"]) for e in of(events, "C")] == [
        ("queue s0 to h0 (B)", 0.0, 0),
        ("queue s0 to h0 (B)", 0.5, 6),
        ("queue s0 to h0 (B)", 1.5, 0),
        ("entries in s0", 0.0, 4),
        ("entries in s0", 2.0, 2),
    ]
    (span,) = of(events, "X")
    assert (span["name"], span["pid"], span["ts"]) == ("sum of chunk 0", 2, 0.000003)
    assert (span["dur"], span["args"]) == (2.0, {"step": 2, "chunk": 0, "chunks": 1})
    assert about["events"] == 6


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40)


@given(drawn=spans, most=st.integers(1, 30), before=st.integers(0, 5))
def test_a_row_has_one_message_at_a_time_and_no_file_is_too_long(
    drawn: list[tuple[int, int]], most: int, before: int
) -> None:
    notes = [Note(SEND, 0, 1, 0, start, start + length) for start, length in drawn]
    series = {("s0", "h0"): np.arange(20).reshape(1, 20)}
    outcome = result(notes, before, queue_bin_ps=1, queue_series=series)

    told = timeline.as_chrome(STAR, RING, outcome, most=most)

    events, about = load(told.text)
    written = len(of(events, "X")) + len(of(events, "C"))
    assert written == about["events"] <= most
    assert told.left_out == about["left_out"] == before + len(notes) + 20 - written
    by_lane: dict[int, list[Event]] = {}
    for event in of(events, "X"):
        by_lane.setdefault(event["tid"], []).append(event)
    for lane in by_lane.values():
        for one, after in pairwise(lane):
            assert one["ts"] + one["dur"] <= after["ts"] + 1e-9


def run(folder: Path, **options: str) -> list[str]:
    lines: list[str] = []
    given = {"topo": "leafspine,leaves=2,spines=1,hosts=2", "size": "64K", "out": str(folder)}
    running.run(given | options, emit=lines.append)
    return (folder / "log.txt").read_text().splitlines()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])


@pytest.mark.usefixtures("undrawn")
def test_a_run_leaves_a_timeline_of_each_row(tmp_path: Path) -> None:
    log = run(tmp_path, algo="ring,switchml")

    files = (tmp_path / "files.txt").read_text().split()
    assert [name for name in files if "timeline" in name] == [
        "timelines/ring-65536.json", "timelines/switchml-65536.json",
    ]  # fmt: skip
    ring, _ = load((tmp_path / "timelines" / "ring-65536.json").read_text())
    counts = {kind: sum(e["cat"] == kind for e in of(ring, "X")) for kind in (SEND, RECEIVE)}
    assert counts[RECEIVE] == 4 * 2 * 3  # a ring's 2(n-1) messages of each of n ranks
    assert 0 < counts[SEND] <= 4 * 2 * 3  # the last acknowledgements come after the end
    assert any(e["name"].startswith("queue s") for e in of(ring, "C"))
    ina, about = load((tmp_path / "timelines" / "switchml-65536.json").read_text())
    assert {e["cat"] for e in of(ina, "X")} == {AGGREGATE}
    assert {e["pid"] for e in of(ina, "X")} == {1, 2, 3, 4}
    slots = [e["args"]["value"] for e in of(ina, "C") if e["name"].startswith("entries in s")]
    assert max(slots) > 0
    assert about["left_out"] == 0
    assert not any("left out" in line for line in log)


def test_a_run_that_is_not_drawn_is_not_watched_and_has_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undrawn: None
) -> None:
    seen: list[NetworkOptions] = []
    make = VirtualNetwork.__init__

    def spy(network: VirtualNetwork, graph: Any, options: NetworkOptions, **rest: Any) -> None:
        seen.append(options)
        make(network, graph, options, **rest)

    monkeypatch.setattr(VirtualNetwork, "__init__", spy)
    for name in ("drawn", "not"):
        given = {"topo": STAR.name, "size": "4K", "algo": "ring,switchml", "loss": "1%"}
        running.run(
            given | {"out": str(tmp_path / name)}, emit=lambda _: None, drawn=name == "drawn"
        )

    watched = [(o.watch_queues, o.watch_memory, o.watch_messages > 0) for o in seen]
    assert watched == [(True,) * 3] * 2 + [(False,) * 3] * 2
    for file in ("results.csv", "links.npz", "summary.json"):
        assert (tmp_path / "not" / file).read_bytes() == (tmp_path / "drawn" / file).read_bytes()
    assert not (tmp_path / "not" / "timelines").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_long_timeline_says_that_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tracks, experiment):
        monkeypatch.setattr(module, "MOST_EVENTS", 10)
    log = run(tmp_path, algo="ring")

    events, about = load((tmp_path / "timelines" / "ring-65536.json").read_text())
    assert len(of(events, "X")) + len(of(events, "C")) == 10
    assert about["most"] == 10
    assert log[-1] == (
        f"timelines/ring-65536.json: the first 10 events, {about['left_out']} left out"
    )
