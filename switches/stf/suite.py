"""Runs many tests in several processes, and a sample of them compiled as well.

Numba reads whether to compile when a process first imports it, so compiled and uncompiled runs
have processes of their own.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from ringleaf.core.safe_path import safe_path
from ringleaf.errors import ConfigError
from ringleaf.switches.stf.outcome import StfOutcome, StfVerdict
from ringleaf.switches.stf.runner import StfTest, run_test

PATTERN = "*-bmv2.stf"
UNCOMPILED_TIMEOUT_S = 120
COMPILED_TIMEOUT_S = 600

Report = Callable[[StfOutcome], None]


def find_jobs(folder: Path, pattern: str = PATTERN, switch: str = "embedded") -> list[StfTest]:
    """Return the tests of a folder that have their program beside them, in order of names.

    Raises:
        ConfigError: If there is none.
    """
    jobs = []
    for stf in sorted(folder.glob(pattern)):
        program = next((p for s in (".p4", ".json") if (p := stf.with_suffix(s)).exists()), None)
        if program is not None:
            jobs.append(StfTest(program, stf, switch))
    if not jobs:
        raise ConfigError(f"{folder}: no tests, got none {pattern!r} with a program beside it")
    return jobs


def run_jobs(
    jobs: Sequence[StfTest], *, compiled: bool, workers: int = 0, report: Report | None = None
) -> list[StfOutcome]:
    """Return the outcomes, in order of `jobs`; `report` gets each as it comes.

    Args:
        jobs: The tests.
        compiled: Whether Numba compiles; if not, the same code runs as plain Python.
        workers: The number of processes; 0: one per core.
        report: A function that is called with each outcome.
    """
    timeout_s = COMPILED_TIMEOUT_S if compiled else UNCOMPILED_TIMEOUT_S
    done: dict[StfTest, StfOutcome] = {}
    with _numba(compiled):
        for job, outcome in _outcomes(jobs, workers or os.cpu_count() or 1, timeout_s):
            done[job] = outcome
            if report:
                report(outcome)
    return [done[job] for job in jobs]


def _outcomes(
    jobs: Sequence[StfTest], workers: int, timeout_s: int
) -> Iterator[tuple[StfTest, StfOutcome]]:
    unfinished = dict.fromkeys(jobs)
    for job, outcome in _pool(jobs, workers, timeout_s):
        if outcome is not None:
            del unfinished[job]
            yield job, outcome
    for job in unfinished:  # a process died and took the pool with it: find out which job it was
        [(_, outcome)] = _pool([job], 1, timeout_s)
        yield (
            job,
            outcome or StfOutcome(job.name, StfVerdict.FAILED, "the process that ran it died"),
        )


def _pool(
    jobs: Sequence[StfTest], workers: int, timeout_s: int
) -> Iterator[tuple[StfTest, StfOutcome | None]]:
    context = multiprocessing.get_context("spawn")
    count = max(min(workers, len(jobs)), 1)
    with safe_path(), ProcessPoolExecutor(count, mp_context=context) as pool:
        futures: dict[Future[StfOutcome], StfTest] = {
            pool.submit(run_in_time, job, timeout_s): job for job in jobs
        }
        try:
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except BrokenProcessPool:
                    yield futures[future], None
                except ConfigError as exc:  # a file can't be read
                    job = futures[future]
                    yield job, StfOutcome(job.name, StfVerdict.FAILED, str(exc))
        finally:
            pool.shutdown(cancel_futures=True)  # not waiting for it races with the exit


def run_in_time(job: StfTest, timeout_s: int) -> StfOutcome:
    """Run a test; one that takes too long, perhaps in a parser's loop, fails."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {timeout_s} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(timeout_s)
    try:
        return run_test(job)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _numba(compiled: bool) -> Iterator[None]:
    """Let processes that start within this context compile, or not."""
    before = os.environ.get("NUMBA_DISABLE_JIT")
    os.environ["NUMBA_DISABLE_JIT"] = "0" if compiled else "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["NUMBA_DISABLE_JIT"]
        else:
            os.environ["NUMBA_DISABLE_JIT"] = before


def sample(jobs: Sequence[StfTest], outcomes: Sequence[StfOutcome], count: int) -> list[StfTest]:
    """Return `count` tests that have passed, evenly from all of them."""
    passed = [
        job
        for job, outcome in zip(jobs, outcomes, strict=True)
        if outcome.verdict is StfVerdict.PASSED
    ]
    count = min(count, len(passed))
    return [passed[at * len(passed) // count] for at in range(count)]


def compare_compiled(
    jobs: Sequence[StfTest], outcomes: Sequence[StfOutcome], compiled: dict[StfTest, StfOutcome]
) -> list[StfOutcome]:
    """Return the outcomes; a test whose compiled run has other results is a failure."""
    return [
        _differing(outcome, compiled[job])
        if job in compiled and compiled[job].observed != outcome.observed
        else outcome
        for job, outcome in zip(jobs, outcomes, strict=True)
    ]


def _differing(outcome: StfOutcome, compiled: StfOutcome) -> StfOutcome:
    reason = compiled.reason or "other results"
    return replace(
        outcome,
        verdict=StfVerdict.FAILED,
        reason=f"compiled: {reason}",
        detail=compiled.detail or outcome.detail,
    )
