"""The traffic of models in parallel between racks, as controllers of circuits are told of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.topologies.switching.plan import CircuitDemand, Planned
from studies.alternating import ParallelPlan, Turn, plans

ACTIVATIONS = 2048 * 5120 * 2
"""Bytes of a sample's activations in gpt13b, of which a layer's ranks add up four."""

WEIGHTS = 12 * 5120**2 * 2
"""Bytes of a layer's gradients."""


def planned(**plan: int) -> Planned:
    options: dict[str, Any] = {"workload": "gpt13b", "layers_per_stage": 1, "micro_batches": 1}
    options |= {"topo": "circuits,racks=4,hosts=1,optical=2,core=0", "circuits": "topoopt"}
    return WorkExperiment(resolve_workload(options | {"data": "none"} | plan)).planned


def test_allreduces_are_told_by_their_racks() -> None:
    """A ring of two sends its tensor twice."""
    known = planned(tp=2, pp=1, dp=2)

    layer, replicas = 4 * 2 * ACTIVATIONS, 2 * WEIGHTS // 2
    assert known.free == {(0, 1): layer, (2, 3): layer, (0, 2): replicas, (1, 3): replicas}
    assert known.fixed is not None
    assert not known.fixed.any()
    assert known.whole is not None
    assert known.whole.sum() == 2 * (layer + replicas)
    assert known.whole[0, 1] == known.whole[1, 0] == layer / 2
    assert known.whole[0, 3] == 0


def test_messages_between_stages_are_fixed() -> None:
    """Each replica sends activations on by a stage, and their gradients back."""
    known = planned(tp=1, pp=2, dp=2)

    assert known.fixed is not None
    assert sorted(known.fixed[known.fixed > 0].tolist()) == 4 * [ACTIVATIONS]
    assert (known.fixed == known.fixed.T).all()
    assert set(known.free.values()) == {2 * WEIGHTS}


def test_what_is_not_known_is_equal() -> None:
    nothing = np.zeros((3, 3), np.int64)
    demand = CircuitDemand(3, 2, nothing, nothing)
    assert demand.whole.tolist() == demand.fixed.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_all_plans_of_16_ranks_with_a_layer_per_stage_and_a_sample_per_replica() -> None:
    every = {(2, 2, 4), (4, 1, 4), (4, 2, 2), (8, 1, 2), (8, 2, 1)}  # 40 heads are not for 16
    assert set(plans(16, layers=2, batch=4)) == every


def test_a_turn_ends_with_its_own_plan_where_others_are_as_fast() -> None:
    own, other = ParallelPlan(2, 1, 2), ParallelPlan(1, 2, 2)
    assert Turn(own, {other: 5, own: 5}).best == own
    assert Turn(own, {other: 4, own: 5}).best == other
