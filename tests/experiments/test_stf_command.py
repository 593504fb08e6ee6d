"""`ringleaf stf`, as it is typed."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typed import ROOT, typed

PROGRAMS = ROOT / "tests" / "switches" / "programs"
TESTS = ROOT / "tests" / "switches" / "stf"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tests that pass, one that fails, one of a program that can't be read."""
    for name in ("tables", "stateful"):
        shutil.copy(PROGRAMS / f"{name}.json", tmp_path / f"{name}-bmv2.json")
        shutil.copy(TESTS / f"{name}.stf", tmp_path / f"{name}-bmv2.stf")
    shutil.copy(PROGRAMS / "lanes.json", tmp_path / "lanes-bmv2.json")
    (tmp_path / "lanes-bmv2.stf").write_text("expect 1 AB\n")
    (tmp_path / "none-bmv2.json").write_text("[")
    (tmp_path / "none-bmv2.stf").write_text("wait\n")
    (tmp_path / "alone-bmv2.stf").write_text("no test: it has no program\n")
    return tmp_path


def test_a_test_that_passes() -> None:
    done = typed("stf", PROGRAMS / "stateful.json", TESTS / "stateful.stf")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "stateful: passed"
    assert "longs[5]= 255" in done.stdout


def test_a_suite_is_told_in_a_table_and_in_junit(folder: Path) -> None:
    done = typed("stf", "--suite", folder, "--compiled", "1", "--junit", folder / "out" / "j.xml")

    assert (done.returncode, done.stderr) == (1, "")
    note, failed, refused, total = done.stdout.splitlines()
    assert note == "# 1 of them compiled, too"
    assert failed == "lanes-bmv2     failed   port 1: 1 packet expected, got 0"
    assert refused.startswith("none-bmv2      refused  not JSON")
    assert total.startswith("# 2 of 4 passed (50.0 %), 1 failed, 1 refused; 0 of other arch")
    (suite,) = ElementTree.parse(folder / "out" / "j.xml").getroot()
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "4", "failures": "2", "skipped": "0",
    }  # fmt: skip
    assert [case.get("name") for case in suite if len(case) == 0] == [
        "stateful-bmv2", "tables-bmv2",
    ]  # fmt: skip


def test_only_some_of_a_suite(folder: Path) -> None:
    done = typed("stf", "--suite", folder, "--only", "tables")

    assert done.returncode == 0
    assert done.stdout.startswith("# 1 of 1 passed (100.0 %)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "stf: a program and a test, or --suite, must be given, got neither"),
        (["none.json", TESTS / "tables.stf"], "none.json: no such file"),
        ([PROGRAMS / "tables.json", "none.stf"], "none.stf: can't be read"),
        (["--suite", "nowhere"], "nowhere: no such folder"),
        (["--suite", TESTS], "no tests, got none '*-bmv2.stf'"),
        ([PROGRAMS / "tables.json", PROGRAMS / "tables.p4"], "tables.p4:1: unknown STF statement"),
        (
            [PROGRAMS / "tables.json", TESTS / "tables.stf", "--switch", "tofino"],
            "unknown switch, got 'tofino'; valid: embedded, bmv2",
        ),
    ],
)
def test_what_can_not_be_run_is_said_in_a_line(words: list[str], message: str) -> None:
    done = typed("stf", *words)

    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_program_that_is_refused_is_said_in_a_line(folder: Path) -> None:
    done = typed("stf", folder / "none-bmv2.json", folder / "none-bmv2.stf")

    assert done.returncode == 2
    assert "none-bmv2.json: not JSON" in done.stderr
