"""Figures that say how jobs fared, by hand."""

from pathlib import Path

import pytest

from ringleaf.experiments.workloads.jobs.experiment import JobsExperiment
from ringleaf.experiments.workloads.jobs.kind import resolve_jobs
from ringleaf.experiments.workloads.jobs.results import jain


@pytest.mark.parametrize(
    ("speeds", "index"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([1.0, 0.0, 0.0, 0.0], 0.25),  # one of n has all: 1 / n
        ([3.0, 1.0], 0.8),  # 16 / (2 * 10)
        ([0.0, 0.0], 1.0),
    ],
)
def test_jains_index(speeds: list[float], index: float) -> None:
    """Jain, Chiu and Hawe, DEC-TR-301, 1984: (sum of x)^2 / (n * sum of x^2)."""
    assert jain(speeds) == pytest.approx(index)


def experiment(folder: Path, **second: object) -> JobsExperiment:
    """Return an experiment of two jobs on one switch, the second with what is given."""
    (folder / "one.yaml").write_text(
        "layers: [{name: only, elements: 512, forward: 1us, backward: 1us}]"
    )
    options = {"model": str(folder / "one.yaml"), "ranks": 2, "iterations": 2}
    topo = "leafspine,leaves=1,spines=0,hosts=4"
    return JobsExperiment(
        resolve_jobs({"topo": topo, "servers": "0", "jobs": [options, {**options, **second}]})
    )


def test_jobs_that_compute_for_no_time_have_no_fairness(tmp_path: Path) -> None:
    """Speeds are relative to computing alone, and there is nothing that they could be over."""
    (case,) = experiment(tmp_path, compute=0, size=50).run()
    assert [row.fairness for row in case.rows] == [None, None]
    (case,) = experiment(tmp_path).run()
    assert [row.fairness for row in case.rows] == [1.0, 1.0]


def test_a_header_says_which_sums_are_compared(tmp_path: Path) -> None:
    made = experiment(tmp_path)
    line = "of each job's sums the first of each size is compared (CHECK=no)"
    assert line not in made.results.about
    less = JobsExperiment(made.spec.model_copy(update={"check": False}))
    assert line in less.results.about
