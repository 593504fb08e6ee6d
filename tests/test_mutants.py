"""The list of mutants fits the sources, and its runner tells survivors from the killed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mutants"))

import run_mutants  # noqa: E402
from plan import LIST, Mutant, PlanError, read_list, read_members, select  # noqa: E402

MUTANTS = [*read_list(), *read_members()]
PACKAGES = {
    "ringleaf", "topologies", "collectives", "switches", "hosts", "ina", "networks", "experiments",
    "bench", "studies",
    "p4",
}  # fmt: skip
SLEEPY_SOURCE = "def twice(x):\n    return x * 2\n\nSPARE = 'unused'\nWAIT = 0\n"
SLEEPY = Mutant("sleepy", "a.py", "", "1", "2", ("test_a.py",), compiled=False)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_fits_the_sources(mutant: Mutant, tmp_path: Path) -> None:
    path = tmp_path / mutant.file
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / mutant.file).read_text())

    mutant.apply(tmp_path)

    assert path.read_text() != (ROOT / mutant.file).read_text()
    if path.suffix == ".py":
        ast.parse(path.read_text())  # whatever fails to be imported proves nothing
    files = [word.partition("::")[0] for word in mutant.tests if word.startswith("tests/")]
    assert files
    assert all((ROOT / file).exists() for file in files)


def test_there_are_at_least_80_over_all_packages() -> None:
    assert len(MUTANTS) >= 80
    assert {mutant.file.partition("/")[0] for mutant in MUTANTS} == PACKAGES


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- {name: a, file: f, from: x, to: y}", "a: keys must be .* got file, from, name, to"),
        ("- {name: a, file: f, from: x, to: y, tests: t, why: z}", "a: keys must be"),
        ("- &m {name: a, file: f, from: x, to: y, tests: t}\n- *m", "unique, got a twice"),
    ],
)
def test_a_wrong_list_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / LIST.name
    path.write_text(text)
    with pytest.raises(PlanError, match=complaint):
        read_list(path)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [("x = 2", "x = 3", "got 2 times"), ("y", "z", "got 0 times"), ("w", "w", "must change")],
)
def test_a_change_that_does_not_fit_is_refused(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    (tmp_path / "a.py").write_text("x = 2\nx = 2\nw\n")
    with pytest.raises(PlanError, match=complaint):
        replace(SLEEPY, old=old, new=new).apply(tmp_path)


def test_a_value_in_json_is_changed_at_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [{"op": "+"}, {"op": "-"}], "b/c": "+"}')
    mutant = replace(SLEEPY, file="a.json", pointer="/a/1/op", old="-", new="*")

    mutant.apply(tmp_path)
    replace(mutant, pointer="/b~1c", old="+").apply(tmp_path)

    assert json.loads(path.read_text()) == {"a": [{"op": "+"}, {"op": "*"}], "b/c": "*"}
    for pointer in ("/a/0/op", "/a/7/op", "/a/b"):
        with pytest.raises(PlanError, match="must be '-', got"):
            replace(mutant, pointer=pointer).apply(tmp_path)


def test_mutants_are_selected_by_name_or_file() -> None:
    others = [replace(SLEEPY, name=name, file=f"{name}.py") for name in ("one", "two")]
    assert select(others, ["two"]) == others[1:]
    assert select(others, []) == others


def make_tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a repository of a source and its test, which needs no large library."""
    (folder / "a.py").write_text(SLEEPY_SOURCE)
    (folder / "test_a.py").write_text(
        "import time\nfrom a import WAIT, twice\n\n"
        "def test_twice():\n    time.sleep(WAIT)\n    assert twice(4) == 8\n"
    )
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    monkeypatch.setattr(run_mutants, "ROOT", folder)
    monkeypatch.setattr(run_mutants, "HEAVY", ("pytest",))


def test_ends_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One mutant is killed, one survives, and one can not be tested at all."""
    make_tree(tmp_path, monkeypatch)
    changes = [("x * 2", "x * 3"), ("unused", "other"), ("def", "dfe")]
    mutants = [replace(SLEEPY, name=new, old=old, new=new) for old, new in changes]

    outcomes = run_mutants.run(mutants, jobs=2)

    assert [outcome.end.name for outcome in outcomes] == ["KILLED", "SURVIVED", "BROKEN"]
    assert not run_mutants.summarise(outcomes, 1.0)
    assert (tmp_path / "a.py").read_text() == SLEEPY_SOURCE


def test_a_mutant_whose_tests_do_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, monkeypatch)
    monkeypatch.setattr(run_mutants, "LEAST_PATIENCE_S", 1.0)
    mutant = replace(SLEEPY, old="WAIT = 0", new="WAIT = 600")

    (outcome,) = run_mutants.run([mutant], jobs=1)

    assert outcome.end.name == "HUNG"
    assert run_mutants.summarise([outcome], 1.0)


def test_tests_that_fail_unchanged_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, monkeypatch)
    (tmp_path / "test_a.py").write_text("def test_nothing(): assert False\n")
    (outcome,) = run_mutants.run([replace(SLEEPY, old="unused", new="other")], jobs=1)
    assert outcome.end is run_mutants.End.BROKEN
    assert outcome.printed.startswith("must pass unchanged, got\n")
    assert not run_mutants.summarise([outcome], 1.0)
