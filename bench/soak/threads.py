"""Whether a case's packets end alike on one thread and on several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from bench.soak.cases import SoakCase
from bench.soak.job_cases import SoakJobs
from bench.soak.trial import Finding
from bench.soak.workload_cases import WorkloadCase

ThreadedCase = TypeVar("ThreadedCase", SoakCase, SoakJobs, WorkloadCase)

THREADS_SHARE = 0.15
"""The share of cases that run twice."""

COUNTS = ("2", "8")


def try_threads(
    case: ThreadedCase, attempt: Callable[[ThreadedCase], list[Finding]]
) -> list[Finding]:
    """Return how a case's runs ended; of some cases, whether they do so on several threads, too.

    Which cases and how many threads is drawn by the case's own seed, so that smaller cases have
    the same.
    """
    random = Random(f"{case.given['seed']} threads")
    if random.random() >= THREADS_SHARE:
        return attempt(case)
    count = random.choice(COUNTS)
    alone = attempt(_with_threads(case, "1"))
    beside = attempt(_with_threads(case, count))
    return [_compared(one, other, count) for one, other in zip(alone, beside, strict=True)]


def _with_threads(case: ThreadedCase, count: str) -> ThreadedCase:
    return replace(case, given=case.given | {"threads": count})


def _compared(one: Finding, other: Finding, count: str) -> Finding:
    """Return how a run ended, or that it ended in another way on several threads."""
    if one == other or one.is_bad:
        return one
    if one.what == other.what == "ok":
        why = f"{one.seen} on 1 thread, {other.seen} on {count}"
    else:
        why = f"{one.what} {one.why} on 1 thread, {other.what} {other.why} on {count}"
    return Finding("threads", one.where, why)
