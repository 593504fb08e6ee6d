"""`ringleaf grade`: assignments, students' files, marks, and what stays hidden."""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
import time
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from ringleaf.collectives.collective import Collective
from ringleaf.core import compiling
from ringleaf.errors import ConfigError, ScheduleError
from ringleaf.experiments.commands import cli
from ringleaf.experiments.grade import marks, trial
from ringleaf.experiments.grade.assignment import (
    AssignedCase,
    CaseLimits,
    StudentAssignment,
    read_assignment,
)
from ringleaf.experiments.grade.submission import Submission, take_in
from ringleaf.experiments.grade.trial import CaseOutcome
from ringleaf.networks.virtual.patience import STALLED

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "grade"
STAR = "leafspine,leaves=1,spines=0,hosts=4"

WRONG = (EXAMPLES / "ring.csv").read_text().replace("reduce\n", "copy\n", 1)

GOOD = {"cases": [{"name": "one", "options": {"topo": STAR}}]}


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as exited:
        cli.make_app(["grade"])(["grade", *(str(argument) for argument in arguments)])
    code = exited.value.code
    assert isinstance(code, int)
    return code


def write(folder: Path, data: object) -> Path:
    path = folder / "assignment.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"must be a mapping, got \[\]"),
        ({"casses": []}, "unknown key, got 'casses'"),
        ({"kind": "essay", "cases": []}, "unknown kind, got 'essay'"),
        ({"cases": []}, r"cases must be a list of 1 to 1000, got \[\]"),
        (GOOD | {"seconds": -1}, "seconds must be 0 to 86400, got -1"),
        (GOOD | {"seconds": "long"}, "seconds must be a number, got 'long'"),
        ({"cases": [{"points": 1}]}, "case 1: name must be one line of text, got ''"),
        ({"cases": [{"name": "a\nb"}]}, "name must be one line of text, got 'a.nb'"),
        ({"cases": [{"name": "a"}, {"name": "a"}]}, "names of cases must differ, got 'a' twice"),
        ({"cases": [{"name": "a", "points": -1}]}, "points must be 0 to 1e6, got -1"),
        ({"cases": [{"name": "a", "within": {"tim": 1}}]}, "within: unknown key, got 'tim'"),
        ({"cases": [{"name": "a", "within": {"time": "1"}}]}, "within: time"),
        ({"cases": [{"name": "a", "within": {"steps": "x"}}]}, "steps must be a whole number"),
        ({"cases": [{"name": "a", "within": {"steps": True}}]}, "steps must be a whole number"),
        ({"cases": [{"name": "a", "within": {"steps": None}}]}, "within: steps must have a value"),
        ({"cases": [{"name": "a", "within": {"time": None}}]}, "within: time must have a value"),
        ({"cases": [{"name": "a", "options": {"algo": "ring"}}]}, "unknown key, got 'algo'"),
        ({"cases": [{"name": "a", "options": {"out": "x"}}]}, "unknown key, got 'out'"),
        ({"cases": [{"name": "a", "options": {"min": "1K"}}]}, "unknown key, got 'min'"),
        ({"cases": [{"name": "a", "options": {"net": "mininet"}}]}, "net must be virtual"),
        ({"cases": [{"name": "a", "options": {"size": "1K,2K"}}]}, "size must be one size"),
        ({"cases": [{"name": "a", "options": {"size": [1]}}]}, "size must be one value"),
        ({"cases": [{"name": "a", "collective": "dance"}]}, "unknown collective, got 'dance'"),
        ({"kind": "program", "cases": [{"name": "a"}]}, "algo is missing"),
        (
            {"kind": "program", "cases": [{"name": "a", "options": {"algo": "ring,tree"}}]},
            "algo must be one algorithm, got 'ring,tree'",
        ),
        (
            {
                "kind": "program",
                "cases": [{"name": "a", "options": {"algo": "ring"}, "within": {"steps": 3}}],
            },
            "case 1: within: steps are a schedule's, got a limit for a program",
        ),
    ],
)
def test_wrong_assignments_are_refused(tmp_path: Path, data: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_assignment(write(tmp_path, data))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "many"}, "loss: not understood, got 'many'"),
        ({"topo": "fatree"}, "unknown .*'fatree'"),
        ({"topo": "fattree,k=3"}, "k must be even"),
        ({"topo": "none.edges"}, "none.edges"),
        ({"faults": "h7-s0 down at 5us"}, "faults: .*h7"),
        ({"cross_traffic": "none.pcap"}, "cross_traffic: can't be read: No such file"),
    ],
)
def test_a_case_with_wrong_options_is_the_instructors_mistake(
    tmp_path: Path,
    options: dict[str, str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The exit code is 2, whether the student's file is good or broken, and nobody has points."""
    options = {"topo": "leafspine,leaves=1,spines=0,hosts=4"} | options
    path = write(tmp_path, {"cases": [{"name": "one", "options": options}]})

    for file in (EXAMPLES / "ring.csv", tmp_path / "none.csv"):
        assert call(path, file) == 2
        said = capsys.readouterr()
        assert re.search(f"assignment.yaml: case 'one': .*{message}", said.err)
        assert "points" not in said.out


def test_a_program_is_of_the_collective_of_its_algorithm(tmp_path: Path) -> None:
    """Else no student's program could have a point."""
    case = {"name": "a", "options": {"algo": "switchml"}, "collective": "broadcast"}
    assignment = read_assignment(write(tmp_path, {"kind": "program", "cases": [case]}))
    with pytest.raises(
        ConfigError, match=r"^x: case 'a': collective must be allreduce, as of switchml, got broad"
    ):
        assignment.check("x")


def test_the_example_is_read_with_files_beside_it(tmp_path: Path) -> None:
    found = read_assignment(EXAMPLES / "allreduce.yaml")

    assert found.points == 10
    assert found.cases[3].limits == CaseLimits(10_000_000, 4, None)
    assert found.cases[2].limits == CaseLimits(None, None, 1600 * 1024)
    (tmp_path / "net.edges").write_text("h0 s0\nh1 s0\n")
    data = {
        "kind": "program",
        "cases": [{"name": "a", "options": {"algo": "ring", "topo": "net.edges", "control": "c"}}],
    }
    (case,) = read_assignment(write(tmp_path, data)).cases
    assert case.options["topo"] == str(tmp_path / "net.edges")
    assert case.options["control"] == str(tmp_path / "c")


@pytest.mark.parametrize(
    ("name", "text", "known"),
    [
        ("topo", "net.edges,hosts=each", "{0}/net.edges,hosts=each"),
        ("topo", "leafspine,leaves=1,spines=0,hosts=4", "leafspine,leaves=1,spines=0,hosts=4"),
        ("cross_traffic", "a.pcap", "{0}/a.pcap"),
        ("cross_traffic", "elsewhere.pcap", "elsewhere.pcap"),
        ("program", "p.json", "{0}/p.json"),
        ("program", "forward", "forward"),
        ("program", "s0=p.json,s1=q.json", "s0={0}/p.json,s1=q.json"),
        ("control", "s0=p.json,s1=q.json", "s0={0}/p.json,s1={0}/q.json"),
    ],
)
def test_files_of_options_lie_beside_the_assignment(
    tmp_path: Path, name: str, text: str, known: str
) -> None:
    """A file named like a number or an option of a topology is not taken for one."""
    for file in ("net.edges", "a.pcap", "p.json", "4", "hosts", "leaves=1"):
        (tmp_path / file).touch()

    data = {"cases": [{"name": "a", "options": {name: text}}]}
    (case,) = read_assignment(write(tmp_path, data)).cases

    assert case.options[name] == known.format(tmp_path)


def test_a_students_file_is_copied_to_a_name_of_ours(tmp_path: Path) -> None:
    strange = tmp_path / "a,b=$(id);loss=1.csv"
    shutil.copyfile(EXAMPLES / "ring.csv", strange)
    (tmp_path / "copy").mkdir()

    taken = take_in(strange, "schedule", tmp_path / "copy")

    assert taken.options == {"algo": str(tmp_path / "copy" / "submission.csv")}
    assert taken.steps == 6


@pytest.mark.parametrize(
    ("problem", "fault"),
    [
        ("{copy}: p4c: submission.p4(7): error: x: declaration not found", "my.p4(7): error: x: "),
        ("{copy}: p4c: secret.p4(1):syntax error, unexpected IDENTIFIER", ""),
        ("{copy}: no P4Table named 'members', got P4TableEntry(slots=399)", "my.p4: no P4Table "),
        (f"{STALLED} for 1.36 s of simulated time, got h0 waits", "nothing gets through any more"),
        ("hosts: must be 3 to 8, got 9", ""),
        ("", ""),
    ],
)
def test_students_see_what_is_their_files_own_fault(
    tmp_path: Path, problem: str, fault: str
) -> None:
    """Files that P4 includes, and what cases have, stay hidden."""
    copy = tmp_path / "submission.p4"
    shown = Submission({"program": str(copy)}, None, "my.p4").fault(problem.format(copy=copy))
    assert shown.startswith(fault)
    assert bool(shown) == bool(fault)
    assert "399" not in shown


def test_files_that_are_broken_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "attempt", None)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(WRONG)
    json = tmp_path / "p.json"
    json.write_text("{}")
    for path, kind, message in (
        (tmp_path / "none.csv", "schedule", "can't read, got"),
        (wrong, "schedule", "lacks the contribution of rank"),
        (json, "schedule", "unknown format, got 'json'"),
        (wrong, "program", "must be BMv2 JSON"),
        (json, "program", "not BMv2 JSON"),
    ):
        with pytest.raises((ConfigError, ScheduleError), match=message):
            take_in(path, kind, tmp_path)
    shutil.copyfile(ROOT / "p4" / "build" / "forward.json", json)
    take_in(json, "program", tmp_path)  # its P4Info is in the JSON


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("wrong.csv", WRONG, "lacks the contribution of rank"),
        ("none.csv", None, "can't read"),
        ("empty.csv", "", "empty.csv"),
        ("essay.docx", "words", "unknown format, got 'docx'"),
        ("bytes.csv", b"\xff\xfe\x00", "bytes.csv"),
        ("plan.xml", "<algo", "plan.xml"),
        ("submission.json", "{}", "unknown format, got 'json'"),
    ],
)
def test_a_broken_file_has_no_points_and_says_why(
    tmp_path: Path,
    name: str,
    text: str | bytes | None,
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, report = tmp_path / name, tmp_path / "report.xml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    assert call(EXAMPLES / "allreduce.yaml", file, "--junit", report) == 1

    said = capsys.readouterr().out
    assert "# 0 of 10 points" in said
    assert reason in said
    (suite,) = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("4", "4")
    (trouble,) = suite[0]
    assert reason in str(trouble.get("message"))
    assert "leafspine" not in report.read_text()


def case(**limits: int) -> AssignedCase:
    return AssignedCase("a", 3, {"topo": "secret"}, Collective.ALLREDUCE, CaseLimits(**limits))


RIGHT = CaseOutcome("allreduce", 0, 20_000_000, 5000)


@pytest.mark.parametrize(
    ("outcome", "limits", "verdict", "detail"),
    [
        (RIGHT, {}, "passed", "time 20.00 us"),
        (RIGHT, {"time_ps": 20_000_000, "steps": 6, "wire_bytes": 5000}, "passed", "20.00 us"),
        (RIGHT, {"time_ps": 19_990_000}, "too slow", "at most 19.99 us, got 20.00 us"),
        (RIGHT, {"steps": 5}, "too many steps", "at most 5 steps, got 6"),
        (RIGHT, {"wire_bytes": 4999}, "too many bytes", "at most 4,999 bytes"),
        (
            CaseOutcome("reduce", 2, 1, 1, "rank 0"),
            {},
            "another collective; wrong results",
            "2 wrong",
        ),
        (CaseOutcome(timed_out=True, seconds=3), {}, "took too long to run", "ended after 3.0 s"),
        (CaseOutcome(problem="hosts: 6"), {}, "did not run", "hosts: 6"),
    ],
)
def test_marks_are_what_limits_say(
    outcome: CaseOutcome, limits: dict[str, int], verdict: str, detail: str
) -> None:
    found = marks.mark(case(**limits), outcome, 6)

    assert found.verdict == verdict
    assert detail in found.detail
    assert found.points == (3 if verdict == "passed" else 0)


def test_students_see_names_and_verdicts_and_instructors_all(tmp_path: Path) -> None:
    whole = StudentAssignment("Title", "schedule", 1, (case(steps=5), case()))
    given = [marks.mark(each, RIGHT, 6) for each in whole.cases]

    assert list(marks.table(whole, given, reveal=False)) == [
        "# Title",
        "a      0/3  too many steps",
        "a      3/3  passed",
        "# 3 of 6 points",
    ]
    shown = "\n".join(marks.table(whole, given, reveal=True))
    assert "topo=secret" in shown
    assert "at most 5 steps, got 6" in shown
    for reveal in (False, True):
        marks.write_junit(tmp_path / "j.xml", whole, given, reveal=reveal)
        text = (tmp_path / "j.xml").read_text()
        assert text.count("<failure") == 1
        assert ("at most 5 steps" in text) == reveal
        assert "secret" not in text


def test_a_case_is_ended_when_its_time_is_over() -> None:
    found = trial.attempt({"algo": "ring"}, 0.05)

    assert found.timed_out
    assert found.seconds < 5


def test_the_time_of_a_case_stands_still_while_it_compiles() -> None:
    clock = trial.CaseClock(began_s=100)
    clock.take(struct.pack("2d", 101, -111))
    assert clock.seconds(115) == 5
    clock.take(struct.pack("d", 120))
    assert clock.seconds(120) == clock.seconds(300) == 10
    assert clock.seconds(1000) == 300  # of all that it has compiled, ten minutes

    clock.take(struct.pack("d", -1000))
    assert clock.seconds(1001) == 301


@pytest.mark.parametrize(("text", "timed_out"), [("a function", False), ("", True)])
def test_a_case_that_compiles_for_long_is_not_ended(
    monkeypatch: pytest.MonkeyPatch, text: str, timed_out: bool
) -> None:
    """A process that takes a second, and says that it compiles all the time, or says nothing."""
    lines = (
        "import struct, sys, time",
        "sink = open(int(sys.argv[1]), 'wb', buffering=0)",
        f"sink.write(struct.pack('d', {time.monotonic()}) if {text!r} else b'')",
        "time.sleep(1)",
        "print('{}')",
    )
    monkeypatch.setattr(trial, "_COMMAND", (sys.executable, "-c", "\n".join(lines)))
    assert trial.attempt({}, 0.5).timed_out == timed_out


def test_a_case_tells_when_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    events, sink = os.pipe()
    monkeypatch.setattr(compiling, "show", partial(trial.tell, sink))
    compiling.begin("ringleaf.hosts")
    compiling.end()
    began_s, ended_s = struct.unpack("2d", os.read(events, 100))
    assert 0 < began_s <= -ended_s <= time.monotonic()
    os.close(events)
    os.close(sink)


def test_the_example_gives_points_in_processes_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = yaml.safe_load((EXAMPLES / "allreduce.yaml").read_text())
    data["cases"] = [
        data["cases"][3],
        {"name": "wrong number of hosts", "options": {"topo": "fattree,k=4", "size": "4K"}},
    ]

    code = call(write(tmp_path, data), EXAMPLES / "ring.csv", "--junit", tmp_path / "j.xml")

    assert code == 1
    out = capsys.readouterr().out
    assert "is quick for small tensors      0/2  too slow; too many steps" in out
    assert "wrong number of hosts           0/1  did not run: ring.csv is for 4 ranks\n" in out
    assert "leafspine" not in out
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
