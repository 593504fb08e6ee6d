"""Experiments with training jobs, through the command line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.jobs.results import jain
from experiments.jobs.spec import parse_jobs
from ringleaf.errors import ConfigError

MODEL = """\
name: small
layers:
  - {name: a, elements: 2000, forward: 2us, backward: 4us}
  - {name: b, elements: 9000, forward: 2us, backward: 4us}
"""
SPEC = """\
topo: leafspine,leaves=2,spines=1,hosts=2
jobs:
  - {{model: {model}, ranks: 2, iterations: 2}}
  - {{model: {model}, ranks: 2, iterations: 2, start: 3us}}
counts: [1, 2]
algo: [ring, switchml]
order: tensorexpress
servers: 0
lanes: 64
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    model = tmp_path / "small.yaml"
    model.write_text(MODEL)
    path = tmp_path / "two-jobs.yaml"
    path.write_text(SPEC.format(model=model))
    return path


def run(spec: Path, out: Path, *more: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["run", "--spec", str(spec), "--out", str(out), *more])
    return result.exit_code, result.output


def test_a_spec_of_jobs_gives_a_table_results_and_figures(spec: Path, tmp_path: Path) -> None:
    status, text = run(spec, tmp_path / "first")
    assert status == 0, text
    assert "wrong values: 0 OK" in text
    with (tmp_path / "first" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["jobs"], row["algo"], row["job"]) for row in rows] == [
        ("1", "ring", "1"),
        ("1", "switchml", "1"),
        ("2", "ring", "1"),
        ("2", "ring", "2"),
        ("2", "switchml", "1"),
        ("2", "switchml", "2"),
    ]
    assert all(int(row["jct_ps"]) >= 2 * int(row["compute_ps"]) for row in rows)
    figures = {path.name for path in (tmp_path / "first" / "figures").iterdir()}
    assert figures >= {"jct.png", "wait.png", "links.png", "queues.png"}

    assert run(spec, tmp_path / "second")[0] == 0
    first, second = ((tmp_path / n / "results.csv").read_bytes() for n in ("first", "second"))
    assert first == second


def test_options_beside_a_spec_of_jobs_are_refused(spec: Path, tmp_path: Path) -> None:
    status, text = run(spec, tmp_path / "out", "--topo", "fattree")
    assert status != 0
    assert "options must be in the file, got --topo" in text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"order": "lifo"}, "order: unknown|must be one of|lifo"),
        ({"algo": "broadcast"}, "broadcast"),
        ({"counts": [3]}, "counts must be a whole number, at least 1 and at most 1, got 3"),
        ({"jobs": [{"ranks": 2}]}, "job 1: must be a mapping with a 'model'"),
        ({"jobs": [{"model": "gpt17"}]}, "gpt17"),
        ({"loss": -1}, "loss must be a number, at least 0, got -1"),
    ],
)
def test_what_is_wrong_with_a_spec_is_said(
    spec: Path, change: dict[str, object], complaint: str
) -> None:
    job = {"model": str(spec.parent / "small.yaml")}
    with pytest.raises(ConfigError, match=complaint):
        parse_jobs({"jobs": [job]} | change, "spec")


def test_jain() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25
