"""Bamboo, ReCycle and SWARM by hand, and what all recoveries have in common."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.hosts.recoveries import swarm
from ringleaf.hosts.recoveries.common.interface import NoPlanError
from ringleaf.hosts.recoveries.common.iteration import iteration_graph
from ringleaf.hosts.recoveries.common.passes import passes_of
from ringleaf.hosts.recoveries.common.plan import LossSituation, PipelineShape, Span, copies_for
from ringleaf.hosts.recoveries.common.registry import RECOVERIES
from ringleaf.hosts.workload.llm.pipeline import Part
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes
from ringleaf.hosts.workload.meetings import match

SHAPE = PipelineShape(layers=8, pp=4, dp=2, micro_batches=4, least=2)
"""Pipelines 0, 2, 4, 6 and 1, 3, 5, 7, with two layers of each worker."""

SIZES = TransformerSizes(layers=8, hidden=8, heads=2, kv_heads=2, ffn=16, sequence=8)
SPLIT = Split(pp=4, dp=2, micro_batches=4)

BAMBOO, RECYCLE, SWARM = (RECOVERIES[name] for name in ("bamboo", "recycle", "swarm"))


def situation(*alive: int, **paces: float) -> LossSituation:
    return LossSituation(SHAPE, alive, {int(name[1:]): pace for name, pace in paces.items()}, 1)


ALL = situation(*range(8))


def without(*lost: int) -> LossSituation:
    return situation(*(worker for worker in range(8) if worker not in lost))


def test_bamboos_workers_have_the_next_stage_too() -> None:
    plan = BAMBOO.begin(ALL)

    assert plan.spans[2] == Span(2, 4)
    assert plan.mirrors == {
        **{0: Span(2, 4), 2: Span(4, 6), 4: Span(6, 8)},
        **{1: Span(2, 4), 3: Span(4, 6), 5: Span(6, 8)},
    }
    order = passes_of(plan, 8, 4)
    assert Counter(task.part for task in order[0])[Part.REDUNDANT] == 4
    assert Counter(task.part for task in order[6])[Part.REDUNDANT] == 0


def test_bamboo_fails_over_to_the_worker_before_without_copies_of_its_layers() -> None:
    plan = BAMBOO.begin(ALL)

    new = BAMBOO.replan(without(4), plan)

    assert new.pipelines == [(0, 2, 6), (1, 3, 5, 7)]
    assert new.spans[2] == Span(2, 6)
    copies = copies_for(plan, new, without(4).alive)
    assert copies is not None
    # only redundant layers move: 0 keeps 2's new ones, and 2 keeps those of 6
    moved = sorted((each.target, layer) for each in copies for layer in each.layers)
    assert moved == [(0, 4), (0, 5), (2, 6), (2, 7)]


def test_bamboo_copies_what_two_that_follow_one_another_had() -> None:
    plan = BAMBOO.begin(ALL)

    new = BAMBOO.replan(without(2, 4), plan)

    assert new.spans[0] == Span(0, 6)
    copies = copies_for(plan, new, without(2, 4).alive)
    assert copies is not None
    assert {layer for each in copies if each.target == 0 for layer in each.layers} >= {4, 5}


def test_bamboo_gives_up_a_pipeline_that_is_too_short() -> None:
    plan = BAMBOO.begin(ALL)

    new = BAMBOO.replan(without(1, 2, 4, 6), plan)

    assert new.pipelines == [(3, 5, 7, 0)]
    assert [new.spans[worker] for worker in (3, 5, 7, 0)] == [
        Span(0, 2), Span(2, 4), Span(4, 6), Span(6, 8)
    ]  # fmt: skip


def test_recycle_gives_a_lost_workers_micro_batches_to_its_peers() -> None:
    shape = PipelineShape(layers=8, pp=2, dp=3, micro_batches=4, least=1)  # stages 0-2 and 3-5
    plan = RECYCLE.begin(LossSituation(shape, tuple(range(6)), {}, 1))

    new = RECYCLE.replan(LossSituation(shape, (0, 1, 3, 4, 5), {}, 1), plan)

    assert Counter(route[0] for route in new.routes) == {0: 6, 1: 6}
    assert Counter(route[1] for route in new.routes) == {3: 4, 4: 4, 5: 4}
    for old, route in zip(plan.routes, new.routes, strict=True):
        assert route == old or old[0] == 2
    assert copies_for(plan, new, (0, 1, 3, 4, 5)) == []
    assert new.cuts_backward


def test_recycles_weight_passes_come_once_and_after_their_inputs() -> None:
    plan = RECYCLE.replan(without(4), RECYCLE.begin(ALL))

    for worker, tasks in enumerate(passes_of(plan, 8, 4)):
        weights = [task.micro for task in tasks if task.part is Part.WEIGHT]
        assert (
            len(weights)
            == len(set(weights))
            == Counter(each for route in plan.routes for each in route)[worker]
        )
        for micro in weights:
            places = [tasks.index(each) for each in tasks if each.micro == micro and each.backward]
            assert [tasks[place].part for place in places] == [Part.INPUT, Part.WEIGHT]


def test_weight_passes_fill_bubbles_and_delay_nobody() -> None:
    """By hand: passes take 1. The last stage has no bubble before its inputs are done."""
    shape = PipelineShape(layers=2, pp=2, dp=1, micro_batches=2, least=1)
    plan = RECYCLE.begin(LossSituation(shape, (0, 1), {}, 1))

    texts = {Part.WHOLE: "F", Part.INPUT: "B", Part.WEIGHT: "W"}
    first, last = (
        " ".join(f"{texts[task.part]}{task.micro}" for task in tasks)
        for tasks in passes_of(plan, 2, 2)
    )

    assert first == "F0 F1 B0 W0 B1 W1"
    assert last == "F0 B0 F1 B1 W0 W1"


def test_those_who_keep_a_copy_of_layers_take_part_in_their_sums() -> None:
    matched = match(iteration_graph("any", SIZES, SPLIT, BAMBOO.begin(ALL), 8))

    sums = Counter(each.ranks for each in matched.meetings if each.call is not None)
    assert sums == {(0, 1): 2, (0, 1, 2, 3): 2, (2, 3, 4, 5): 2, (4, 5, 6, 7): 2}


def test_recycle_copies_the_state_for_one_that_comes_back() -> None:
    plan = RECYCLE.replan(without(4), RECYCLE.begin(ALL))

    new = RECYCLE.replan(ALL, plan)

    assert new.key == RECYCLE.begin(ALL).key
    copies = copies_for(plan, new, ALL.alive)
    assert copies is not None
    assert [(each.target, each.layers) for each in copies] == [(4, (4, 5))]


def test_swarms_balancer_takes_the_one_that_is_free_first() -> None:
    balancer = swarm.Balancer([1, 2], {1: 1.0, 2: 2.5}, Random(1))

    chosen = Counter(balancer.choose() for _ in range(70))

    assert chosen[1] == pytest.approx(50, abs=1)  # 2 is 2.5 times as slow
    assert chosen[2] == 70 - chosen[1]


def test_swarm_moves_a_worker_to_a_stage_that_lacks_two() -> None:
    shape = PipelineShape(layers=2, pp=2, dp=3, micro_batches=2, least=1)
    plan = SWARM.begin(LossSituation(shape, tuple(range(6)), {}, 1))

    new = SWARM.replan(LossSituation(shape, (2, 3, 4, 5), {}, 1), plan)

    assert Counter(new.spans.values()) == {Span(0, 1): 2, Span(1, 2): 2}
    copies = copies_for(plan, new, (2, 3, 4, 5))
    assert copies is not None
    assert [(each.source, each.layers) for each in copies] == [(2, (0,))]


def test_swarm_sends_less_to_slow_workers() -> None:
    plan = SWARM.begin(situation(*range(8), w2=3.0))

    counts = Counter(route[1] for route in plan.routes)
    assert counts[2] <= 2 < 6 <= counts[3]


@given(
    name=st.sampled_from([each for each in RECOVERIES if each != "checkpoint"]),
    losses=st.lists(st.sets(st.integers(0, 9), max_size=3), max_size=4),
    returns=st.booleans(),
)
def test_plans_lead_all_micro_batches_through_all_layers(
    name: str, losses: list[set[int]], returns: bool
) -> None:
    recovery, alive = RECOVERIES[name], set(range(10))
    plan = recovery.begin(situation(*range(10)))
    for lost in losses:
        before, alive = alive, alive - lost
        if returns:
            alive |= set(range(10)) - before
        try:
            new = recovery.replan(situation(*sorted(alive)), plan)
        except NoPlanError:
            assert len(alive) < SHAPE.pp
            return
        new.check(SHAPE.layers)
        assert set(new.spans) <= alive
        assert len(new.routes) == SHAPE.batch
        match(iteration_graph("any", SIZES, SPLIT, new, 10))  # all meet, and nobody waits for ever
        order = passes_of(new, 10, SHAPE.micro_batches)
        done = Counter(
            (worker, task.micro, task.backward, task.part)
            for worker, tasks in enumerate(order)
            for task in tasks
        )
        assert set(done.values()) <= {1}
        whole = sum(len(route) for route in new.routes)
        assert sum(not key[2] and key[3] is Part.WHOLE for key in done) == whole
        assert sum(key[2] and key[3] is not Part.WEIGHT for key in done) == whole
        plan = new


@given(lost=st.integers(0, 7))
@pytest.mark.parametrize("name", ["oobleck", "bamboo", "recycle", "swarm"])
def test_one_loss_loses_no_state(name: str, lost: int) -> None:
    recovery = RECOVERIES[name]
    plan = recovery.begin(ALL)

    new = recovery.replan(without(lost), plan)

    assert copies_for(plan, new, without(lost).alive) is not None
