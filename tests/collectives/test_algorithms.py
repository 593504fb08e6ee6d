"""What sets each algorithm apart: who talks to whom, in how many steps, with how many bytes."""

from collections import Counter
from collections.abc import Callable
from math import ceil, log2, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import hierarchies

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.binomial import binomial_broadcast, binomial_reduce
from ringleaf.collectives.algorithms.blueconnect import (
    blueconnect_allreduce,
    blueconnect_cost,
    fit_hierarchy,
)
from ringleaf.collectives.algorithms.broadcast import (
    broadcast,
    broadcast_cost,
    reduce,
    reduce_cost,
)
from ringleaf.collectives.algorithms.chain import chain_broadcast, chain_cost, chain_reduce
from ringleaf.collectives.algorithms.common.binary_tree import (
    TreeEdge,
    climb,
    height,
    in_order_edges,
    port_load,
)
from ringleaf.collectives.algorithms.doubletree import (
    double_tree_allreduce,
    double_tree_cost,
    double_tree_segments,
    trees,
)
from ringleaf.collectives.algorithms.halvingdoubling import halving_doubling_allreduce
from ringleaf.collectives.algorithms.ring import (
    ring_all_gather,
    ring_allreduce,
    ring_reduce_scatter,
)
from ringleaf.collectives.algorithms.tree import tree_allreduce, tree_cost, tree_segments
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.critical_path import sent_bytes
from ringleaf.collectives.schedule import Aggregate, Collective, Op, Schedule, Transfer, messages
from ringleaf.errors import ScheduleError

ranks_of = st.integers(1, 64)


def transfers(schedule: Schedule) -> list[Transfer]:
    return [row for row in schedule.rows if isinstance(row, Transfer)]


def busiest_ports(schedule: Schedule) -> int:
    """The most messages that a rank sends, or receives, within a step."""
    moves = [move for move in messages(schedule) if not isinstance(move, Aggregate)]
    loads = Counter([(move.step, "out", move.src) for move in moves])
    loads.update((move.step, "in", move.dst) for move in moves)
    return max(loads.values(), default=0)


@given(ranks_of)
def test_ring_sends_to_the_next_rank_only(ranks: int) -> None:
    for schedule, steps in (
        (ring_allreduce(ranks), 2 * (ranks - 1)),
        (ring_reduce_scatter(ranks), ranks - 1),
        (ring_all_gather(ranks), ranks - 1),
    ):
        assert all(row.dst == (row.src + 1) % ranks for row in transfers(schedule))
        assert schedule.steps == steps
        assert busiest_ports(schedule) <= 1


@given(st.integers(2, 64))
def test_allreduces_at_the_lower_bound_send_no_byte_more(ranks: int) -> None:
    size_bytes = 4 * ranks * 64
    bound = 2 * (ranks - 1) * size_bytes // ranks
    assert sent_bytes(ring_allreduce(ranks), size_bytes) == [bound] * ranks
    if ranks.bit_count() == 1:
        assert sent_bytes(halving_doubling_allreduce(ranks), size_bytes) == [bound] * ranks


@given(st.integers(2, 64), st.integers(1, 4))
def test_trees_send_what_a_node_of_them_must(ranks: int, segments: int) -> None:
    size_bytes = 64
    single = sent_bytes(tree_allreduce(ranks, segments), size_bytes)
    double = sent_bytes(double_tree_allreduce(ranks, segments), size_bytes)
    assert sum(single) == sum(double) == 2 * (ranks - 1) * size_bytes
    assert max(single) <= 3 * size_bytes
    assert max(double) <= 2 * size_bytes


def shape(edges: tuple[TreeEdge, ...]) -> dict[int, list[int]]:
    """Parent -> its children."""
    children: dict[int, list[int]] = {}
    for edge in edges:
        children.setdefault(edge.parent, []).append(edge.child)
    return children


@given(st.integers(2, 300))
def test_binary_trees_are_binary_and_balanced(ranks: int) -> None:
    edges = in_order_edges(ranks)
    depth = {edge.child: edge.depth for edge in edges}
    (root,) = set(range(ranks)) - depth.keys()
    depth[root] = 0
    assert len(edges) == ranks - 1
    assert all(depth[edge.child] == depth[edge.parent] + 1 for edge in edges)
    assert height(edges) <= ceil(log2(ranks))
    assert [edge.depth for edge in edges] == sorted((e.depth for e in edges), reverse=True)
    for parent, children in shape(edges).items():
        assert parent % 2 == 1
        assert len([child for child in children if child < parent]) == 1
        assert len([child for child in children if child > parent]) <= 1


@given(st.integers(2, 300))
def test_no_rank_is_inner_in_both_trees(ranks: int) -> None:
    first, second = trees(ranks)
    assert not shape(first).keys() & shape(second).keys()
    for edges in (first, second):
        ends = {edge.child for edge in edges} | {edge.parent for edge in edges}
        assert ends == set(range(ranks))


def test_tree_of_seven() -> None:
    edges = in_order_edges(7)
    assert shape(edges) == {1: [0, 2], 5: [4, 6], 3: [1, 5]}
    assert (height(edges), climb(edges), port_load([edges])) == (2, 4, 3)
    assert (height(()), climb(()), port_load([()])) == (0, 0, 0)


@given(st.integers(2, 64), st.integers(1, 9))
def test_tree_pipelines_its_segments(ranks: int, segments: int) -> None:
    levels = height(in_order_edges(ranks))
    assert tree_allreduce(ranks, segments).steps == segments - 1 + 2 * levels
    double = double_tree_allreduce(ranks, segments)
    assert double.steps == segments - 1 + 2 * levels
    assert double.chunks == 2 * segments


@given(ranks_of)
def test_halving_doubling_takes_few_messages(ranks: int) -> None:
    schedule = halving_doubling_allreduce(ranks)
    power = schedule.chunks
    folds = 0 if power == ranks else 2
    assert power <= ranks < 2 * power
    assert schedule.steps == 2 * int(log2(power)) + folds
    assert len(list(messages(schedule))) == 2 * int(log2(power)) * power + 2 * (ranks - power)
    assert busiest_ports(schedule) <= 1


def test_halving_doubling_halves() -> None:
    sizes = [
        (move.step, move.stop - move.start)
        for move in messages(halving_doubling_allreduce(8))
        if not isinstance(move, Aggregate) and move.src == 5
    ]
    assert sizes == [(0, 4), (1, 2), (2, 1), (3, 1), (4, 2), (5, 4)]


@given(st.data(), ranks_of)
def test_blueconnect_stays_within_a_level_in_each_step(data: st.DataObject, ranks: int) -> None:
    hierarchy = data.draw(hierarchies(ranks))
    schedule = blueconnect_allreduce(ranks, hierarchy)
    assert schedule.steps == 2 * sum(size - 1 for size in hierarchy)
    assert busiest_ports(schedule) <= 1
    per_level = Counter[int]()
    for row in transfers(schedule):
        from_digits, to_digits = digits(row.src, hierarchy), digits(row.dst, hierarchy)
        (level,) = (i for i, d in enumerate(from_digits) if d != to_digits[i])
        assert to_digits[level] == (from_digits[level] + 1) % hierarchy[level]
        per_level[level] += 1
    for level, size in enumerate(hierarchy):
        # Each rank takes all levels within it have left of the tensor round its ring, twice.
        part = ranks // prod(hierarchy[: level + 1])
        assert per_level[level] == ranks * 2 * (size - 1) * part


def digits(rank: int, hierarchy: tuple[int, ...]) -> list[int]:
    return [rank // prod(hierarchy[:i]) % size for i, size in enumerate(hierarchy)]


def test_blueconnect_without_a_hierarchy_is_a_ring() -> None:
    schedule = blueconnect_allreduce(5)
    assert schedule == blueconnect_allreduce(5, (5,)) == blueconnect_allreduce(5, (1, 5, 1))
    assert len(schedule.rows) == len(ring_allreduce(5).rows)
    assert all(row.dst == (row.src + 1) % 5 for row in transfers(schedule))


@given(st.lists(st.integers(1, 8), max_size=4), ranks_of)
def test_a_fitted_hierarchy_fits(hierarchy: list[int], ranks: int) -> None:
    fitted = fit_hierarchy(hierarchy, ranks)
    assert prod(fitted) == ranks
    assert 1 not in fitted
    assert fit_hierarchy(fitted, ranks) == fitted


def test_a_hierarchy_keeps_what_it_can() -> None:
    assert fit_hierarchy((4, 4), 16) == (4, 4)
    assert fit_hierarchy((4, 4), 8) == (4, 2)
    assert fit_hierarchy((4, 4), 6) == (2, 3)
    assert fit_hierarchy((2, 2), 12) == (2, 2, 3)
    assert fit_hierarchy((4,), 1) == ()


@given(ranks_of, st.integers(1, 5), st.data())
def test_chains_and_binomial_trees_have_their_root(
    ranks: int, segments: int, data: st.DataObject
) -> None:
    root = data.draw(st.integers(0, ranks - 1))
    hops, levels = ranks - 1, (ranks - 1).bit_length()
    for schedule, steps in (
        (chain_broadcast(ranks, segments, root), hops + segments - 1 if hops else 0),
        (chain_reduce(ranks, segments, root), hops + segments - 1 if hops else 0),
        (binomial_broadcast(ranks, root), levels),
        (binomial_reduce(ranks, root), levels),
    ):
        assert (schedule.root, schedule.steps) == (root, steps)
        assert len(schedule.rows) == hops * schedule.chunks
        assert busiest_ports(schedule) <= 1
        ends = "dst" if schedule.collective is Collective.BROADCAST else "src"
        assert all(getattr(row, ends) != root for row in schedule.rows)


@given(ranks_of)
def test_all_to_all_meets_everyone_once(ranks: int) -> None:
    schedule = pairwise_all_to_all(ranks)
    pairs = {(row.src, row.dst) for row in transfers(schedule)}
    assert len(pairs) == len(schedule.rows) == ranks * (ranks - 1)
    assert busiest_ports(schedule) <= 1


def test_in_network_is_one_row() -> None:
    assert tuple(in_network_allreduce(3).rows) == (Aggregate(0, (0, 1, 2), 0),)
    assert in_network_allreduce(3, "atp").algorithm == "atp"


def test_rooted_collectives_take_the_faster_way() -> None:
    fabric = AlphaBeta()
    for pick, kind, cost in (
        (broadcast, binomial_broadcast(8), broadcast_cost),
        (reduce, binomial_reduce(8), reduce_cost),
    ):
        assert pick(8, 64, fabric) == kind
        large = pick(8, 1 << 24, fabric)
        assert (large.algorithm, large.chunks) == ("chain", 1170)  # 8192 rows at most
        assert cost(8, 1 << 24, fabric) == chain_cost(8, 1 << 24, fabric, 1170)
        assert cost(8, 64, fabric).latency_terms == 3
        assert pick(8, 64, fabric, segments=2).chunks == 2
        assert cost(8, 64, fabric, segments=2) == chain_cost(8, 64, fabric, 2)


def test_more_segments_for_larger_tensors_but_no_flood() -> None:
    fabric = AlphaBeta()
    chosen = [tree_segments(16, size_bytes, fabric) for size_bytes in (0, 4096, 8192, 1 << 30)]
    assert chosen == [1, 1, 2, 273]
    assert double_tree_segments(16, 1 << 30, fabric) == 136
    assert double_tree_segments(128, 1 << 30, fabric) == 64
    assert tree_segments(1, 1 << 30, fabric) == 1


def test_overhead_makes_segments_fewer() -> None:
    free, dear = AlphaBeta(), AlphaBeta(overhead_ps=10_000_000)
    for segments in (tree_segments, double_tree_segments):
        assert 1 < segments(16, 1 << 20, dear) < segments(16, 1 << 20, free)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: ring_allreduce(0), "ring_allreduce: ranks must be >= 1, got 0"),
        (lambda: ring_reduce_scatter(-1), "ring_reduce_scatter: ranks must be >= 1, got -1"),
        (lambda: ring_all_gather(0), "ring_all_gather: ranks must be >= 1, got 0"),
        (lambda: tree_allreduce(0), "tree_allreduce: ranks must be >= 1, got 0"),
        (lambda: tree_allreduce(2, 0), "tree_allreduce: segments must be >= 1, got 0"),
        (lambda: tree_cost(0, 1, AlphaBeta()), "tree_cost: ranks must be >= 1, got 0"),
        (lambda: tree_cost(2, 1, AlphaBeta(), 0), "tree_cost: segments must be >= 1, got 0"),
        (lambda: double_tree_allreduce(0), "double_tree_allreduce: ranks must be >= 1, got 0"),
        (lambda: double_tree_allreduce(2, 0), "double_tree_allreduce: segments must be >= 1"),
        (lambda: double_tree_cost(0, 1, AlphaBeta()), "double_tree_cost: ranks must be >= 1"),
        (lambda: double_tree_cost(2, 1, AlphaBeta(), 0), "double_tree_cost: segments must be >= 1"),
        (lambda: halving_doubling_allreduce(0), "halving_doubling_allreduce: ranks must be"),
        (lambda: blueconnect_allreduce(0), "blueconnect_allreduce: ranks must be >= 1, got 0"),
        (
            lambda: blueconnect_allreduce(8, (2, 2)),
            r"blueconnect_allreduce: product of hierarchy must be 8 ranks, got \(2, 2\)",
        ),
        (lambda: blueconnect_allreduce(4, (-2, -2)), "product of hierarchy must be 4 ranks"),
        (
            lambda: blueconnect_cost(4, (2, 2), 1, [AlphaBeta()]),
            "blueconnect_cost: needs a fabric for each of 2 levels, got 1",
        ),
        (lambda: fit_hierarchy((2,), 0), "fit_hierarchy: ranks must be >= 1, got 0"),
        (lambda: pairwise_all_to_all(0), "pairwise_all_to_all: ranks must be >= 1, got 0"),
        (lambda: chain_broadcast(0), "chain_broadcast: ranks must be >= 1, got 0"),
        (lambda: chain_broadcast(2, 0), "chain_broadcast: segments must be >= 1, got 0"),
        (lambda: chain_reduce(2, 1, 2), "chain_reduce: root must be one of 2 ranks, got 2"),
        (lambda: binomial_broadcast(0), "binomial_broadcast: ranks must be >= 1, got 0"),
        (lambda: binomial_broadcast(2, -1), "binomial_broadcast: root must be one of 2 ranks"),
        (lambda: binomial_reduce(2, 2), "binomial_reduce: root must be one of 2 ranks, got 2"),
        (lambda: broadcast(0, 1, AlphaBeta()), "broadcast, reduce: ranks must be >= 1, got 0"),
        (lambda: reduce(0, 1, AlphaBeta()), "broadcast, reduce: ranks must be"),
        (lambda: in_network_allreduce(0), "in_network_allreduce: ranks must be >= 1, got 0"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(build: Callable[[], object], complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        build()


def test_rows_are_reductions_first_and_copies_after() -> None:
    for schedule in (ring_allreduce(6), halving_doubling_allreduce(6), blueconnect_allreduce(6)):
        ops = [row.op for row in transfers(schedule)]
        assert ops == sorted(ops, key=[Op.REDUCE, Op.COPY].index)
