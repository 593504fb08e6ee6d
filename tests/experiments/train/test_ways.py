"""The ways of calls: their rows, applied one by one, bring what each call is defined to bring."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Transfer, check
from ringleaf.core.tensors import Array
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.rules import parse_rules
from ringleaf.experiments.workloads.train.ways import CallCarrier, CallCarriers, among

WAYS = CallCarriers(parse_rules("ring"))


def carry(way: CallCarrier, given_bytes: Sequence[Array], room: int) -> list[Array]:
    """Carry members' bytes by the schedule's rows alone, and return their buffers afterwards."""
    tensors = []
    for pieces, gift in zip(way.layout.loads, given_bytes, strict=True):
        tensor = np.zeros(way.elements * way.dtype.itemsize, np.uint8)
        for at, to, size in pieces:
            tensor[to : to + size] = gift[at : at + size]
        tensors.append(tensor.view(way.dtype))
    run_rows(way, tensors)
    found = []
    for pieces, tensor in zip(way.layout.unloads, tensors, strict=True):
        buffer = np.full(room, 99, np.uint8)
        for to, at, size in pieces:
            buffer[to : to + size] = tensor.view(np.uint8)[at : at + size]
        found.append(buffer)
    return found


def run_rows(way: CallCarrier, tensors: list[Array]) -> None:
    """Apply a schedule's rows, step by step, to elements cut at its edges."""
    edges = way.edges or [
        way.elements * i // way.schedule.chunks for i in range(way.schedule.chunks + 1)
    ]
    steps: dict[int, list] = {}  # type: ignore[type-arg]
    for row in way.schedule.rows:
        steps.setdefault(row.step, []).append(row)
    for rows in steps.values():
        sent = [tensors[row.src][edges[row.chunk] : edges[row.chunk + 1]].copy() for row in rows]
        for row, values in zip(rows, sent, strict=True):
            part = tensors[row.dst][edges[row.chunk] : edges[row.chunk + 1]]
            part[:] = part + values if row.op == "reduce" else values


def draw(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


@given(st.integers(2, 7), st.integers(0, 9), st.sampled_from([1, 2, 4, 8]), st.integers(0, 6))
@settings(deadline=None, max_examples=40)
def test_copies_arrive(ranks: int, count: int, item: int, root: int) -> None:
    root %= ranks
    block = count * item
    mine = [draw(block, rank) for rank in range(ranks)]
    all_of_them = [draw(block * ranks, rank) for rank in range(ranks)]
    cases = {
        "broadcast": (mine, dict.fromkeys(range(ranks), mine[root])),
        "all_gather": (mine, dict.fromkeys(range(ranks), np.concatenate(mine))),
        "gather": (mine, {root: np.concatenate(mine)}),
        "scatter": (
            all_of_them,
            {r: all_of_them[root][r * block : (r + 1) * block] for r in range(ranks)},
        ),
    }
    for kind, (gifts, expected) in cases.items():
        way = WAYS.way([CollectiveCall(kind, "x", count=count, root=root)] * ranks, item)
        found = carry(way, gifts, block * ranks)
        for rank, wanted in expected.items():
            assert bytes(found[rank][: wanted.size]) == bytes(wanted), kind


@given(st.integers(2, 6), st.sampled_from([1, 2, 4]), st.booleans(), st.data())
@settings(deadline=None, max_examples=40)
def test_exchanges_arrive(ranks: int, item: int, even: bool, data: st.DataObject) -> None:
    sizes = st.just(3) if even else st.integers(0, 5)
    counts = [[data.draw(sizes) for _ in range(ranks)] for _ in range(ranks)]
    calls = [
        CollectiveCall(
            "all_to_all", "x", sends=tuple(row), takes=tuple(each[rank] for each in counts)
        )
        for rank, row in enumerate(counts)
    ]
    gifts = [draw(sum(row) * item, rank) for rank, row in enumerate(counts)]
    starts = [[0, *accumulate(row)] for row in counts]

    found = carry(WAYS.way(calls, item), gifts, 5 * ranks * item)

    for rank in range(ranks):
        expected = b"".join(
            bytes(gifts[i][starts[i][rank] * item : starts[i][rank + 1] * item])
            for i in range(ranks)
        )
        assert bytes(found[rank][: len(expected)]) == expected


@given(st.integers(2, 7), st.integers(1, 40), st.sampled_from(["ring", "tree", "halvingdoubling"]))
@settings(deadline=None, max_examples=30)
def test_sums_arrive(ranks: int, count: int, algo: str) -> None:
    ways = CallCarriers(parse_rules(f"reducescatter:{algo}, reduce:{algo}, {algo}"))
    root = ranks - 1
    for kind, elements in (
        ("all_reduce", count),
        ("reduce", count),
        ("reduce_scatter", count * ranks),
    ):
        gifts = [np.arange(elements, dtype=np.int32) * (rank + 1) for rank in range(ranks)]
        total = np.asarray(np.sum(gifts, axis=0, dtype=np.int32))
        way = ways.way([CollectiveCall(kind, "int32", "sum", count, root)] * ranks, 4)
        found = carry(way, [each.view(np.uint8) for each in gifts], 4 * elements)
        for rank in range(ranks):
            wanted = total[rank * count : (rank + 1) * count] if kind == "reduce_scatter" else total
            if kind != "reduce" or rank == root:
                assert found[rank][: wanted.nbytes].view(np.int32).tolist() == wanted.tolist(), kind


@pytest.mark.parametrize(
    ("dtype", "op", "algo"),
    [("float32", "sum", "switchml"), ("float32", "max", "ring"), ("bfloat16", "sum", "ring")],
)
def test_what_switches_can_not_add_goes_by_hosts(dtype: str, op: str, algo: str) -> None:
    ways = CallCarriers(parse_rules("switchml"))

    way = ways.way([CollectiveCall("all_reduce", dtype, op, 8)] * 4, 4)

    assert way.algorithm == algo
    assert way.system == ("switchml" if algo == "switchml" else "")


def test_a_schedule_among_some_nodes_keeps_the_others_out() -> None:
    way = WAYS.way([CollectiveCall("all_reduce", "int32", "sum", 8)] * 2, 4)

    moved = among(way.schedule, (3, 1), 5)

    assert moved.ranks == 5
    ends = {(row.src, row.dst) for row in moved.rows if isinstance(row, Transfer)}
    assert ends == {
        (3, 1),
        (1, 3),
    }


def test_among_some_nodes_scratch_memory_stays_theirs() -> None:
    """Places 2 and 3 of two ranks are their scratch memory; among 5 nodes these are 5 to 9."""
    whole = ALGORITHMS["recursivedoubling"].build(2)

    moved = among(whole, (3, 1), 5)

    check(moved)
    ends = [(row.src, row.dst) for row in moved.rows if isinstance(row, Transfer)]
    assert ends == [(3, 8), (1, 6), (8, 1), (6, 3)]
