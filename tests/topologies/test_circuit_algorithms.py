"""Algorithms of circuits, with the figures of papers and of sums by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.errors import ScheduleError, TopologyError
from ringleaf.topologies.circuits.topoopt import rings_of
from ringleaf.topologies.switching import segments
from ringleaf.topologies.switching.birkhoff import decompose
from ringleaf.topologies.switching.colouring import colours, highest_degree, wavelengths
from ringleaf.topologies.switching.hedera import estimate, rounds
from ringleaf.topologies.switching.matching import (
    bipartite,
    by_links,
    connected,
    discounted,
    greedy,
    heaviest_first,
    perfect,
    several,
)
from ringleaf.topologies.switching.plan import Pair
from ringleaf.topologies.switching.strides import (
    by_paper,
    by_release,
    by_release_both_ways,
    candidates,
    coins,
    diameter,
    mean_hops,
)

F = Fraction
FEW = settings(max_examples=40, deadline=None)


def pairs(text: str) -> dict[Pair, int]:
    """Return the weights of `01:10 02:8`."""
    return {(int(each[0]), int(each[1])): int(each[3:]) for each in text.split()}


def flows(text: str) -> list[Pair]:
    return [(int(each[0]), int(each[2])) for each in text.split()]


# Hedera's estimator, NSDI 2010.


def test_hederas_estimate_converges_in_three_rounds() -> None:
    seen = rounds(flows("0>1 0>2 0>3 1>0 1>2 2>3 3>2"))

    assert seen[0] == [F(1, 3), F(1, 3), F(1, 3), F(1, 2), F(1, 3), F(2, 3), F(1, 3)]
    assert seen[1] == [F(1, 3), F(1, 3), F(1, 3), F(2, 3), F(1, 3), F(2, 3), F(1, 3)]
    assert seen[2:] == seen[1:2]


def test_a_share_that_equals_the_limit_is_limited_by_the_receiver() -> None:
    """With floats, 1/3 may seem to be less than 1/3."""
    found = estimate(flows("0>1 0>1 0>2 1>2 2>3 3>2 3>2"))

    assert found == [F(3, 8), F(3, 8), F(1, 4), F(1, 4), F(1), F(1, 4), F(1, 4)]


def test_no_flows_have_no_demand() -> None:
    assert estimate([]) == []


@FEW
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20))
def test_no_nic_is_asked_for_more_than_it_has(ends: list[Pair]) -> None:
    found = estimate(ends)
    for end in (0, 1):
        for host in range(6):
            own = [share for flow, share in zip(ends, found, strict=True) if flow[end] == host]
            assert sum(own) <= 1
    for flow, share in zip(ends, found, strict=True):  # max-min: one of its NICs is full
        full = [
            sum(d for f, d in zip(ends, found, strict=True) if f[end] == flow[end]) == 1
            for end in (0, 1)
        ]
        assert share > 0
        assert any(full)


# Matchings.


def test_edmonds_finds_more_than_the_heaviest_first() -> None:
    weights = pairs("01:10 02:8 13:8 23:1 03:1 12:1")

    assert perfect(weights, range(4)) == [(0, 2), (1, 3)]
    assert greedy(weights) == [(0, 1), (2, 3)]


def test_a_perfect_matching_is_taken_though_a_heavier_one_leaves_racks_out() -> None:
    weights = pairs("01:5 12:6 02:4 34:3 45:7 23:5 05:2")

    found = perfect(weights, range(6))

    assert found == [(0, 1), (2, 3), (4, 5)]
    assert sum(weights[pair] for pair in found) == 17


@FEW
@given(st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 9)))
def test_a_bipartite_matching_has_the_most_weight(weights: dict[Pair, int]) -> None:
    found = bipartite(weights)

    best = max(
        sum(weights.get((src, dst), 0) for src, dst in enumerate(receivers))
        for receivers in permutations(range(4))
    )
    assert sum(weights[pair] for pair in found) == best
    assert len({src for src, _ in found}) == len({dst for _, dst in found}) == len(found)


def test_demand_is_discounted_by_the_links_that_it_has() -> None:
    chosen, left = discounted(pairs("01:12 02:5 03:1 12:1 13:5 23:6"), 3, by_links)

    assert chosen == [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 1), (2, 3)]]
    assert left == {
        **{(0, 1): 4, (0, 2): F(5, 2), (0, 3): 1, (1, 2): 1, (1, 3): F(5, 2), (2, 3): 2}
    }


def test_in_the_paper_demand_is_halved() -> None:
    _, left = discounted(pairs("01:12 02:5 03:1 12:1 13:5 23:6"), 3)

    assert [left[0, 1], left[2, 3], left[0, 2]] == [F(3), F(3, 2), F(5, 2)]


def test_ffsims_heuristic_serves_the_largest_demand_first() -> None:
    found = heaviest_first(pairs("01:8 12:8 23:6 30:6 13:3 02:2"), 2)

    assert found == [(0, 1), (1, 2), (2, 3), (3, 0)] * 2


@FEW
@given(st.integers(2, 5), st.integers(2, 4), st.randoms(use_true_random=False))
def test_several_matchings_are_regular_and_can_be_connected(
    half: int, times: int, random: Random
) -> None:
    racks = 2 * half
    times = min(times, half)  # then there is a perfect matching each time (Dirac)
    weights = {pair: random.randrange(10) for pair in combinations(range(racks), 2)}

    chosen = several(weights, racks, times)
    joined = connected(chosen, racks, weights)

    for links in (chosen, joined):
        assert all(sum(rack in pair for pair in links) == times for rack in range(racks))
    reached = {0}
    for _ in range(racks):
        reached |= {end for pair in joined if reached & set(pair) for end in pair}
    assert reached == set(range(racks))


def test_an_exchange_loses_the_least_weight() -> None:
    """Two triangles become a hexagon: the links of least weight are exchanged."""
    weights = pairs("01:9 12:9 02:1 34:9 45:9 35:1")

    found = connected(sorted(weights), 6, weights)

    assert len(found) == 6
    assert {(0, 1), (1, 2), (3, 4), (4, 5)} <= set(found)
    assert not {(0, 2), (3, 5)} & set(found)


def test_what_no_exchange_can_connect_stays() -> None:
    assert connected([(0, 1), (2, 3)], 4, {}) == [(0, 1), (2, 3)]


# Wavelengths.


@FEW
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(1, 4), min_size=1, max_size=15
    )
)
def test_no_rack_has_a_colour_twice_and_no_colour_is_spare(counts: dict[Pair, int]) -> None:
    found = colours(counts)

    assert {pair: len(each) for pair, each in found.items()} == counts
    for end in (0, 1):
        for rack in range(5):
            own = [c for pair, each in found.items() if pair[end] == rack for c in each]
            assert len(own) == len(set(own))
    assert max(max(each) for each in found.values()) < highest_degree(counts)


def test_links_with_more_demand_get_more_wavelengths() -> None:
    links = {(0, 1): 1, (1, 0): 1, (0, 2): 1, (2, 0): 1, (1, 2): 1, (2, 1): 1}

    found = wavelengths(links, {(0, 1): 6, (0, 2): 2, (1, 2): 2}, 8)

    assert (found[0, 1], found[0, 2], found[1, 2]) == (6, 2, 2)
    assert found[1, 0] == found[0, 1]


def test_segments_of_a_ring_are_used_again_where_ways_do_not_overlap() -> None:
    assert segments.segments(5, (3, 1)) == [3, 4, 0]
    assert segments.fits(4, {(0, 2): 1, (2, 0): 1}, 1)
    assert not segments.fits(4, {(0, 2): 1, (1, 3): 1}, 1)


def test_wavelengths_on_segments_go_to_the_largest_demands() -> None:
    found = segments.heaviest_first(pairs("02:8 13:6 20:5"), 4, most=1, degree=2)

    assert found == {(0, 2): 1, (2, 0): 1}  # 1 to 3 would need a segment of each


@FEW
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda p: p[0] != p[1]),
        st.integers(1, 99),
    ),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_no_segment_carries_more_than_it_can(
    weights: dict[Pair, int], most: int, degree: int
) -> None:
    found = segments.heaviest_first(weights, 6, most=most, degree=degree)

    assert segments.fits(6, found, most)
    assert highest_degree(found) <= degree


# Birkhoff and von Neumann.


def test_a_matrix_of_rates_is_a_sequence_of_shifts() -> None:
    half, quarter = F(1, 2), F(1, 4)
    first = [F(0), half, quarter, quarter]

    found = decompose([first[-row:] + first[:-row] for row in range(4)])

    assert found == [
        (half, (1, 2, 3, 0)),
        (quarter, (2, 3, 0, 1)),
        (quarter, (3, 0, 1, 2)),
    ] or found == [(half, (1, 2, 3, 0)), (quarter, (3, 0, 1, 2)), (quarter, (2, 3, 0, 1))]


@FEW
@given(st.lists(st.permutations(range(4)), min_size=1, max_size=6))
def test_permutations_add_up_to_the_matrix(parts: list[list[int]]) -> None:
    matrix = [[F(0)] * 4 for _ in range(4)]
    for each in parts:
        for row, column in enumerate(each):
            matrix[row][column] += F(1, len(parts))

    total = [[F(0)] * 4 for _ in range(4)]
    for weight, permutation in decompose(matrix):
        for row, column in enumerate(permutation):
            total[row][column] += weight
    assert total == matrix


def test_sums_of_rows_and_columns_must_be_equal() -> None:
    with pytest.raises(ScheduleError, match="rows and columns must have one sum, got 0"):
        decompose([[F(0), F(1)], [F(0), F(0)]])


# TopoOpt's strides, NSDI 2023.


@pytest.mark.parametrize(
    ("group", "strides", "most", "mean"),
    [
        (12, by_paper(12, 2), 5, 2.7273),
        (12, by_release(12, 2), 6, 3.2727),
        (12, [1, -1, 5, -5], 3, 1.8182),
        (16, by_paper(16, 2), 6, 3.3333),
        (16, by_paper(16, 4), 3, 2.0),
        (16, by_release(16, 4), 4, 2.1333),
        (17, [1, -1, 4, -4], 3, 2.0),
        (128, by_paper(128, 4), 8, 4.5197),
        (128, [1, -1, 13, -13], 10, 5.622),
        (128, by_release(128, 4), 9, 4.9134),
        (128, by_paper(128, 8), 5, 3.0551),
        (128, [s for p in (1, 5, 13, 39) for s in (p, -p)], 5, 2.9606),
    ],
)
def test_ways_over_strides(group: int, strides: list[int], most: int, mean: float) -> None:
    assert diameter(group, strides) == most
    assert round(float(mean_hops(group, strides)), 4) == mean


def test_strides_of_the_paper_and_of_its_release() -> None:
    assert by_paper(12, 2) == [1, 5]
    assert by_paper(16, 2) == [1, 3]
    assert by_paper(16, 4) == [1, 3, 5, 9]
    assert by_paper(128, 4) == [1, 3, 11, 37]
    assert by_paper(128, 8) == [1, 3, 5, 9, 17, 31, 57, 105]
    assert by_release(12, 2) == [1, 11]
    assert by_release(16, 4) == [1, 3, 7, 15]
    assert by_release(128, 4) == [1, 7, 27, 127]
    assert by_release_both_ways(12, 2) == [1, 5]
    assert by_release_both_ways(17, 2) == [1, 4]
    assert by_release_both_ways(128, 2) == [1, 13]
    assert by_release_both_ways(128, 4) == [1, 5, 13, 39]


def test_of_all_two_strides_of_twelve_the_papers_are_the_best() -> None:
    """Worked out by a search of all ways on the numbers modulo 12."""
    found = {
        strides: diameter(12, strides)
        for strides in [(1,), *combinations(candidates(12), 2)]
        if 1 in strides or strides == (5, 7)
    }
    assert found == {(1,): 11, (1, 5): 5, (1, 7): 6, (1, 11): 6, (5, 7): 6}


@FEW
@given(st.integers(3, 60), st.integers(1, 5))
def test_coins_add_up_to_their_offsets(group: int, count: int) -> None:
    strides = by_paper(group, min(count, len(candidates(group))))

    assert strides[0] == 1
    assert len(set(strides)) == len(strides)
    for offset, each in enumerate(coins(group, strides)):
        assert sum(each) % group == offset


def test_there_are_no_more_rings_than_coprime_strides() -> None:
    with pytest.raises(TopologyError, match="strides: a group of 12 has at most 4 rings, got 5"):
        by_paper(12, 5)
    with pytest.raises(TopologyError, match=r"coins: strides \[2\] do not reach all of 4 racks"):
        coins(4, [2])


def test_ports_are_for_rings_by_the_share_of_allreduces() -> None:
    assert rings_of(4, 100, 100) == 4
    assert rings_of(4, 26, 100) == 2  # 1.04, rounded up
    assert rings_of(4, 25, 100) == 1
    assert rings_of(4, 0, 100) == 1
    assert rings_of(4, 0, 0) == 1
