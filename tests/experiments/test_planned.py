"""The traffic of models in parallel between racks, as controllers of circuits are told of it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.core.units import PS_PER_S
from ringleaf.experiments.setup.placing import on_rings
from ringleaf.experiments.workloads.graph.experiment import WorkExperiment
from ringleaf.experiments.workloads.graph.kind import resolve_workload
from ringleaf.experiments.workloads.graph.schedules import Form, Scheduling
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.topologies.registry import build
from ringleaf.topologies.switching.plan import CircuitDemand, Circuits, Planned
from studies.alternating import ParallelPlan, Turn, plans

ACTIVATIONS = 2048 * 5120 * 2
"""Bytes of a sample's activations in gpt13b, of which a layer's ranks add up four."""

WEIGHTS = 12 * 5120**2 * 2
"""Bytes of a layer's gradients."""


def experiment(**own: int | str) -> WorkExperiment:
    options: dict[str, Any] = {"workload": "gpt13b", "layers_per_stage": 1, "micro_batches": 1}
    options |= {"topo": "circuits,racks=4,hosts=1,optical=2,core=0", "circuits": "topoopt"}
    return WorkExperiment(resolve_workload(options | {"data": "none"} | own))


def planned(**plan: int) -> Planned:
    return experiment(**plan).planned


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


def test_a_group_reduces_over_all_rings_of_its_circuits() -> None:
    """Two rings of four ranks have the strides 1 and 3: each rank has the same for both ways."""
    work = experiment(tp=4, pp=1, dp=1, algo="strides")
    (meeting,) = {each.ranks: each for each in work.matched.meetings}.values()

    columns = work.scheduling.schedule(meeting, 4096).columns
    sent = Counter(zip(columns.src.tolist(), columns.dst.tolist(), strict=True))
    assert {(dst - src) % 4 for src, dst in sent} == {1, 3}
    assert len(sent) == 8
    assert len(set(sent.values())) == 1


def test_meetings_are_alike_if_their_rings_are() -> None:
    """Two groups of three have two rings, and one; a third has none that is its own."""
    graph = build("circuits,racks=9,hosts=1,optical=2")
    circuits = Circuits(rings={(0, 1, 2): (1, 2), (3, 4, 5): (1,)})
    at = [f"h{number}" for number in (1, 0, 2, 3, 4, 5, 6, 7, 8, 2, 0, 1)]
    scheduling = Scheduling(graph, ["strides"], at, circuits)

    def form(*ranks: int) -> Form:
        return scheduling.form(MatchedWork(CalledCollective.ALLREDUCE, ranks, (0,) * 3, 4))

    cycles = (((1, 0, 2), (1, 2, 0)), ((0, 1, 2),), ())
    forms = form(0, 1, 2), form(3, 4, 5), form(6, 7, 8)
    assert [each for *_, each in forms] == [GridEmbedding(each) for each in cycles]
    assert form(9, 10, 11) not in (form(0, 1, 2), form(3, 4, 5))


def test_ranks_of_a_rack_follow_one_another_in_each_ring() -> None:
    circuits = Circuits(rings={(0, 2, 5): (1, 2)})
    assert on_rings([0, 2, 0, 5, 5], circuits).cycles == ((0, 2, 1, 3, 4), (0, 2, 3, 4, 1))
    assert not on_rings([0, 2], circuits).cycles


def test_sums_over_rings_of_groups_are_exact_and_take_half_as_long() -> None:
    """Four ranks that share a layer add up four tensors, of which each sends 3/2, on two ports."""
    small: dict[str, Any] = {
        "workload": "llm",
        "layers": 1,
        "hidden": 256,
        "heads": 4,
        "sequence": 1024,
    }
    one_port_ps = 4 * 3 * (1024 * 256 * 2) * 8 * PS_PER_S // 2 // 10**11
    times = {}
    for algo in ("ring", "strides"):
        work = experiment(**small, data="random", tp=4, pp=1, dp=1, algo=algo, delay="100ns")
        done = work.run(lambda share, done, total: None, lambda hops: None)
        assert done.wrong == 0
        times[algo] = done.iteration_ps
    assert times["ring"] - times["strides"] == pytest.approx(one_port_ps / 2, rel=0.1)


def test_all_plans_of_16_ranks_with_a_layer_per_stage_and_a_sample_per_replica() -> None:
    every = {(2, 2, 4), (4, 1, 4), (4, 2, 2), (8, 1, 2), (8, 2, 1)}  # 40 heads are not for 16
    assert set(plans(16, layers=2, batch=4)) == every


def test_a_turn_ends_with_its_own_plan_where_others_are_as_fast() -> None:
    own, other = ParallelPlan(2, 1, 2), ParallelPlan(1, 2, 2)
    assert Turn(own, {other: 5, own: 5}).best == own
    assert Turn(own, {other: 4, own: 5}).best == other
