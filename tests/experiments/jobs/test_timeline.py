"""Timelines of jobs: by hand for a job of two layers, and as a trace that other programs open."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.workloads.jobs.results import Combination, JobRow, JobsCase, read_spans
from ringleaf.experiments.workloads.jobs.timeline import (
    BACKWARD,
    FORWARD,
    QUEUED,
    WAIT,
    WIRE,
    JobSpan,
    as_chrome,
    from_chrome,
    spans_of,
)
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import cut
from ringleaf.networks.endpoints.training import PieceTimes

FRONT, BACK = (0,), (1,)
MODEL = Model("two", "by hand", "float32", (Layer("a", 10, 3, 5), Layer("b", 10, 4, 6)))


def trained() -> tuple[TrainingJob, list[PieceTimes]]:
    """Two iterations; each sum takes 10 ps, one after the other."""
    back, front = cut(MODEL)  # as they become ready
    job = TrainingJob(MODEL, [back, front], iterations=2, start_ps=100)
    for now_ps in (100, 103, 107, 113, 118):  # the start, two passes forward, and two backward
        job.reach(now_ps)
    job.reach(118)  # the second iteration, whose first pass waits
    job.reduced(back, 123)
    job.reduced(front, 133)
    for now_ps in (136, 140, 146, 151):
        job.reach(now_ps)
    return job, [
        PieceTimes(0, 0, back, 2, 113, 113, 123),
        PieceTimes(0, 0, front, 7, 118, 123, 133),
    ]


def test_passes_waits_and_gradients_are_told_by_layer() -> None:
    job, stretches = trained()

    assert spans_of([job], stretches) == [
        JobSpan(1, 1, FORWARD, FRONT, 100, 103),
        JobSpan(1, 1, FORWARD, BACK, 103, 107),
        JobSpan(1, 1, BACKWARD, BACK, 107, 113),
        JobSpan(1, 1, BACKWARD, FRONT, 113, 118),
        JobSpan(1, 1, WIRE, BACK, 113, 123, 2),
        JobSpan(1, 1, QUEUED, FRONT, 118, 123, 7),
        JobSpan(1, 2, WAIT, FRONT, 118, 133),
        JobSpan(1, 1, WIRE, FRONT, 123, 133, 7),
        JobSpan(1, 2, FORWARD, FRONT, 133, 136),
        JobSpan(1, 2, FORWARD, BACK, 136, 140),
        JobSpan(1, 2, BACKWARD, BACK, 140, 146),
        JobSpan(1, 2, BACKWARD, FRONT, 146, 151),
    ]


@pytest.fixture
def case() -> JobsCase:
    row = JobRow(
        1, "ring", "fifo", None, 1, "two", 2, 2, 51, 25, 18, 15, 15, 80, 0, 0, 0, 0, 1.0, 1.0, 0,
        0.0, 1.0, 9,
    )  # fmt: skip
    overlapping = [JobSpan(1, 2, WIRE, (layer,), 10 * layer, 10 * layer + 25) for layer in range(6)]
    return JobsCase(
        Combination(1, "ring", "fifo"),
        [row],
        spans=[*spans_of([trained()[0]], []), *overlapping],
    )


def test_a_trace_keeps_all_spans(case: JobsCase) -> None:
    assert from_chrome(as_chrome(case)) == case.spans


def test_nothing_in_one_row_of_a_trace_overlaps(case: JobsCase) -> None:
    """Viewers nest what overlaps, as if one called the other."""
    events = [e for e in json.loads(as_chrome(case))["traceEvents"] if e["ph"] == "X"]
    by_row: dict[tuple[int, int], list[JobSpan]] = {}
    for event in events:
        assert event["ts"] * 1e6 == pytest.approx(event["args"]["start_ps"])  # in microseconds
        span = JobSpan(**event["args"])
        by_row.setdefault((event["pid"], event["tid"]), []).append(span)

    for spans in by_row.values():
        for first, second in pairwise(sorted(spans, key=lambda span: span.start_ps)):
            assert first.end_ps <= second.start_ps
    assert len(by_row) == 1 + 3  # computing, and three sums at most on the wire at a time


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": [{"ph": "X", "args": {}}]}'])
def test_a_broken_trace_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(ConfigError, match=r"plot: can't read the timeline, got '.*trace.json'"):
        read_spans(tmp_path / "trace.json")
