"""Courses of trainings by hand: iterations of 10, copies of 5, and losses at given times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.hosts.recoveries.checkpoint import young_s
from ringleaf.hosts.recoveries.common.course import Course, Phase, RecoveryPauses
from ringleaf.hosts.recoveries.common.interface import NoPlanError
from ringleaf.hosts.recoveries.common.losses import Loss, LossQueue
from ringleaf.hosts.recoveries.common.plan import LayerCopy, PipelineShape, Plan
from ringleaf.hosts.recoveries.common.registry import RECOVERIES

SHAPE = PipelineShape(layers=4, pp=2, dp=2, micro_batches=4, least=1)
PAUSES = RecoveryPauses(detect_ps=3, regroup_ps=2, restart_ps=20, save_ps=1, interval_ps=20)


class Clock:
    """A network on which iterations take 10, and copies 5."""

    def iterate(self, plan: Plan, start_ps: int) -> int:
        plan.check(SHAPE.layers)
        return 10

    def copy(self, copies: Sequence[LayerCopy], start_ps: int) -> int:
        return 5


def course(name: str, *losses: Loss, spares: int = 0, pauses: RecoveryPauses = PAUSES) -> Course:
    workers = SHAPE.workers + spares
    return Course(RECOVERIES[name], SHAPE, workers, LossQueue(losses), pauses, Clock())


def phases(done: Course) -> list[tuple[str, int, int]]:
    return [(each.phase.value, each.start_ps, each.end_ps) for each in done.phases]


def test_a_loss_between_checkpoints_costs_what_was_done_since() -> None:
    done = course("checkpoint", Loss(46, 1), spares=1)

    done.run(5)

    assert phases(done) == [
        ("iteration", 0, 10),
        ("iteration", 10, 20),
        ("checkpoint", 20, 21),
        ("iteration", 21, 31),
        ("iteration", 31, 41),
        ("checkpoint", 41, 42),
        ("lost", 42, 46),
        ("detect", 46, 49),
        ("restart", 49, 69),
        ("iteration", 69, 79),
    ]
    [note] = done.recovered
    assert (note.workers, note.undone, note.lost_ps, note.took_ps) == ([1], 0, 4, 23)
    assert 4 in done.plan.spans


def test_iterations_since_the_last_checkpoint_are_done_again() -> None:
    done = course("checkpoint", Loss(36, 0), spares=1)

    done.run(4)

    [note] = done.recovered
    assert (note.undone, note.lost_ps) == (1, 10 + 5)
    # 2 iterations, saved by 21; 1 undone until 31, 5 in vain; 3 + 20; 2 more
    assert done.now_ps == 36 + 3 + 20 + 20
    assert done.done == 4


def test_a_loss_while_a_checkpoint_is_written_goes_back_to_the_one_before() -> None:
    pauses = RecoveryPauses(3, 2, 20, 8, 20)
    done = course("checkpoint", Loss(25, 0), spares=1, pauses=pauses)

    done.run(1)
    assert done.now_ps == 10
    done.run(3)

    [note] = done.recovered
    assert (note.undone, note.lost_ps, note.resumed_ps) == (2, 20, 25 + 3 + 20)
    assert ("checkpoint", 20, 25) in phases(done)


def test_further_losses_meanwhile_are_detected_and_planned_for_again() -> None:
    done = course("checkpoint", Loss(5, 0), Loss(7, 1), Loss(20, 2), spares=3)

    done.run(1)

    [note] = done.recovered
    assert note.workers == [0, 1, 2]  # the second is known with the first, the third is not
    assert note.detect_ps == 3 + 3
    assert note.pause_ps == (20 - 8) + 20
    assert done.now_ps == 20 + 3 + 20 + 10


def test_losses_of_spares_stop_nothing() -> None:
    done = course("checkpoint", Loss(5, 4), spares=1)

    done.run(1)

    assert phases(done) == [("iteration", 0, 10)]


def test_without_spares_a_pipeline_is_given_up_and_the_batch_stays() -> None:
    done = course("checkpoint", Loss(5, 0))

    done.run(1)

    assert done.plan.pipelines == [(1, 3)]
    assert len(done.plan.routes) == SHAPE.batch


def test_too_few_workers_wait_for_one_that_comes_back() -> None:
    losses = [Loss(5, worker, back_ps=90 if worker == 2 else None) for worker in range(3)]
    done = course("checkpoint", *losses)

    done.run(1)

    assert ("wait", 8, 90) in phases(done)
    assert sorted(done.plan.spans) == [2, 3]


def test_too_few_workers_for_good_are_an_error() -> None:
    done = course("checkpoint", *(Loss(5, worker) for worker in range(3)))

    with pytest.raises(NoPlanError, match="checkpoint: a pipeline needs 2 workers, got 1 that"):
        done.run(1)


@pytest.mark.parametrize("name", ["checkpoint", "recycle"])
def test_losses_that_leave_no_time_end_the_training(name: str) -> None:
    often = (Loss(9 * number, number % 4, back_ps=9 * number + 1) for number in range(1, 10**6))
    done = Course(RECOVERIES[name], SHAPE, 4, LossQueue(often), PAUSES, Clock())

    with pytest.raises(NoPlanError, match="leave no time for an iteration, got 100 since 0 iter"):
        done.run(2)


def test_a_worker_that_comes_back_is_taken_in_after_a_checkpoint() -> None:
    done = course("checkpoint", Loss(5, 0, back_ps=40))

    done.run(4)

    assert done.joins == 1
    assert len(done.plan.pipelines) == 2
    assert [each[0] for each in phases(done)] == [
        *("lost", "detect", "restart", "iteration", "iteration", "checkpoint"),
        *("restart", "iteration", "iteration"),
    ]


@pytest.mark.parametrize(
    ("others", "back_ps"),
    [
        ([], 40),
        ([Loss(6, 0, back_ps=60, host=1)], 60),  # back with the last of its hosts
        ([Loss(6, 0, back_ps=30, host=1)], 40),
        ([Loss(6, 0, host=1)], None),  # for good
        ([Loss(6, 0, back_ps=60, host=0)], 40),  # which is down already, and cannot fail
        ([Loss(6, 0, host=1), Loss(7, 0, back_ps=60, host=2)], None),
    ],
)
def test_a_worker_comes_back_when_all_of_its_hosts_do(
    others: list[Loss], back_ps: int | None
) -> None:
    """Of four workers one is left, so a pipeline of two has to wait."""
    gone = [Loss(5, worker) for worker in (1, 2)]
    done = course("checkpoint", *gone, Loss(5, 0, back_ps=40, host=0), *others)

    if back_ps is None:
        with pytest.raises(NoPlanError, match="got 1 that are left"):
            done.run(1)
        return
    done.run(1)
    assert ("wait", 8, back_ps) in phases(done)


@pytest.mark.parametrize(("cost_s", "interval_s"), [(60, 1138.4), (10, 464.8)])
def test_young(cost_s: float, interval_s: float) -> None:
    assert young_s(cost_s, 3 * 3600) == pytest.approx(interval_s, abs=0.05)


@given(cost_s=st.floats(1, 600), mttf_s=st.floats(3600, 1e6), other=st.floats(0.1, 10))
def test_youngs_interval_wastes_the_least(cost_s: float, mttf_s: float, other: float) -> None:
    def waste(interval_s: float) -> float:  # cost of checkpoints, and half an interval lost
        return cost_s / interval_s + interval_s / 2 / mttf_s

    best = young_s(cost_s, mttf_s)
    assert waste(best) <= waste(best * other) + 1e-12
    assert waste(best) == pytest.approx(math.sqrt(2 * cost_s / mttf_s))


@given(
    name=st.sampled_from(list(RECOVERIES)),
    losses=st.lists(
        st.builds(
            Loss,
            st.integers(0, 400),
            st.integers(0, 7),
            back_ps=st.none() | st.integers(401, 500),
        ),
        max_size=6,
        unique_by=lambda loss: loss.worker,
    ),
)
def test_phases_follow_one_another_and_add_up(name: str, losses: list[Loss]) -> None:
    done = course(name, *sorted(losses), spares=4)

    with suppress(NoPlanError):
        done.run(12)

    edges = [0, *(each.end_ps for each in done.phases)]
    assert [each.start_ps for each in done.phases] == edges[:-1]
    assert edges[-1] == done.now_ps
    kept = sum(each.phase is Phase.ITERATION for each in done.phases)
    assert kept - sum(note.undone for note in done.recovered) == done.done
