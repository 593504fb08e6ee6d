"""`ringleaf stf`: run one STF test, or all tests of a folder."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleaf.errors import ConfigError, choose
from ringleaf.experiments.runs.console import FAILURE, Debug, guard, say
from ringleaf.experiments.runs.progress import progress
from ringleaf.switches.stf.parser import read_stf

if TYPE_CHECKING:
    from ringleaf.switches.stf.outcome import StfOutcome
    from ringleaf.switches.stf.runner import StfTest

SWITCHES = ("embedded", "bmv2")

Emit = Callable[[str], None]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stf")(guard(stf_command))


def stf_command(
    program: Annotated[Path | None, typer.Argument(help="P4 program or BMv2 JSON.")] = None,
    stf: Annotated[Path | None, typer.Argument(help="STF test of the program.")] = None,
    suite: Annotated[
        Path | None, typer.Option("--suite", help="Folder of tests to run, such as p4c's.")
    ] = None,
    pattern: Annotated[
        str, typer.Option("--pattern", help="Pattern of the tests' file names.")
    ] = "*-bmv2.stf",
    only: Annotated[str, typer.Option("--only", help="Text that tests' names must contain.")] = "",
    switch: Annotated[str, typer.Option("--switch", help="Switch: embedded or bmv2.")] = "embedded",
    compiled: Annotated[
        int,
        typer.Option(
            "--compiled", help="Number of tests to run compiled, too; results must agree."
        ),
    ] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; 0: one per core.")] = 0,
    junit: Annotated[Path | None, typer.Option("--junit", help="File for JUnit XML.")] = None,
    debug: Debug = False,
) -> None:
    """Run a test in p4c's STF format, or a folder of tests: packets in, packets expected."""
    if suite is not None:
        code = run_suite(
            suite, pattern=pattern, only=only, switch=switch, compiled=compiled, workers=jobs,
            junit=junit, emit=say,
        )  # fmt: skip
    elif program is not None and stf is not None:
        code = run_one(program, stf, switch=switch, compiled=bool(compiled), junit=junit, emit=say)
    else:
        raise ConfigError("stf: a program and a test, or --suite, must be given, got neither")
    if code:
        raise typer.Exit(code)


def run_one(
    program: Path, stf: Path, *, switch: str, compiled: bool, junit: Path | None, emit: Emit
) -> int:
    """Run one test and print its outcome; return the exit code.

    Raises:
        ConfigError: If a file is missing or no STF, or the engine can't execute the program.
    """
    choose("stf", "switch", switch, SWITCHES)
    if not os.path.isfile(program):
        raise ConfigError(f"{program}: no such file; give a P4 program or BMv2 JSON")
    read_stf(stf)
    from ringleaf.switches.stf import suite
    from ringleaf.switches.stf.outcome import StfVerdict
    from ringleaf.switches.stf.runner import StfTest

    job = StfTest(program, stf, switch)
    outcomes = suite.run_jobs([job], compiled=False, workers=1)
    if compiled:
        outcomes = _also_compiled([job], [job], outcomes, workers=1)
    [outcome] = outcomes
    _write_junit(junit, outcomes)
    if outcome.verdict is StfVerdict.REFUSED:
        raise ConfigError(f"{program}: {outcome.reason}")
    for line in outcome.printed:
        emit(line)
    emit(f"{outcome.name}: {outcome.verdict.value}{_because(outcome)}")
    for line in outcome.detail:
        emit(f"  {line}")
    return 0 if outcome.verdict is StfVerdict.PASSED else FAILURE


def run_suite(
    folder: Path,
    *,
    pattern: str,
    only: str,
    switch: str,
    compiled: int,
    workers: int,
    junit: Path | None,
    emit: Emit,
) -> int:
    """Run a folder's tests, and print a table of those that did not pass; return the exit code.

    Raises:
        ConfigError: If there are none.
    """
    choose("stf", "switch", switch, SWITCHES)
    if not os.path.isdir(folder):
        raise ConfigError(f"{folder}: no such folder; give p4c's testdata/p4_16_samples")
    from ringleaf.switches.stf import suite

    jobs = [job for job in suite.find_jobs(folder, pattern, switch) if only in job.name]
    if not jobs:
        raise ConfigError(f"{folder}: no tests, got none whose name contains {only!r}")
    with _progress("tests", len(jobs)) as step:
        outcomes = suite.run_jobs(jobs, compiled=False, workers=workers, report=step)
    if compiled:
        chosen = suite.sample(jobs, outcomes, compiled)
        outcomes = _also_compiled(jobs, chosen, outcomes, workers)
        emit(f"# {len(chosen)} of them compiled, too")
    _write_junit(junit, outcomes)
    for line in _table(outcomes):
        emit(line)
    return _exit_code(outcomes)


def _also_compiled(
    jobs: Sequence[StfTest], chosen: Sequence[StfTest], outcomes: Sequence[StfOutcome], workers: int
) -> list[StfOutcome]:
    from ringleaf.switches.stf import suite

    with _progress("compiled", len(chosen)) as step:
        again = suite.run_jobs(chosen, compiled=True, workers=workers, report=step)
    return suite.compare_compiled(jobs, outcomes, dict(zip(chosen, again, strict=True)))


def _write_junit(path: Path | None, outcomes: Sequence[StfOutcome]) -> None:
    if path is not None:
        from ringleaf.switches.stf.junit import write_junit

        write_junit(path, outcomes)


def _because(outcome: StfOutcome) -> str:
    return f": {outcome.reason}" if outcome.reason else ""


def _table(outcomes: Sequence[StfOutcome]) -> Iterator[str]:
    from ringleaf.switches.stf.outcome import StfVerdict

    counts = {verdict: sum(o.verdict is verdict for o in outcomes) for verdict in StfVerdict}
    width = max(len(outcome.name) for outcome in outcomes)
    for verdict in (StfVerdict.FAILED, StfVerdict.REFUSED, StfVerdict.SKIPPED):
        for outcome in outcomes:
            if outcome.verdict is verdict:
                yield f"{outcome.name:<{width}}  {verdict.value:<8} {outcome.reason}"
    tried = len(outcomes) - counts[StfVerdict.SKIPPED]
    passed = counts[StfVerdict.PASSED]
    share = f" ({100 * passed / tried:.1f} %)" if tried else ""
    yield (
        f"# {passed} of {tried} passed{share}, {counts[StfVerdict.FAILED]} failed, "
        f"{counts[StfVerdict.REFUSED]} refused; {counts[StfVerdict.SKIPPED]} of other "
        f"architectures skipped; {sum(outcome.seconds for outcome in outcomes):.0f} s of work"
    )


def _exit_code(outcomes: Sequence[StfOutcome]) -> int:
    from ringleaf.switches.stf.outcome import StfVerdict

    fine = (StfVerdict.PASSED, StfVerdict.SKIPPED)
    return 0 if all(outcome.verdict in fine for outcome in outcomes) else FAILURE


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[StfOutcome], None]]:
    """Yield a function to call with each outcome, which moves the progress line."""
    done = count(1)
    with progress() as shown:
        shown.begin(what)
        yield lambda outcome: shown.tell(next(done) / total, outcome.name)
