"""Faults that begin when a run is over are told below the table, with the rows they missed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ringleaf
from ringleaf.experiments.records.config import read_json
from ringleaf.experiments.records.folder import SUMMARY
from ringleaf.experiments.records.late_faults import tell_late
from ringleaf.experiments.runs.drawing import read_results
from ringleaf.experiments.workloads.train.results import TrainResults

RACK = "leafspine,leaves=1,spines=0,hosts=3"


def test_a_run_says_which_rows_a_fault_came_too_late_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A ring of three has four steps, each with a third: of 1 MiB 28 us at 100 Gbit/s, of 4 KiB
    # 0.1 us and 2 us of delay. So one takes more than 112 us, and the other one about 9.
    options = {"topo": RACK, "algo": "ring", "size": "4K,1M", "faults": "h0-s0 rate 50G at 30us"}
    run = ringleaf.run(**options, show=True)
    short, long = (row.time_ps for row in run.rows)
    assert short < 30_000_000 < long
    lines = [line for line in capsys.readouterr().out.splitlines() if "too late" in line]
    assert lines == ["# h0-s0 rate 50G at 30us: too late for ring at 4 KiB"]


def test_jobs_say_which_faults_came_when_all_were_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job computes for 60 us; the second one starts when the first fault has been."""
    model = tmp_path / "small.yaml"
    model.write_text("layers:\n  - {elements: 64, forward: 20us, backward: 40us}\n")
    job = {"model": str(model), "ranks": 1, "iterations": 1}
    jobs = [{**job, "start": start} for start in ("0", "30us")]
    faults = "s0 down at 85us for 1us, h0-s0 rate 50G at 1s"
    ringleaf.run(jobs=jobs, topo=RACK, servers=0, faults=faults, out=tmp_path / "run")

    late = "h0-s0 rate 50G at 1s: too late for 2-ring-fifo"
    kept = [line for line in read_results(tmp_path / "run").foot() if "too late" in line]
    assert kept == [late]


def test_jobs_and_workloads_count_what_links_lost(tmp_path: Path) -> None:
    """Each of two ranks sends a half after 2 us, before it hears of the other: both are lost."""
    model = tmp_path / "small.yaml"
    model.write_text("layers:\n  - {elements: 64, forward: 1us, backward: 1us}\n")
    jobs = [{"model": str(model), "ranks": 2, "iterations": 1}]
    lossy: dict[str, Any] = {"topo": "leafspine,leaves=1,spines=0,hosts=2", "figures": "no"}
    lossy["faults"] = "s0 down for 2100ns"
    row = ringleaf.run(jobs=jobs, servers=0, **lossy).rows[0]
    assert row.lost >= 2
    done = ringleaf.run(workload="incast", ranks=2, flow_sizes="1K", **lossy)
    assert read_json(done.folder / SUMMARY)["lost"] >= 1


def test_a_training_says_which_faults_came_when_it_was_over() -> None:
    given = {"faults": ["s0 down at 9ps for 1ps", "s0 down at 10ps"], "scale": 1}
    results = TrainResults(ranks=1, totals=Counter(end_ps=10), faults=given)
    lines = [line for line in results.foot() if "too late" in line]
    assert lines == ["s0 down at 10ps: too late for the training"]


@pytest.mark.parametrize(
    ("faults", "scale", "expected"),
    [
        ([], 1, []),
        (["s0 down at 0"], 1, []),
        (["s0 down at 9ps for 1ps"], 1, []),
        (["s0 down at 10ps"], 1, ["s0 down at 10ps: too late for a"]),
        (["s0 down at 1ps"], 10, ["s0 down at 1ps: too late for a"]),  # as times of faults grow
        (
            ["s0 down at 1ps", "h0-s0 loss 1% at 1us"],
            1,
            ["h0-s0 loss 1% at 1us: too late for a, b"],
        ),
    ],
)
def test_a_fault_is_late_from_the_end_of_a_run_on(
    faults: list[str], scale: int, expected: list[str]
) -> None:
    options = {"faults": faults, "scale": scale}
    assert list(tell_late(options, {"a": 10, "b": 1000})) == expected


def test_many_rows_and_faults_are_counted() -> None:
    options = {"faults": [f"s{number} down at 1us" for number in range(6)], "scale": 1}
    first, *_, last = tell_late(options, dict.fromkeys("abcdef", 1))
    assert first == "s0 down at 1us: too late for a, b, c, d and 2 more"
    assert last == "2 more faults too late for some"
