"""SCCL: the published steps, rounds and chunks of DGX-1, and schedules that are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn_wires import connected, grid
from hypothesis import given, settings
from test_blink import dgx1

from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.synthesis.methods.sccl import instances, solve
from ringleaf.collectives.synthesis.problem import Problem
from ringleaf.collectives.synthesis.steps import Instance, answer
from ringleaf.collectives.verify import verify
from ringleaf.collectives.wires import RankNetwork
from ringleaf.errors import ScheduleError

pytest.importorskip("z3")

DGX1 = dgx1(tuple(range(8)))


def test_the_published_instance_of_two_steps_has_an_answer() -> None:
    found = answer(Instance(DGX1, 8, 2, 3, 2), 60)
    assert found is not None
    assert sum(found.rounds) == 3


def test_the_published_instance_of_three_steps_has_an_answer() -> None:
    """z3 takes a minute or so to find it: `answer(Instance(DGX1, 8, 3, 7, 6), 400)`."""
    lines = Path(__file__).with_name("sccl_3_7_6.txt").read_text().splitlines()
    has = {(rank, rank * 6 + chunk) for rank in range(8) for chunk in range(6)}
    rounds = [0, 0, 0]
    coming: list[set[tuple[int, int]]] = [set(), set(), set()]
    for line in lines:
        if line.startswith("#"):
            continue
        step, src, dst = map(int, line.split()[:3])
        chunks = [int(chunk) for chunk in line.split()[3].split(",")]
        rounds[step] = max(rounds[step], -(-len(chunks) // DGX1[src, dst]))
        before = has.union(*coming[:step])
        assert all((src, chunk) in before for chunk in chunks)
        coming[step] |= {(dst, chunk) for chunk in chunks}
    assert sum(rounds) == 7
    assert len(has.union(*coming)) == 8 * 48


@pytest.mark.parametrize(("steps", "rounds", "chunks"), [(1, 9, 1), (2, 2, 2), (2, 4, 3)])
def test_instances_beyond_the_published_ones_have_none(
    steps: int, rounds: int, chunks: int
) -> None:
    assert answer(Instance(DGX1, 8, steps, rounds, chunks), 60) is None


def test_no_instance_is_tried_below_two_steps_or_seven_sixths_of_a_round() -> None:
    found = instances(DGX1, 8, None)
    assert min(each.steps for each in found) == 2
    assert min(each.rounds / each.chunks for each in found) == 7 / 6


@given(connected(most=4))
@settings(max_examples=5, deadline=None)
def test_a_schedule_is_right_on_any_connected_network(wires: RankNetwork) -> None:
    plan = solve(Problem(wires, Collective.ALLREDUCE, 9999, 1, limit_s=1))
    verify(plan.schedule)
    assert plan.expected_ps >= plan.bound_ps


def test_a_problem_that_is_too_large_says_so() -> None:
    wires = grid((12, 12), (1, 1), 1, wrap=True)
    with pytest.raises(ScheduleError, match="sccl: must find an answer within its limits"):
        solve(Problem(wires, Collective.ALL_GATHER, 1 << 20))
