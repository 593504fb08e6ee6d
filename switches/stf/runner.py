"""Runs one test: compile if need be, load, carry out, compare."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ringleaf.errors import BackendError, ConfigError
from ringleaf.switches.program import Program
from ringleaf.switches.source import PSA, V1MODEL
from ringleaf.switches.stf.compiling import architecture, compile_program, language_of_old
from ringleaf.switches.stf.expectations import Mismatch, Output, compare
from ringleaf.switches.stf.outcome import StfOutcome, StfVerdict
from ringleaf.switches.stf.parser import read_stf
from ringleaf.switches.stf.statements import Statement
from ringleaf.switches.stf.testbed import EngineTestbed, TestSwitch


@dataclass(frozen=True, slots=True)
class StfTest:
    """A test: a program (P4 or BMv2 JSON) and its STF file; `switch` names the switch to run on."""

    program: Path
    stf: Path
    switch: str = "embedded"

    @property
    def name(self) -> str:
        """Return the name of the STF file without its extension."""
        return self.stf.stem


def run_test(job: StfTest) -> StfOutcome:
    """Run a test; return its outcome.

    Raises:
        ConfigError: If a file can't be read, or is not STF.
        BackendError: If the compiler or the switch for the program is not here.
    """
    started = time.perf_counter()
    outcome = _run(job, read_stf(job.stf))
    return replace(outcome, seconds=time.perf_counter() - started)


def _run(job: StfTest, statements: Sequence[Statement]) -> StfOutcome:
    other = _other_architecture(job)
    if other:
        return StfOutcome(job.name, StfVerdict.SKIPPED, other)
    try:
        testbed = _open(job)
    except _RefusalError as exc:
        return StfOutcome(job.name, StfVerdict.REFUSED, str(exc))
    except ConfigError as exc:
        return StfOutcome(job.name, StfVerdict.FAILED, str(exc))
    except BackendError:
        raise
    except Exception as exc:  # noqa: BLE001 - a bug of ours is a test's failure, not the suite's
        return _crash(job, exc)
    try:
        outputs = testbed.run(statements)
    except ConfigError as exc:
        return StfOutcome(job.name, StfVerdict.FAILED, str(exc))
    except BackendError:
        raise
    except Exception as exc:  # noqa: BLE001 - as above
        return _crash(job, exc)
    return _judge(job, compare(statements, outputs), outputs, testbed.printed())


_P4_SUFFIX = ".p4"  # all else is BMv2 JSON


class _RefusalError(Exception):
    """The engine can't execute the program."""


def _open(job: StfTest) -> TestSwitch:
    source = job.program
    if source.suffix == _P4_SUFFIX:
        source = compile_program(source)
    if job.switch == "bmv2":
        from ringleaf.switches.stf.bmv2_testbed import Bmv2Testbed

        return Bmv2Testbed(source, str(job.stf))
    try:
        program = Program.load(source)
    except ConfigError as exc:
        raise _RefusalError(str(exc).removeprefix(f"{source}: ")) from exc
    return EngineTestbed(program, str(job.stf))


def _other_architecture(job: StfTest) -> str:
    """Return why a test of another architecture is skipped; empty if it is not."""
    program = job.program
    if program.suffix != _P4_SUFFIX:
        return ""
    try:
        old, include = language_of_old(program), architecture(program)
    except OSError as exc:
        raise ConfigError(f"{program}: can't be read: {exc.strerror}") from exc
    if old:
        return f"not P4_16, got {old}; give BMv2 JSON of a p4c that takes --std p4-14"
    if job.switch == "bmv2" and include == PSA.include:
        return "of PSA, for which BMv2 has another switch than the one that is run here"
    return (
        "" if include in (V1MODEL.include, PSA.include) else f"not of v1model or PSA, got {include}"
    )


def _judge(
    job: StfTest, mismatches: list[Mismatch], outputs: list[Output], printed: list[str]
) -> StfOutcome:
    verdict = StfVerdict.FAILED if mismatches else StfVerdict.PASSED
    detail = [line for wrong in mismatches for line in (wrong.reason, *wrong.detail)]
    reason = mismatches[0].reason if mismatches else ""
    if len(mismatches) > 1:
        reason += f" (and {len(mismatches) - 1} more)"
    return StfOutcome(
        job.name,
        verdict,
        reason,
        tuple(detail),
        outputs=tuple(outputs),
        printed=tuple(printed),
    )


def _crash(job: StfTest, exc: Exception) -> StfOutcome:
    trace = traceback.extract_tb(exc.__traceback__)[-1]
    place = f"{Path(trace.filename).name}:{trace.lineno}"
    reason = " ".join(f"internal error: {type(exc).__name__}: {exc} ({place})".split())
    return StfOutcome(job.name, StfVerdict.FAILED, reason, tuple(traceback.format_exception(exc)))
