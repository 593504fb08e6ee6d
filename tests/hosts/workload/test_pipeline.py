"""Pipelines: published bubbles, and orders in which each pass comes once and can run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.errors import ConfigError
from ringleaf.hosts.workload.llm.pipeline import (
    SCHEDULES,
    MicroBatchPass,
    bubble,
    check_pipeline,
    worker_of,
)


def steps(name: str, pp: int, micro: int, chunks: int = 1, backward: int = 1) -> int:
    """The length of a pipeline in forward passes, if nothing but passes takes time."""
    order = SCHEDULES[name](pp, micro, chunks)
    ends: dict[MicroBatchPass, int] = {}
    free = [0] * pp
    left = [list(tasks) for tasks in order]
    stages = pp * chunks
    while any(left):
        before = sum(map(len, left))
        for worker, tasks in enumerate(left):
            while tasks:
                task = tasks[0]
                needs = task.stage + 1 if task.backward else task.stage - 1
                other = [task._replace(stage=needs)] if 0 <= needs < stages else []
                if task.backward:
                    other.append(task._replace(backward=False))
                if any(each not in ends for each in other):
                    break
                start = max([free[worker], *(ends[each] for each in other)])
                free[worker] = ends[task] = start + (backward if task.backward else 1)
                tasks.pop(0)
        assert sum(map(len, left)) < before, "no pass can run"
    return max(free)


@pytest.mark.parametrize(
    ("name", "chunks", "share"),
    [("gpipe", 1, 0.375), ("1f1b", 1, 0.375), ("interleaved", 2, 0.1875)],
)
def test_bubbles_of_four_stages_and_eight_micro_batches(
    name: str, chunks: int, share: float
) -> None:
    """37.5 %, and 18.75 % with two chunks, of the time without bubbles; backward twice as long."""
    ideal = 3 * 8 * chunks

    assert steps(name, 4, 8, chunks, backward=2) == ideal * (1 + share)
    assert bubble(name, 4, 8, chunks) == share


def test_chimera_s_bubble_is_a_fifth_where_1f1b_s_is_three_sevenths() -> None:
    """Four stages and micro-batches, passes as long as each other: shares of the whole."""
    assert 1 - 8 / steps("chimera", 4, 4) == pytest.approx(0.2)
    assert 1 - 8 / steps("1f1b", 4, 4) == pytest.approx(0.429, abs=1e-3)


@given(st.sampled_from(sorted(SCHEDULES)), st.integers(1, 4), st.integers(1, 4), st.integers(2, 3))
def test_every_pass_comes_once_and_all_can_run(
    name: str, half: int, times: int, chunks: int
) -> None:
    pp = 2 * half
    chunks = chunks if name == "interleaved" else 1
    micro = pp * times
    check_pipeline(name, pp, micro, chunks, "")
    order = SCHEDULES[name](pp, micro, chunks)

    found = [task for tasks in order for task in tasks]
    assert len(set(found)) == len(found) == 2 * pp * chunks * micro
    assert {task.micro for task in found} == set(range(micro))
    for worker, tasks in enumerate(order):
        assert all(worker_of(pp, task.stage, task.replica) == worker for task in tasks)
    assert steps(name, pp, micro, chunks) >= 2 * micro * chunks


@given(st.integers(1, 8), st.integers(1, 3))
def test_chimera_leaves_two_idle_steps_less_than_it_has_stages(half: int, times: int) -> None:
    pp = 2 * half
    micro = pp * times

    assert steps("chimera", pp, micro) == 2 * micro + pp - 2


@pytest.mark.parametrize(("pp", "of_whole"), [(4, 0.25), (8, 1 / 3)])
def test_chimeras_bubble_is_that_of_backward_passes_twice_as_long(pp: int, of_whole: float) -> None:
    """With as many micro-batches as stages, p - 2 forward passes beside 3 m / 2 pairs' halves.

    (p - 2) / (3 p / 2 + p - 2) of the whole; equal passes would have (p - 2) / (3 p - 2).
    """
    relative = bubble("chimera", pp, pp)

    assert relative / (1 + relative) == pytest.approx(of_whole)
    assert relative < bubble("1f1b", pp, pp)


@pytest.mark.parametrize("micro", [8, 32])
def test_the_headers_bubble_is_the_order_s(micro: int) -> None:
    ideal = 3 * micro

    measured = steps("chimera", 8, micro, backward=2) / ideal - 1
    assert bubble("chimera", 8, micro) == pytest.approx(measured)


def test_chimera_is_slower_than_1f1b_with_many_micro_batches() -> None:
    """Eight stages, 32 micro-batches: 23.2 % of the whole, not 8.6 as with equal passes."""
    relative = bubble("chimera", 8, 32)

    assert relative / (1 + relative) == pytest.approx(0.232)
    assert relative > bubble("1f1b", 8, 32)


@pytest.mark.parametrize(
    ("name", "pp", "micro", "chunks", "message"),
    [
        ("1f1b ", 4, 8, 1, "schedule: unknown schedule, got '1f1b '; .*mean '1f1b'"),
        ("interleaved", 4, 8, 1, "chunks: an interleaved pipeline has 2 chunks .* got 1 and 4"),
        ("interleaved", 4, 6, 2, "micro_batches: must be a multiple of pp, 4, .* got 6"),
        ("gpipe", 4, 8, 2, "chunks: must be 1 unless .* got 2"),
        ("chimera", 3, 4, 1, "chimera needs even pp and micro_batches, got 3 and 4"),
    ],
)
def test_what_a_schedule_can_t_do_is_refused(
    name: str, pp: int, micro: int, chunks: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_pipeline(name, pp, micro, chunks, "")
