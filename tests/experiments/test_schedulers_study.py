"""The study of flow schedulers: ratios over fifo, and published orderings."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from ringleaf.errors import ConfigError
from ringleaf.experiments.figures.style import matplotlib_style
from ringleaf.experiments.runs.spec_file import read_cases
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from studies.schedulers import (
    CLAIMS,
    SPECS,
    MeasuredScheduler,
    PublishedOrder,
    draw,
    judge,
    measure,
    ratios,
    table,
)

FIFO = MeasuredScheduler("small", "spread", "fifo", ("a", "b"), (4.0, 2.0), 0)
FAST = MeasuredScheduler("small", "spread", "p3", ("a", "b"), (2.0, 2.0), 0)
SPEC = """\
topo: leafspine,leaves=2,spines=1,hosts=1
jobs: [{model: {model}, ranks: 2, iterations: 4}]
scheduler: [fifo, p3]
servers: 0
"""
MODEL = """\
name: small
layers: [{elements: 2000, forward: 2us, backward: 4us}]
"""


def test_ratios_are_each_jobs_over_fifos() -> None:
    assert ratios([FIFO, FAST])["spread", "p3"] == (0.5, 1.0)
    with pytest.raises(ConfigError, match="study: scheduler must have 'fifo', got 'p3' without it"):
        ratios([FAST])


def test_claims_have_verdicts() -> None:
    claims = [
        PublishedOrder("p3", "fifo", "small", "spread", 2, "2"),
        PublishedOrder("p3", "fifo", "small", "spread", 1.6, "1.6", "of nothing"),
        PublishedOrder("fifo", "p3", "small", "spread", 3, "3", "of that"),
        PublishedOrder("p3", "fifo", "small", "packed", 4, "4"),
    ]
    assert list(judge([FIFO, FAST], claims)) == [
        "# p3 over fifo, small spread: direction: ours 1.500, published 2",
        "# p3 over fifo, small spread: magnitude: ours 1.500, published 1.6",
        "# fifo over p3, small spread: none, because of that: ours 0.667, published 3",
    ]


def test_jobs_in_turns_take_the_sum_of_their_times() -> None:
    """4 and 2 ms one after the other are 6 ms, together 2.5 ms are as long as the longest."""
    both = MeasuredScheduler("small", "spread", "tereis", ("a", "b"), (2.5, 2.0), 0)
    claims = [PublishedOrder("tereis", "fifo", "small", "spread", None, "faster", in_turns=True)]
    assert list(judge([FIFO, both], claims)) == [
        "# tereis over fifo in turns, small spread: direction: ours 2.400, published faster"
    ]


def test_a_small_study_measures_iterations_from_the_second_on(tmp_path: Path) -> None:
    """An iteration computes for 6 us, and waits for 8 kB at 100 Gbit/s at least: 0.64 us."""
    (tmp_path / "small.yaml").write_text(MODEL)
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.replace("{model}", str(tmp_path / "small.yaml")))

    found = list(measure(spec))

    assert [each.scheduler for each in found] == ["fifo", "p3"]
    assert all(0.00664 < each.mean_ms < 0.1 and not each.wrong for each in found)
    assert len(list(table(found))) == 5


def test_a_study_needs_iterations(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(MODEL)
    spec = tmp_path / "spec.yaml"
    text = SPEC.replace("{model}", str(tmp_path / "small.yaml"))
    spec.write_text(text.replace("iterations: 4", "iterations: 2"))
    with pytest.raises(ConfigError, match="study: job 1 must have at least 3 iterations, got 2"):
        list(measure(spec))


def test_the_spec_has_every_scheduler_and_claims_are_about_them() -> None:
    cases = [case for spec in SPECS for case in read_cases(spec)]
    assert set(cases[0]["scheduler"].split(",")) == set(SCHEDULERS)
    assert {case["placement"] for case in cases[:2]} == {"spread", "packed"}
    assert {name for claim in CLAIMS for name in (claim.faster, claim.slower)} <= set(SCHEDULERS)


def test_the_figure_has_a_bar_for_each_scheduler() -> None:
    with matplotlib_style():
        figure = draw([FIFO, FAST])
        assert len(figure.axes[0].patches) == 2
        plt.close("all")
