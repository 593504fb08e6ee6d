"""Aggregation trees that are built again, through the command: rows, columns and timelines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from test_cli import call

from ringleaf.core.units import PS_PER_US
from ringleaf.experiments.records.tree_counts import tell
from ringleaf.experiments.runs import drawing, perform

US = PS_PER_US
SMALL = ("--topo", "leafspine,leaves=2,spines=2,hosts=2", "--size", "64K")
FAULTS = ("--faults", "s2 down at 6us")


@pytest.fixture(autouse=True)
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "redraw", lambda *_, **__: [])
    monkeypatch.setattr(perform, "drawer", lambda _: None)


def test_a_row_and_a_timeline_have_the_times_to_recover(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tree is another 10 us after the fault; results come a round trip later, or two."""
    words = (*SMALL, *FAULTS, "--reroute", "10us", "--algo", "ring,switchml")
    assert call("run", *words, "-o", tmp_path / "run") == 0

    with (tmp_path / "run" / "results.csv").open() as file:
        ring, row = csv.DictReader(file)
    assert row["wrong"] == ring["wrong"] == "0"
    assert (row["rebuilt"], row["detect_ps"]) == ("1", str(10 * US))
    assert 4 * US < int(row["resume_ps"]) < 12 * US
    assert (ring["rebuilt"], ring["detect_ps"], ring["resume_ps"]) == ("0", "", "")
    assert " ".join(capsys.readouterr().out.split()).count("rebuilt detect resume") == 1
    (trace,) = (tmp_path / "run").rglob("switchml-65536.json")
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "tree"]
    assert events == [
        {
            "ph": "X",
            "name": "rebuilt",
            "cat": "tree",
            "pid": 0,
            "tid": 2,
            "ts": 16,
            "dur": int(row["resume_ps"]) / US,
        }
    ]


def test_without_new_routes_there_are_no_such_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*SMALL, "--algo", "switchml", "--faults", "s2-s0 loss 10% at 6us for 20us")
    assert call("run", *words, "-o", tmp_path / "run") == 0
    assert "rebuilt" not in capsys.readouterr().out


def test_jobs_have_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A spine fails for good while two jobs train; the first has it as its root."""
    spec = tmp_path / "jobs.yaml"
    spec.write_text(
        'topo: "leafspine,leaves=2,spines=2,hosts=3"\nplacement: spread\nservers: 0\n'
        "faults: s2 down at 30us\nreroute: 10us\n"
        "jobs:\n  - {model: resnet50, ranks: 4, iterations: 1}\n"
        "  - {model: vgg16, ranks: 2, iterations: 1}\n"
        "algo: switchml\nsize: 0.002\ncompute: 0.001\n"
    )
    assert call("run", "--spec", spec, "-o", tmp_path / "run") == 0

    first, second = json.loads((tmp_path / "run" / "summary.json").read_text())["rows"]
    assert first["wrong"] == second["wrong"] == 0
    assert first["rebuilt"] == second["rebuilt"] == 1
    assert first["detect_ps"] == 10 * US
    said = " ".join(capsys.readouterr().out.replace("\n#", " ").split())
    assert "1 aggregation tree built again 10 us later, results " in said


def test_the_phrase_on_trees() -> None:
    """By hand."""
    assert list(tell(0, None, None)) == []
    assert list(tell(2, 20 * US, 5 * US)) == [
        "2 aggregation trees built again 20 us later, results 5 us after that"
    ]
    assert list(tell(1, 0, None)) == ["1 aggregation tree built again 0 later"]
