"""The hierarchical ring: two levels, whatever the network has."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.algorithms.blueconnect import blueconnect_allreduce
from ringleaf.collectives.algorithms.hierring import (
    hierarchical_ring_allreduce,
    hierarchical_ring_cost,
    two_levels,
)
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.schedule import Op, Transfer
from ringleaf.collectives.verify import verify

SIZES = st.lists(st.integers(1, 4), max_size=3)


@given(SIZES)
def test_any_hierarchy_gives_a_right_allreduce(sizes: list[int]) -> None:
    assert verify(hierarchical_ring_allreduce(prod(sizes), sizes), strict=True).identical


@given(SIZES)
def test_it_is_blueconnect_on_two_levels(sizes: list[int]) -> None:
    ranks = prod(sizes)
    levels = two_levels(ranks, sizes)

    assert prod(levels) == (ranks if sizes else 1)
    expected = blueconnect_allreduce(ranks, levels)
    assert hierarchical_ring_allreduce(ranks, sizes) == replace(expected, algorithm="hierring")


def test_two_machines_of_four_gpus() -> None:
    """By hand: 3 steps inside, 2 across, 3 inside; an eighth of the data on each NIC and step."""
    schedule = hierarchical_ring_allreduce(8, (4, 2))
    rows = [row for row in schedule.rows if isinstance(row, Transfer)]
    across = [row for row in rows if row.src // 4 != row.dst // 4]

    assert schedule.steps == 3 + 2 + 3
    assert {row.step for row in across} == {3, 4}
    assert {(row.src % 4, row.dst % 4) for row in across} == {(gpu, gpu) for gpu in range(4)}
    assert sorted(row.chunk for row in across if row.op is Op.REDUCE) == list(range(8))


def test_the_cost_is_that_of_both_rings() -> None:
    """6 terms of S/4, 2 of S/8 at 1 byte per ps; latency 10 ps each."""
    cost = hierarchical_ring_cost(8, (4, 2), 800, AlphaBeta())
    other = hierarchical_ring_cost(8, (4, 2, 1), 800, AlphaBeta())

    assert cost == other
    assert cost.sent_bytes == 6 * 200 + 2 * 100
