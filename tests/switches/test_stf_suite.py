"""Many tests in several processes: each has an outcome, whatever becomes of the others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hand_json import do, expression, field, metadata, operand, program, value, write
from program_cases import PROGRAMS

from ringleaf.errors import ConfigError
from ringleaf.switches.stf import suite
from ringleaf.switches.stf.expectations import Output
from ringleaf.switches.stf.outcome import StfOutcome, StfVerdict
from ringleaf.switches.stf.runner import StfTest

TESTS = Path(__file__).parent / "stf"
TABLES = StfTest(PROGRAMS / "tables.json", TESTS / "tables.stf")


class Deadly(StfTest):
    """A test whose process dies of it."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (3,)


def test_a_process_that_dies_fails_its_own_test_only() -> None:
    jobs = [Deadly(TABLES.program, TABLES.stf), TABLES]

    dead, alive = suite.run_jobs(jobs, compiled=False, workers=1)

    assert (dead.verdict, dead.reason) == (StfVerdict.FAILED, "the process that ran it died")
    assert alive.verdict is StfVerdict.PASSED


def test_a_test_without_end_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop in a loop, with 60,000 turns each, takes an hour."""
    i, j, turns = field("meta", "i"), field("meta", "j"), value(60_000)
    data = program(  # primitive 0 has the packet go back to its port
        do("_jump_if_zero", operand(expression("^", j, turns)), value(8)),
        do("assign", i, value(0)),
        do("_jump_if_zero", operand(expression("^", i, turns)), value(6)),
        do("assign", i, operand(expression("+", i, value(1)))),
        do("_jump", value(3)),
        do("assign", j, operand(expression("+", j, value(1)))),
        do("_jump", value(1)),
    )
    metadata(data, "meta", ["i", 16], ["j", 16])
    stf = tmp_path / "loops.stf"
    stf.write_text("packet 1 AA 01\nexpect 1 AA 01\n")
    monkeypatch.setattr(suite, "UNCOMPILED_TIMEOUT_S", 1)

    [outcome] = suite.run_jobs([StfTest(write(tmp_path, data), stf)], compiled=False, workers=1)

    assert outcome.verdict is StfVerdict.FAILED
    assert "no end after 1 s" in outcome.reason


def test_a_file_that_is_no_test_fails_the_test_only(tmp_path: Path) -> None:
    (tmp_path / "x.stf").write_text("nonsense")
    reported: list[StfOutcome] = []

    outcomes = suite.run_jobs(
        [StfTest(TABLES.program, tmp_path / "x.stf"), TABLES],
        compiled=False,
        workers=2,
        report=reported.append,
    )

    assert [outcome.verdict for outcome in outcomes] == [StfVerdict.FAILED, StfVerdict.PASSED]
    assert outcomes[0].reason.startswith(f"{tmp_path / 'x.stf'}:1: unknown STF statement")
    assert sorted(o.name for o in reported) == ["tables", "x"]


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ("1", None):
        if before is None:
            monkeypatch.delenv("NUMBA_DISABLE_JIT")
        else:
            monkeypatch.setenv("NUMBA_DISABLE_JIT", before)
        suite.run_jobs([], compiled=True)
        assert os.environ.get("NUMBA_DISABLE_JIT") == before


def test_tests_are_those_with_a_program_beside_them(tmp_path: Path) -> None:
    for name in ("b-bmv2.stf", "a-bmv2.stf", "alone-bmv2.stf", "other.stf"):
        (tmp_path / name).write_text("wait")
    for name in ("a-bmv2.p4", "a-bmv2.json", "b-bmv2.json", "other.p4"):
        (tmp_path / name).write_text("")

    assert suite.find_jobs(tmp_path) == [
        StfTest(tmp_path / "a-bmv2.p4", tmp_path / "a-bmv2.stf"),
        StfTest(tmp_path / "b-bmv2.json", tmp_path / "b-bmv2.stf"),
    ]
    with pytest.raises(ConfigError, match=r"no tests, got none 'c\*'"):
        suite.find_jobs(tmp_path, "c*")


def outcome(name: str, verdict: StfVerdict, *outputs: Output) -> StfOutcome:
    return StfOutcome(name, verdict, outputs=outputs)


def test_a_sample_is_of_what_passed_and_spread_over_it() -> None:
    jobs = [StfTest(Path(f"{i}.json"), Path(f"{i}.stf")) for i in range(10)]
    verdicts = [StfVerdict.FAILED if i == 0 else StfVerdict.PASSED for i in range(10)]
    outcomes = [outcome(str(i), verdict) for i, verdict in enumerate(verdicts)]

    assert suite.sample(jobs, outcomes, 3) == [jobs[1], jobs[4], jobs[7]]
    assert suite.sample(jobs, outcomes, 99) == jobs[1:]


def test_other_packets_from_compiled_code_are_a_failure_even_if_nobody_expects_them() -> None:
    jobs = [TABLES, StfTest(TABLES.program, Path("y.stf"))]
    outcomes = [outcome("x", StfVerdict.PASSED, Output(9, b"1")), outcome("y", StfVerdict.PASSED)]
    again = {TABLES: outcome("x", StfVerdict.PASSED, Output(9, b"2")), jobs[1]: outcomes[1]}

    different, same = suite.compare_compiled(jobs, outcomes, again)

    assert (different.verdict, different.reason) == (StfVerdict.FAILED, "compiled: other results")
    assert same is outcomes[1]


def test_a_program_is_compiled_once_for_all_it_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that counts its calls stands in for p4c: this is about what is kept."""
    from ringleaf.core.p4c import COMPILER
    from ringleaf.switches.stf.compiling import compile_program

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    compiler = tmp_path / COMPILER
    compiler.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/calls\nfor last; do :; done\n"
        'grep -q bad "$last" && { echo "p.p4(1): [--Werror] error: no" >&2; exit 1; }\n'
        '[ "$5" = "$last" ] || { echo > "$6"; ! grep -q nameless "$last"; } || exit 1\n'
        'cp "$last" "$4"\n'
    )
    compiler.chmod(0o755)
    source, header = tmp_path / "p.p4", tmp_path / "h.p4"
    source.write_text('#include "h.p4"\n')
    header.write_text("one")

    def calls() -> int:
        compile_program(source)
        return (tmp_path / "calls").read_text().count("x")

    assert [calls(), calls()] == [1, 1]
    header.write_text("two")
    assert [calls(), calls()] == [2, 2]
    built = compile_program(source)
    assert built.read_text() == source.read_text()
    assert built.with_suffix(".p4info.txtpb").exists()
    source.write_text("nameless")  # which P4Info has no words for, and BMv2 runs
    built = compile_program(source)
    assert built.read_text() == "nameless"
    assert not built.with_suffix(".p4info.txtpb").exists()
    source.write_text("bad")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"p\.p4: p4c: p\.p4\(1\): \[--Werror\] error: no"):
            compile_program(source)
    assert (tmp_path / "calls").read_text().count("x") == 6


@pytest.mark.parametrize(
    ("complaint", "message"),
    [
        (
            "p.p4(2): [--Wwarn=unused] warning: 'error_seen' is unused\n  bit<8> error_seen;\n"
            "/x/p.p4(9): [--Werror=not-found] error: h: declaration not found\n  h\n",
            "p.p4(9): [--Werror=not-found] error: h: declaration not found",
        ),
        (
            "/x/v1model.p4(751): [--Werror=type-error] error: 'package V1Switch'\npackage V1\n"
            "  ---- Actual error:\n  /x/p.p4(8): Cannot unify 'in' parameter 'hdr'\n  control c(\n"
            "  ---- Originating from:\n  /x/p.p4(9): Type of argument 'c' does not match\n",
            "p.p4(8): Cannot unify 'in' parameter 'hdr'",
        ),
        ("p.p4(1): error: a\np.p4(2): error: b\n---- Actual error:\nc\n", "p.p4(1): error: a"),
        ("p.p4(17):syntax error, unexpected }\n", "p.p4(17):syntax error, unexpected }"),
        ("status 1", "status 1"),
        ("", ""),
    ],
)
def test_the_first_error_of_p4c_is_told_by_its_cause(complaint: str, message: str) -> None:
    """In the forms that p4c 1.2.5 prints; a package's arguments are wrong where they are."""
    from ringleaf.switches.stf.compiling import first_error

    assert first_error(complaint) == message


def test_without_a_compiler_only_json_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringleaf.errors import BackendError

    monkeypatch.setenv("PATH", str(tmp_path))
    shutil.copy(PROGRAMS / "flows.p4", tmp_path)
    job = StfTest(tmp_path / "flows.p4", TESTS / "flows.stf")

    with pytest.raises(
        BackendError, match="no P4 compiler on PATH, got no 'p4c-bm2-ss'; give its BMv2"
    ):
        suite.run_in_time(job, 60)
