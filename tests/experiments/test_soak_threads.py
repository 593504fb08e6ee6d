"""A soak's comparison of runs on one thread and on several."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.soak.threads import COUNTS, THREADS_SHARE, try_threads
from bench.soak.trial import Finding
from bench.soak.workload_cases import WorkloadCase


def cases() -> list[WorkloadCase]:
    return [WorkloadCase(seed, {"seed": str(seed)}) for seed in range(400)]


def test_some_cases_run_on_one_thread_and_on_several() -> None:
    ran = Counter[str]()
    for case in cases():
        asked: list[str] = []

        def attempt(each: WorkloadCase, asked: list[str] = asked) -> list[Finding]:
            asked.append(each.given.get("threads", ""))
            return [Finding("ok", seen=7)]

        assert try_threads(case, attempt) == [Finding("ok", seen=7)]
        ran[",".join(asked)] += 1
    assert set(ran) == {"", *(f"1,{count}" for count in COUNTS)}
    assert ran[""] / 400 == pytest.approx(1 - THREADS_SHARE, abs=0.08)


@pytest.mark.parametrize(
    ("one", "many", "why"),
    [
        (Finding("ok", seen=7), Finding("ok", seen=8), "7 on 1 thread, 8 on"),
        (Finding("ok", seen=7), Finding("ended", why="cut"), "ok  on 1 thread, ended cut on"),
        (Finding("ended", why="a"), Finding("ended", why="b"), "ended a on 1 thread, ended b on"),
    ],
)
def test_another_end_on_several_threads_is_bad(one: Finding, many: Finding, why: str) -> None:
    ended = Counter[str]()
    for case in cases():
        [last] = try_threads(
            case, lambda each: [many if each.given.get("threads", "1") != "1" else one]
        )
        ended[last.what] += 1
        assert last == one or (last.is_bad and last.why.startswith(why))
    assert set(ended) == {one.what, "threads"}


def test_what_is_bad_on_one_thread_is_told_as_it_is() -> None:
    bad = Finding("wrong", "ring", "3 elements")
    for case in cases():
        last = try_threads(
            case, lambda each: [Finding("ok") if each.given.get("threads") == "8" else bad]
        )
        assert last == [bad]


def test_a_run_that_is_missing_on_several_threads_is_bad() -> None:
    ok = Finding("ok")
    ends = {
        try_threads(case, lambda each: [ok] * (1 + (each.given.get("threads") == "1")))[-1].what
        for case in cases()
    }
    assert ends == {"ok", "threads"}


def test_of_long_results_what_differs_is_shown() -> None:
    for case in cases():
        [last] = try_threads(
            case,
            lambda each: [Finding("ok", seen=[0] * 999 + [int(each.given.get("threads", "1"))])],
        )
        assert last.what == "ok" or ("0, 1] on 1 thread" in last.why and len(last.why) < 400)
