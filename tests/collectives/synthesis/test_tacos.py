"""TACOS: its published times, and schedules that are right on any network."""

from __future__ import annotations

import pytest
from drawn_wires import GBPS, GIB_S, connected, grid
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.synthesis.bounds import gather_bound_ps, least_time
from ringleaf.collectives.synthesis.methods.tacos import SYNTHESISER, solve
from ringleaf.collectives.synthesis.problem import Problem
from ringleaf.collectives.verify import verify
from ringleaf.collectives.wires import RankNetwork, Wire
from ringleaf.core.units import PS_PER_US

GIB = 1 << 30

# github.com/astra-sim/tacos 1811f1f, its tests: sizes, GiB/s by dimension, us, whether a torus,
# chunks for each rank, GiB, us of an all-gather.
PUBLISHED = [
    ((5, 5), (50, 50), 0.5, False, 1, 1, 9606.0),
    ((10, 10), (100, 100), 1.0, False, 2, 1, 5049.0),
    ((7, 12), (100, 100), 1.0, False, 3, 4, 19966.27),
    ((3, 3, 3), (50, 50, 50), 0.5, True, 1, 1, 3706.20),
    ((3, 4, 5), (50, 50, 50), 0.5, True, 2, 2, 6676.67),
    ((4, 2, 3), (50, 50, 50), 0.5, True, 3, 3, 11673.67),
    ((3, 3, 3), (50, 50, 50), 0.5, False, 1, 1, 6671.17),
    ((3, 4, 5), (50, 50, 50), 0.5, False, 2, 2, 13353.33),
    ((4, 2, 3), (50, 50, 50), 0.5, False, 3, 3, 19178.17),
    ((5, 5), (50, 75), 0.5, False, 1, 1, 8005.0),
    ((8, 5), (80, 35), 1.0, False, 2, 1, 8595.43),
    ((7, 10), (16, 73), 1.5, False, 3, 4, 44612.47),
]


@pytest.mark.parametrize("case", PUBLISHED, ids=str)
def test_an_all_gather_takes_the_published_time(case: tuple[object, ...]) -> None:
    sizes, rates, delay_us, wrap, chunks, gib, want_us = case
    wires = grid(sizes, rates, delay_us, wrap=wrap)  # type: ignore[arg-type]
    plan = solve(Problem(wires, Collective.ALL_GATHER, gib * GIB, chunks))  # type: ignore[operator,arg-type]
    assert plan.expected_ps / PS_PER_US == pytest.approx(want_us, rel=0.01)
    assert plan.bound_ps / PS_PER_US == pytest.approx(want_us, rel=1e-5)


def test_the_halves_of_an_allreduce_take_as_long_as_an_all_gather() -> None:
    wires = grid((3, 3, 3), (50, 50, 50), 0.5, wrap=True)
    times = {}
    for collective in SYNTHESISER.collectives:
        plan = solve(Problem(wires, collective, GIB, 1))
        verify(plan.schedule)
        times[collective] = plan.expected_ps / PS_PER_US
    assert times[Collective.REDUCE_SCATTER] == pytest.approx(3706.20, rel=0.01)
    assert times[Collective.ALLREDUCE] == pytest.approx(2 * 3706.20, rel=0.01)


@given(
    connected(), st.sampled_from(SYNTHESISER.collectives), st.integers(1, 3), st.integers(0, 9999)
)
@settings(max_examples=40, deadline=None)
def test_a_schedule_is_right_on_any_connected_network(
    wires: RankNetwork, collective: Collective, chunks: int, size_bytes: int
) -> None:
    plan = solve(Problem(wires, collective, size_bytes, chunks))
    verify(plan.schedule)
    assert plan.expected_ps >= plan.bound_ps
    assert {(row.src, row.dst) for row in plan.schedule.rows} <= set(wires.ways)  # type: ignore[union-attr]


def test_links_that_differ_each_way_are_used_their_own_way() -> None:
    """A rank with an in-link of 1 and an out-link of 3: reduce-scatter leaves, all-gather comes."""
    fast, slow = 3 * GBPS, GBPS
    wires = RankNetwork.direct(2, [(0, 1, fast, 0), (1, 0, slow, 0)])
    half_ps = 500 * 8 * 1000  # 500 bytes at 1 Gbit/s: 8 ps a millionth
    for collective in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER):
        assert solve(Problem(wires, collective, 1000, 1)).expected_ps == half_ps


def test_the_same_seed_gives_the_same_rows() -> None:
    wires = grid((3, 4), (50, 50), 0.5, wrap=False)
    problems = [Problem(wires, Collective.ALLREDUCE, GIB, 2, seed=seed) for seed in (5, 5, 6)]
    first, again, other = (solve(problem).schedule.rows for problem in problems)
    assert first == again
    assert first != other


def star(ranks: int) -> RankNetwork:
    """Return ranks behind one switch, each with a link of 1 Gbit/s."""
    wire = Wire(GBPS, 500)
    ways = {
        (src, dst): (src, ranks + dst) for src in range(ranks) for dst in range(ranks) if src != dst
    }
    return RankNetwork(ranks, (wire,) * (2 * ranks), ways, (0,) * ranks)


def test_behind_a_switch_no_wire_gets_more_than_it_carries() -> None:
    plan = solve(Problem(star(5), Collective.ALL_GATHER, 5000, 1))
    verify(plan.schedule)
    wire_ps = 4 * 1000 * 8 * 1000  # four chunks must come through each rank's wire
    assert plan.bound_ps >= wire_ps
    assert wire_ps <= plan.expected_ps <= wire_ps + 4 * 1000


def test_the_least_time_of_unequal_machines() -> None:
    """Pieces of 3 and 5: by 15 there are 5 and 3, and the ninth is done at 18."""
    assert least_time([3, 5], 8) == 15
    assert least_time([3, 5], 9) == 18


def test_the_bound_sees_a_narrow_way_to_a_switch() -> None:
    """Two ranks behind one wire must get two chunks each... two in all, as they can share."""
    wires = [Wire(GBPS, 0)] * 10
    up, down, cross = (0, 1, 2, 3), (4, 5, 6, 7), {(0, 1): 8, (1, 0): 9}
    sites = (0, 0, 1, 1)
    ways = {
        (a, b): (up[a], *([cross[sites[a], sites[b]]] if sites[a] != sites[b] else []), down[b])
        for a in range(4)
        for b in range(4)
        if a != b
    }
    slow = [*wires[:8], Wire(GBPS // 4, 0), Wire(GBPS // 4, 0)]
    network = RankNetwork(4, tuple(slow), ways, sites)
    assert gather_bound_ps(network, 1, 1000) == 2 * 4 * 1000 * 8 * 1000


def test_gib_is_what_tacos_means() -> None:
    assert GIB_S == 8 * 2**30
