"""Closed forms: against published figures, against bounds, and against the critical path."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.algorithms.blueconnect import blueconnect_cost
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_cost
from ringleaf.collectives.cost import (
    AlphaBeta,
    Cost,
    best_segments,
    in_network_bound_ps,
    most_segments,
    point_to_point_bound_ps,
    steps_cost,
)
from ringleaf.collectives.critical_path import critical_path, sent_bytes
from ringleaf.collectives.registry import ALGORITHMS, find_algorithm
from ringleaf.collectives.schedule import Collective
from ringleaf.errors import ConfigError, ScheduleError

MIB = 1 << 20
FABRIC = AlphaBeta(rate_bps=100_000_000_000, alpha_ps=1_000_000)


@pytest.mark.parametrize(
    ("ranks", "size_bytes", "time_us"),
    [
        (8, MIB, 160.80),
        (8, 100 * MIB, 14_694.1),
        (16, 100 * MIB, 15_758.6),
        (128, 100 * MIB, 16_900.1),
        (1024, 100 * MIB, 18_806.8),
        (8, 1024 * MIB, 150_337.9),
        (128, 16 * MIB, 2_917.4),
    ],
)
def test_ring_is_the_reference_of_other_simulators(
    ranks: int, size_bytes: int, time_us: float
) -> None:
    cost = find_algorithm("ring").cost(ranks, size_bytes=size_bytes, fabric=FABRIC)
    assert cost.time_ps / 1e6 == pytest.approx(time_us, abs=0.05)
    assert cost.sent_bytes == round(2 * (ranks - 1) / ranks * size_bytes)
    assert cost.latency_terms == 2 * (ranks - 1)


def test_halving_doubling_as_measured_with_loggopsim() -> None:
    cost = find_algorithm("halvingdoubling").cost(128, size_bytes=100 * MIB, fabric=FABRIC)
    assert cost.time_ps / 1e6 == pytest.approx(16_660.1, abs=0.05)
    assert cost.latency_terms == 14


def test_aggregation_is_bounded_by_the_line() -> None:
    for size_bytes, time_us in ((MIB, 83.9), (100 * MIB, 8_388.6), (1024 * MIB, 85_899.3)):
        bound_ps = in_network_bound_ps(8, size_bytes, AlphaBeta(alpha_ps=0))
        assert bound_ps / 1e6 == pytest.approx(time_us, abs=0.05)


def test_aggregation_pays_for_headers_and_one_round_trip() -> None:
    fabric = AlphaBeta(
        rate_bps=8_000_000_000_000,  # a byte per ps
        alpha_ps=7_000,
        aggregate_wire_bytes=lambda payload: payload + payload // 4,
    )
    assert in_network_bound_ps(4, 1000, fabric) == 1250 + 7_000
    assert find_algorithm("switchml").cost(4, size_bytes=1000, fabric=fabric) == Cost(
        8_250, 1000, 1
    )
    near = AlphaBeta(rate_bps=8_000_000_000_000, aggregate_ps=50)
    assert in_network_bound_ps(4, 1000, near) == 1050
    assert in_network_bound_ps(1, 1000, near) == 0


def test_blueconnect_on_unequal_levels() -> None:
    # sum over levels of 2 (p - 1) alpha + 2 (p - 1) / p * (part of S) / B
    inner = AlphaBeta(rate_bps=8_000_000_000_000, alpha_ps=10)
    outer = AlphaBeta(rate_bps=800_000_000_000, alpha_ps=100)
    cost = blueconnect_cost(8, (4, 2), 8000, [inner, outer])
    assert cost.time_ps == (6 * 10 + 6 * 2000) + (2 * 100 + 2 * 1000 * 10)
    assert cost.sent_bytes == 14_000
    assert cost.latency_terms == 8


@given(st.integers(0, 6), st.integers(0, 6))
def test_blueconnect_sends_as_much_as_a_ring_with_fewer_latencies(inner: int, outer: int) -> None:
    hierarchy = (1 << inner, 1 << outer)
    ranks, size_bytes = 1 << (inner + outer), 1 << 20
    ring = find_algorithm("ring").cost(ranks, size_bytes=size_bytes)
    cost = blueconnect_cost(ranks, hierarchy, size_bytes, FABRIC)
    assert cost.sent_bytes == ring.sent_bytes
    assert cost.latency_terms <= ring.latency_terms


EXACT = (
    *("ring", "halvingdoubling", "blueconnect", "ps", "switchml", "atp"),
    *("reducescatter", "allgather", "recursivedoubling", "allpairs"),
)


@pytest.mark.parametrize("name", [*EXACT, "alltoall", "broadcast", "reduce"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 16, 64])
@pytest.mark.parametrize("size_bytes", [4096, MIB])
def test_closed_forms_are_exact_for_powers_of_two(name: str, ranks: int, size_bytes: int) -> None:
    fabric = AlphaBeta(overhead_ps=20_000, wire_bytes=lambda payload: payload * 17 // 16)
    algorithm, hierarchy = ALGORITHMS[name], (2, ranks // 2) if ranks > 1 else ()
    schedule = algorithm.build(ranks, size_bytes=size_bytes, hierarchy=hierarchy, fabric=fabric)
    cost = algorithm.cost(ranks, size_bytes=size_bytes, hierarchy=hierarchy, fabric=fabric)
    exact_ps = critical_path(schedule, size_bytes, fabric).time_ps
    if schedule.algorithm == "chain":  # whose segments differ by an element
        assert cost.time_ps == pytest.approx(exact_ps, rel=1e-4)
    else:
        assert cost.time_ps == exact_ps
    assert max(sent_bytes(schedule, size_bytes)) == cost.sent_bytes


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("ranks", [3, 5, 6, 12, 31])
def test_closed_forms_are_near_for_other_numbers(name: str, ranks: int) -> None:
    size_bytes = 4096 * ranks
    schedule = ALGORITHMS[name].build(ranks, size_bytes=size_bytes)
    cost = ALGORITHMS[name].cost(ranks, size_bytes=size_bytes)
    exact_ps = critical_path(schedule, size_bytes, AlphaBeta()).time_ps
    if name == "recursivedoubling":  # ranks that need not pair up first send ahead by an alpha
        ahead_ps = (ranks.bit_length() - 1) * 1_000_000
        assert cost.time_ps - 1.04 * ahead_ps <= exact_ps <= cost.time_ps
    else:
        assert cost.time_ps == pytest.approx(exact_ps, rel=0.04)
    assert max(sent_bytes(schedule, size_bytes)) == cost.sent_bytes


@pytest.mark.parametrize(
    "name",
    [
        *("allgather-bruck", "alltoall-bruck", "allgather-pat", "reducescatter-pat", "swing"),
        *("bucket", "biring", "broadcast-scatter", "reduce-gather", "binomial", "chain"),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 12, 16, 31])
def test_forms_that_count_step_by_step_are_near(name: str, ranks: int) -> None:
    """Chunks need not wait for the others of a step, and ways may meet: by so much they are off."""
    size_bytes = 4096 * 2 * ranks
    schedule = ALGORITHMS[name].build(ranks, size_bytes=size_bytes)
    cost = ALGORITHMS[name].cost(ranks, size_bytes=size_bytes)
    exact_ps = critical_path(schedule, size_bytes, AlphaBeta()).time_ps
    assert 0.9 * exact_ps <= cost.time_ps <= 1.6 * exact_ps
    assert max(sent_bytes(schedule, size_bytes)) == cost.sent_bytes


@pytest.mark.parametrize("name", ["tree", "doubletree"])
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13, 16, 31])
@pytest.mark.parametrize("segments", [1, 2, 8, 32])
def test_tree_forms_are_a_few_segments_off_at_most(name: str, ranks: int, segments: int) -> None:
    fabric = AlphaBeta(alpha_ps=1000)
    size_bytes = 65536 * segments
    schedule = ALGORITHMS[name].build(ranks, size_bytes=size_bytes, segments=segments)
    cost = ALGORITHMS[name].cost(ranks, size_bytes=size_bytes, segments=segments, fabric=fabric)
    exact_ps = critical_path(schedule, size_bytes, fabric).time_ps
    segment_ps = fabric.port_ps(size_bytes / schedule.chunks)
    assert abs(cost.time_ps - exact_ps) <= 5 * segment_ps
    assert max(sent_bytes(schedule, size_bytes)) == cost.sent_bytes


@pytest.mark.parametrize(("name", "factor"), [("tree", 3), ("doubletree", 2)])
def test_trees_tend_to_their_bandwidth_term(name: str, factor: int) -> None:
    size_bytes = 1 << 30
    cost = find_algorithm(name).cost(16, size_bytes=size_bytes, segments=1 << 12)
    assert cost.time_ps == pytest.approx(factor * size_bytes * 80, rel=0.01)
    assert cost.latency_terms == 2 * int(log2(16))


def test_two_more_messages_fold_in_the_extra_ranks() -> None:
    # 2 alpha + 2 S / B more than for the power of two below; but nobody sends S twice more
    power = halving_doubling_cost(4, 4096, FABRIC)
    extra = halving_doubling_cost(5, 4096, FABRIC)
    assert extra.time_ps - power.time_ps == 2 * (1_000_000 + FABRIC.port_ps(4096))
    assert extra.latency_terms - power.latency_terms == 2
    assert extra.sent_bytes - power.sent_bytes == 4096


@given(
    st.sampled_from([a for a in ALGORITHMS.values() if not a.in_network]),
    st.integers(1, 24),
    st.integers(0, 5000),
)
def test_nothing_beats_the_bound(algorithm: Algorithm, ranks: int, elements: int) -> None:
    size_bytes = 4 * elements * ranks
    schedule = algorithm.build(ranks, size_bytes=size_bytes)
    bound_ps = point_to_point_bound_ps(schedule.collective, ranks, size_bytes, FABRIC)
    assert critical_path(schedule, size_bytes, FABRIC).time_ps >= bound_ps


@pytest.mark.parametrize(
    ("collective", "eighths"),
    [
        (Collective.ALLREDUCE, 14),
        (Collective.REDUCE, 8),
        (Collective.BROADCAST, 8),
        (Collective.REDUCE_SCATTER, 7),
        (Collective.ALL_GATHER, 7),
        (Collective.ALL_TO_ALL, 7),
    ],
)
def test_bounds_have_the_factors_of_nccl_tests(collective: Collective, eighths: int) -> None:
    fabric = AlphaBeta(rate_bps=8_000_000_000_000)
    assert point_to_point_bound_ps(collective, 8, 8000, fabric) == eighths * 1000
    assert point_to_point_bound_ps(collective, 1, 8000, fabric) == 0


def test_latency_by_number_function_or_matrix() -> None:
    matrix = [[0, 5, 6], [7, 0, 8], [9, 4, 0]]
    by_number, by_matrix = AlphaBeta(alpha_ps=3), AlphaBeta(alpha_ps=matrix)
    by_function = AlphaBeta(alpha_ps=lambda src, dst: matrix[src][dst])
    assert [fabric.latency_ps(1, 2) for fabric in (by_number, by_matrix, by_function)] == [3, 8, 8]
    assert [by_matrix.worst_latency_ps(ranks) for ranks in (1, 2, 3)] == [0, 7, 9]
    assert [by_number.worst_latency_ps(ranks) for ranks in (1, 2)] == [0, 3]


def test_steps_add_up() -> None:
    fabric = AlphaBeta(rate_bps=8_000_000_000_000, alpha_ps=100, overhead_ps=10)
    cost = steps_cost([2, 1], [1000, 500], 2, fabric)
    assert cost == Cost(2 * (100 + 10 + 1000) + (100 + 10 + 500), 2500, 3)


def test_best_segments_minimise_the_model() -> None:
    assert best_segments(lambda segments: 100 // segments + 5 * segments, 64) == 4
    assert best_segments(lambda segments: 100 - segments, 50) == 50
    assert best_segments(lambda _: 7, 64) == 1


def test_most_segments_fill_packets_and_limit_rows() -> None:
    assert most_segments(0, 16, 30) == 1
    assert most_segments(10 * 4096, 16, 30) == 10
    assert most_segments(1 << 30, 16, 30) == 8192 // 30
    assert most_segments(1 << 30, 1 << 16, 1 << 17) == 64
    assert most_segments(1 << 30, 128, 254) == 128  # as many rows as a ring has
    assert most_segments(1 << 30, 1, 0) == 8192


def test_unknown_algorithms_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"unknown algorithm, got 'rnig'; did you mean 'ring'. valid: a2tp, "
    ):
        find_algorithm("rnig")


def test_requests_that_make_no_sense_are_refused() -> None:
    for ask in (find_algorithm("ring").build, find_algorithm("ring").cost):
        with pytest.raises(ScheduleError, match="collective: ranks must be >= 1, got 0"):
            ask(0)
        with pytest.raises(ScheduleError, match="collective: size must be >= 0, got -4"):
            ask(2, size_bytes=-4)


def test_what_is_in_the_network_is_known_to_be() -> None:
    in_network = {name for name, algorithm in ALGORITHMS.items() if algorithm.in_network}
    assert in_network == {
        *("switchml", "atp", "a2tp", "esa", "omnireduce", "omnireduce-switch"),
        *("panama", "netreduce", "sharp", "sharp-quantum2", "tern", "vote"),
    }
    assert all(name == algorithm.name for name, algorithm in ALGORITHMS.items())
