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

SHOWN = 160
"""Letters that are shown of what differs."""


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
    ends = [_compared(*pair, count) for pair in zip(alone, beside, strict=False)]
    if len(alone) != len(beside):
        runs = f"{len(alone)} runs on 1 thread, {len(beside)} on {count}"
        ends.append(Finding("threads", "case", runs))
    return ends


def _with_threads(case: ThreadedCase, count: str) -> ThreadedCase:
    return replace(case, given=case.given | {"threads": count})


def _compared(one: Finding, other: Finding, count: str) -> Finding:
    """Return how a run ended, or that it ended in another way on several threads."""
    if one == other or one.is_bad:
        return one
    if one.what == other.what == "ok":
        ends = [str(each.seen) for each in (one, other)]
    else:
        ends = [f"{each.what} {each.why}" for each in (one, other)]
    first = next((i for i, pair in enumerate(zip(*ends, strict=False)) if len({*pair}) > 1), 0)
    one_end, other_end = (_around(end, first) for end in ends)
    return Finding("threads", one.where, f"{one_end} on 1 thread, {other_end} on {count}")


def _around(text: str, place: int) -> str:
    """Return the part of a text about a place: links and spans of a run are long."""
    return text[max(place - SHOWN // 2, 0) :][:SHOWN]
