"""PLink: racks are found from times alone, and used where that pays."""

from __future__ import annotations

import random

from drawn_wires import GBPS, connected
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.synthesis.methods.plink import solve, two_levels
from ringleaf.collectives.synthesis.probing import groupings, latencies, probe_of
from ringleaf.collectives.synthesis.problem import Problem
from ringleaf.collectives.verify import verify
from ringleaf.collectives.wires import RankNetwork, Wire


def racks(order: list[int], of: int = 4) -> RankNetwork:
    """Return hosts behind leaves with one uplink as fast as a host's: rank r is host order[r]."""
    ranks, count = len(order), len(order) // of
    wires = [Wire(100 * GBPS, 10**6)] * (2 * ranks + 2 * count)
    ways = {}
    for a in range(ranks):
        for b in range(ranks):
            src, dst = order[a] // of, order[b] // of
            cross = () if src == dst else (2 * ranks + src, 2 * ranks + count + dst)
            if a != b:
                ways[a, b] = (a, *cross, ranks + b)
    return RankNetwork(ranks, tuple(wires), ways, tuple(host // of for host in order))


def test_four_racks_are_found_and_used_where_ranks_are_anywhere() -> None:
    order = list(range(16))
    random.Random(3).shuffle(order)
    wires = racks(order)
    want = [{rank for rank in range(16) if order[rank] // 4 == rack} for rack in range(4)]
    [found] = groupings(latencies(probe_of(wires), 16), 16)
    assert sorted(map(sorted, found)) == sorted(map(sorted, want))
    plan = solve(Problem(wires, Collective.ALLREDUCE, 1 << 24))
    assert dict(plan.notes)["choice"].startswith("4 groups")
    verify(plan.schedule)
    crossing = [row for row in plan.schedule.rows if row.step in range(1, 7)]
    inside = [row for row in plan.schedule.rows if row.step in (0, 7)]
    site = wires.sites
    assert crossing
    assert all(site[row.src] != site[row.dst] for row in crossing)  # type: ignore[union-attr]
    assert all(site[row.src] == site[row.dst] for row in inside)  # type: ignore[union-attr]


def test_large_data_of_ranks_in_order_takes_a_ring_which_crosses_once() -> None:
    plan = solve(Problem(racks(list(range(16))), Collective.ALLREDUCE, 1 << 28))
    assert dict(plan.notes)["choice"] == "ring"


@given(st.lists(st.integers(0, 3), min_size=2, max_size=9))
@settings(max_examples=40, deadline=None)
def test_two_levels_are_right_for_any_groups(names: list[int]) -> None:
    groups = [[rank for rank, name in enumerate(names) if name == one] for one in sorted({*names})]
    verify(two_levels(len(names), groups))


@given(connected())
@settings(max_examples=30, deadline=None)
def test_a_schedule_is_right_on_any_connected_network(wires: RankNetwork) -> None:
    verify(solve(Problem(wires, Collective.ALLREDUCE, 9999)).schedule)
