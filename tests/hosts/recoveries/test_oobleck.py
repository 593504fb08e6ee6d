"""Oobleck: times of templates, coverings, and the released code's reconfigurations."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.hosts.recoveries.common.interface import NoPlanError
from ringleaf.hosts.recoveries.common.plan import LossSituation, PipelineShape, copies_for
from ringleaf.hosts.recoveries.oobleck import (
    RECOVERY,
    PipelineTemplate,
    coverings,
    reconfigure,
    template,
)


def of_times(*times: float) -> PipelineTemplate:
    return PipelineTemplate(tuple(range(len(times) + 1)), times)


@pytest.mark.parametrize(
    ("times", "parts", "slowest"),
    [
        ((1, 1), (2, 5, 2), 0),
        ((2, 3, 1), (6, 24, 4), 1),
        ((1, 1, 1, 1), (4, 9, 4), 0),
        ((3,), (3, 6, 3), 0),  # one stage: 2 t
    ],
)
def test_the_three_parts_of_a_templates_time(
    times: tuple[float, ...], parts: tuple[float, ...], slowest: int
) -> None:
    made = of_times(*times)
    assert (made.parts, made.slowest, made.time) == (parts, slowest, sum(parts))


PIPELINES = [[0, 1], [2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12, 13]]


@pytest.mark.parametrize(
    ("lost", "left"),
    [
        ([2], [[0, 1], [3, 4], [5, 6, 7, 8], [9, 10, 11, 12, 13]]),
        ([6, 8], [[0, 1], [5, 7], [2, 3, 4], [9, 10, 11, 12, 13]]),
        ([10, 11], [[0, 1], [2, 3, 4], [9, 12, 13], [5, 6, 7, 8]]),
        ([1], [[0, 13], [2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]),
        ([1, 3, 4], [[0, 13], [2, 12], [9, 10, 11], [5, 6, 7, 8]]),
        ([2, 4, 6, 7, 8], [[0, 1], [3, 13], [5, 12], [9, 10, 11]]),
        ([*range(1, 12)], [[0, 12, 13]]),
        ([1, 2, 3, 5, 6, 7, 9, 11, 12, 13], [[0, 4], [8, 10]]),
        ([1, 2, 3, 5, 6, 7, 9, 10, 11], [[0, 4], [8, 12, 13]]),
    ],
)
def test_reconfigurations_of_the_released_code(lost: list[int], left: list[list[int]]) -> None:
    assert reconfigure(PIPELINES, set(lost), 2) == left


@given(
    sizes=st.lists(st.integers(2, 6), min_size=1, max_size=5),
    lost=st.sets(st.integers(0, 29), max_size=25),
    least=st.integers(1, 3),
)
def test_reconfigured_pipelines_keep_all_that_are_left(
    sizes: list[int], lost: set[int], least: int
) -> None:
    workers = iter(range(sum(sizes)))
    pipelines = [[next(workers) for _ in range(size)] for size in sizes]
    left = sorted(set(range(sum(sizes))) - lost)

    lines = reconfigure(pipelines, lost, least)

    if len(left) >= least:
        assert sorted(worker for line in lines for worker in line) == left
        assert all(len(line) >= least for line in lines)
    else:
        assert lines == []


def test_thirteen_workers_by_templates_of_two_to_four() -> None:
    ways = list(coverings(13, (4, 3, 2)))

    assert (4, 3, 3, 3) in ways
    after = list(coverings(12, (4, 3, 2)))
    assert (4, 4, 4) in after
    assert (3, 3, 3, 3) in after
    assert all(sum(way) == 13 for way in ways)


@given(workers=st.integers(2, 30), faults=st.integers(0, 3), least=st.integers(1, 5))
def test_any_number_of_workers_can_be_covered(workers: int, faults: int, least: int) -> None:
    most = workers - faults * least  # the largest template that leaves room for the others
    if most >= least:
        ways = coverings(workers, range(most, least - 1, -1))
        assert any(len(way) > faults for way in ways)


@given(
    times=st.lists(st.integers(1, 9), min_size=2, max_size=7),
    workers=st.integers(1, 7),
)
def test_divide_and_conquer_against_all_cuts(times: list[int], workers: int) -> None:
    workers = min(workers, len(times))
    made = template(tuple(times), workers)

    every = [(0, *cuts, len(times)) for cuts in combinations(range(1, len(times)), workers - 1)]

    def of(edges: tuple[int, ...]) -> PipelineTemplate:
        stages = pairwise(edges)
        return PipelineTemplate(edges, tuple(sum(times[a:b]) for a, b in stages))

    assert made.edges in every
    assert made == of(made.edges)
    best = min(of(edges).time for edges in every)
    assert best <= made.time <= 1.5 * best  # halves are the best by themselves
    if workers <= 2:
        assert made.time == best


SHAPE = PipelineShape(layers=8, pp=4, dp=2, micro_batches=4, least=2)


def situation(*alive: int) -> LossSituation:
    return LossSituation(SHAPE, alive, {}, 1)


@given(st.lists(st.integers(0, 7), max_size=6, unique=True))
def test_all_that_are_left_work_and_no_state_is_lost_by_one(lost: list[int]) -> None:
    plan = RECOVERY.begin(situation(*range(8)))
    alive = set(range(8))
    for worker in lost:
        alive.discard(worker)
        new = RECOVERY.replan(situation(*sorted(alive)), plan)
        new.check(SHAPE.layers)
        assert set(new.spans) == alive
        assert len(new.routes) == SHAPE.batch
        if len(plan.pipelines) > 1:
            assert copies_for(plan, new, alive) is not None
        plan = new


def test_a_worker_that_comes_back_joins_the_shortest_pipeline() -> None:
    plan = RECOVERY.begin(situation(*range(7)))
    assert sorted(map(len, plan.pipelines)) == [3, 4]

    new = RECOVERY.replan(situation(*range(8)), plan)

    assert sorted(map(len, new.pipelines)) == [4, 4]


def test_too_few_are_refused() -> None:
    plan = RECOVERY.begin(situation(*range(8)))
    with pytest.raises(NoPlanError, match="oobleck: a pipeline needs 2 workers, got 1"):
        RECOVERY.replan(situation(3), plan)
