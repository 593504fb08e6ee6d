"""Results are judged by the definition: what must be, by hand or by exact fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.definition import Faults, find_faults
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.collectives.slack import codec_slack, sum_error_bound
from ringleaf.core.tensors import Array
from ringleaf.experiments.checking import judge, scrutiny
from ringleaf.experiments.checking.data import make_tensors
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.verdict import Tolerance

NAN, INF = math.nan, math.inf
LARGEST = float(torch.finfo(torch.float32).max)


def verdict(
    schedule: Schedule, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
) -> tuple[int, str]:
    found = Judge(schedule.collective).judge(schedule, inputs, results)
    return found.wrong, found.reason


def of(*rows: Sequence[float]) -> list[torch.Tensor]:
    return [torch.tensor(row, dtype=torch.float32) for row in rows]


def host_algorithms() -> list[str]:
    return [name for name, algorithm in ALGORITHMS.items() if not algorithm.in_network]


@given(
    name=st.sampled_from(host_algorithms()),
    ranks=st.integers(1, 9),
    elements=st.integers(0, 300),
    dtype=st.sampled_from(("float32", "int32")),
    seed=st.integers(0, 1000),
)
def test_what_every_algorithm_does_is_right(
    name: str, ranks: int, elements: int, dtype: str, seed: int
) -> None:
    schedule = ALGORITHMS[name].build(ranks, size_bytes=4 * elements, hierarchy=(ranks,))
    inputs = make_tensors(seed, ranks, elements, dtype)

    assert verdict(schedule, inputs, execute(schedule, inputs)) == (0, "")


@given(
    name=st.sampled_from(host_algorithms()),
    ranks=st.integers(2, 6),
    elements=st.integers(6, 60),
    data=st.data(),
)
def test_one_spoilt_element_is_found(
    name: str, ranks: int, elements: int, data: st.DataObject
) -> None:
    schedule = ALGORITHMS[name].build(ranks, size_bytes=4 * elements, hierarchy=(ranks,))
    inputs = make_tensors(1, ranks, elements, "float32")
    results = [tensor.clone() for tensor in execute(schedule, inputs)]
    rank, place = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, elements - 1))
    results[rank][place] += 1

    wrong, reason = verdict(schedule, inputs, results)

    assert wrong == 1
    assert f"rank {rank}, element {place}: got " in reason


@pytest.mark.parametrize("name", host_algorithms())
def test_ranks_that_keep_what_they_had_are_wrong_where_it_matters(name: str) -> None:
    """Two ranks, 4 elements, nothing is moved: by hand, so many elements of 8 are wrong."""
    nothing = replace(ALGORITHMS[name].build(2), rows=())
    inputs = of([1, 2, 3, 4], [5, 6, 7, 8])

    by_collective = {
        Collective.ALLREDUCE: 8, Collective.REDUCE: 4, Collective.BROADCAST: 4,
        Collective.REDUCE_SCATTER: 4, Collective.ALL_GATHER: 4, Collective.ALL_TO_ALL: 4,
    }  # fmt: skip
    assert verdict(nothing, inputs, inputs)[0] == by_collective[nothing.collective]


def test_values_are_judged_without_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the schedule and its replay say, a sum is a sum, and a copy is a copy."""
    monkeypatch.setattr(scrutiny, "_by_schedule", lambda *_: iter(()))
    monkeypatch.setattr(scrutiny, "_by_replay", lambda *_: iter(()))
    inputs = of([1, 2, 3, 4], [5, 6, 7, 8])
    right = {
        "ring": of([6, 8, 10, 12], [6, 8, 10, 12]),
        "reduce": of([6, 8, 10, 12], [NAN, NAN, NAN, NAN]),
        "broadcast": of([1, 2, 3, 4], [1, 2, 3, 4]),
        "reducescatter": of([6, 8, NAN, NAN], [NAN, NAN, 10, 12]),
        "allgather": of([1, 2, 7, 8], [1, 2, 7, 8]),
        # What rank 0 has for rank 1 is its second half, and lands in rank 1's second half.
        "alltoall": of([1, 2, 7, 8], [5, 6, 3, 4]),
    }
    for name, results in right.items():
        schedule = ALGORITHMS[name].build(2)
        assert verdict(schedule, inputs, results) == (0, ""), name
        matters = torch.stack(results).isfinite()
        for rank, place in matters.nonzero().tolist():
            spoilt = [tensor.clone() for tensor in results]
            spoilt[rank][place] += 0.5
            assert verdict(schedule, inputs, spoilt)[0] == 1, (name, rank, place)


def test_reasons_name_the_first_element() -> None:
    schedule = ALGORITHMS["ring"].build(2)
    inputs = of([1, 2], [4, 4])
    assert verdict(schedule, inputs, of([5, 6], [5, 6.5])) == (
        1, "rank 1, element 1: got 6.5, the sum is 6, give or take 3.6e-07",
    )  # fmt: skip
    copy = ALGORITHMS["broadcast"].build(2)
    assert verdict(copy, inputs, of([1, 2], [1, 4])) == (
        1, "rank 1, element 1: got 4, must be 2",
    )  # fmt: skip


def test_each_wrong_element_is_counted_once() -> None:
    """A schedule, a sum and a replay that all find fault with it make one wrong element."""
    ring = ring_allreduce(2)
    inputs = of([1, 2], [4, 4])
    lacking = replace(ring, rows=ring.rows[:-1])  # the last copy, to rank 0 or 1
    results = execute(ring, inputs)
    results[0][1] = results[0][1] + 7

    assert verdict(lacking, inputs, results)[0] == 2
    assert verdict(ring, inputs, results)[0] == 1


def test_wrong_elements_of_all_judgements_are_counted() -> None:
    """Rank 0 lacks chunk 0, where zeros are right by chance; and element 3 is spoilt."""
    ring, zeros = ring_allreduce(2), [torch.zeros(4), torch.zeros(4)]
    lacking = tuple(row for row in ring.rows if (row.step, row.chunk) != (1, 0))
    results = of([0, 0, 0, 1], [0, 0, 0, 0])

    assert verdict(replace(ring, rows=lacking), zeros, results) == (
        3, "the schedule is wrong: rank 0 lacks the contribution of rank 1 to chunk 0",
    )  # fmt: skip


def test_a_wrong_schedule_is_seen_where_values_are_right_by_chance() -> None:
    ring = ring_allreduce(2)
    zeros = [torch.zeros(4), torch.zeros(4)]
    assert verdict(replace(ring, rows=()), zeros, zeros) == (
        8, "the schedule is wrong: rank 0 lacks the contribution of rank 1 to chunk 0",
    )  # fmt: skip
    nothing = [torch.zeros(0), torch.zeros(0)]
    assert verdict(replace(ring, rows=()), nothing, nothing) == (0, "")


def test_the_order_of_additions_is_judged_to_the_bit() -> None:
    schedule = ALGORITHMS["ring"].build(3)
    inputs = of([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0**-24, 0.0, 0.0])
    results = [tensor.clone() for tensor in execute(schedule, inputs)]
    results[2][0] = 2 + 2.0**-22  # the next float32

    wrong, reason = verdict(schedule, inputs, results)

    assert wrong == 1
    assert "rank 2, element 0: got 2.00000024, the schedule's order of additions gives 2" in reason


def test_a_changed_bit_is_counted_once_per_rank() -> None:
    schedule = ALGORITHMS["ring"].build(3)
    inputs = [torch.tensor([0.0, 1.0, 2.0, 3.0]) for _ in range(3)]
    results = [tensor * 3 for tensor in inputs]
    assert verdict(schedule, inputs, results) == (0, "")

    results[1][0] = -0.0  # equal to 0, but not bit for bit
    results[2][3] = NAN

    assert verdict(schedule, inputs, results)[0] == 2


def test_integers_wrap_around() -> None:
    schedule = ALGORITHMS["ring"].build(2)
    inputs = [torch.tensor([2**31 - 1, -(2**31), 5]), torch.tensor([1, -1, -5])]
    inputs = [tensor.to(torch.int32) for tensor in inputs]
    right = torch.tensor([-(2**31), 2**31 - 1, 0], dtype=torch.int32)

    assert verdict(schedule, inputs, [right, right]) == (0, "")
    assert verdict(schedule, inputs, [right, right + 1])[0] == 3


@pytest.mark.parametrize(
    ("addends", "result", "is_right"),
    [
        ((1.0, NAN), NAN, True), ((1.0, NAN), 1.0, False),
        ((1.0, INF), INF, True), ((1.0, INF), -INF, False), ((1.0, INF), NAN, False),
        ((1.0, INF), 3.0, False), ((INF, -INF), NAN, True), ((INF, -INF), 0.0, False),
        ((INF, -INF), INF, False), ((1.0, 2.0), NAN, False), ((1.0, 2.0), INF, False),
        ((LARGEST, LARGEST), INF, True), ((LARGEST, LARGEST, -LARGEST), INF, True),
        ((LARGEST, LARGEST, -LARGEST), LARGEST, True), ((LARGEST, LARGEST, NAN), INF, False),
        ((INF, -LARGEST, -LARGEST), NAN, True), ((INF, -1e38, -1e38), NAN, False),
    ],
)  # fmt: skip
def test_numbers_that_are_none_and_overflow(
    monkeypatch: pytest.MonkeyPatch, addends: tuple[float, ...], result: float, is_right: bool
) -> None:
    monkeypatch.setattr(scrutiny, "_by_replay", lambda *_: iter(()))
    inputs = [torch.tensor([1.0, value, 1.0]) for value in addends]
    schedule = ALGORITHMS["ring"].build(len(addends))
    ones = float(len(addends))
    results = [torch.tensor([ones, result, ones])] * len(addends)

    assert verdict(schedule, inputs, results)[0] == (0 if is_right else len(addends))


magnitudes = st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=2.0**100)


@given(st.lists(magnitudes.filter(lambda x: abs(x) < 2.0**100), min_size=1, max_size=40))
def test_sums_in_any_order_keep_to_the_bound(values: list[float]) -> None:
    """Against exact fractions; the order given, reversed, sorted and by halves."""
    exact = sum(map(Fraction, values))
    most = sum(abs(Fraction(value)) for value in values)
    bound = Fraction(sum_error_bound([torch.tensor([value]) for value in values]).item())
    single = [torch.tensor(value) for value in values]

    def halves(part: list[torch.Tensor]) -> torch.Tensor:
        middle = len(part) // 2
        return part[0] if len(part) == 1 else halves(part[:middle]) + halves(part[middle:])

    orders = [single, single[::-1], sorted(single), sorted(single, key=abs)]
    for total in [halves(single), *(sum(order[1:], start=order[0]) for order in orders)]:
        assert abs(Fraction(total.item()) - exact) <= bound
    # And no looser than Higham's, by hand: (n - 1) u / (1 - (n - 1) u) of the magnitudes.
    roundings = (len(values) - 1) * Fraction(1, 2**24)
    assert bound <= most * roundings / (1 - roundings) * (1 + Fraction(1, 2**16))


def test_errors_within_a_system_s_bound_are_right_and_beyond_wrong() -> None:
    inputs = [torch.ones(200_000), torch.ones(200_000)]
    results = [torch.full((200_000,), 2.0) for _ in range(2)]
    results[0][199_999] = 2.5
    results[1][70_000] = 2.6
    results[1][70_001] = NAN
    asked: list[int] = []

    def bound(parts: Array) -> npt.NDArray[np.float64]:
        asked.append(parts.shape[1])
        return np.full(parts.shape[1], 0.5)

    schedule = ALGORITHMS["switchml"].build(2)
    found = Judge(Collective.ALLREDUCE).judge(schedule, inputs, results, Tolerance(bound, 100))

    assert (found.wrong, found.reason) == (
        2, "rank 1, element 70000: got 2.5999999, the sum is 2, give or take 0.5",
    )  # fmt: skip
    assert all(count % 100 == 0 for count in asked)


@pytest.mark.parametrize(
    ("addends", "result", "is_right"),
    [
        ((1.0, NAN), NAN, True), ((1.0, INF), INF, True), ((INF, -INF), NAN, True),
        ((1.0, INF), NAN, False), ((1.0, 2.0), NAN, False), ((1.0, NAN), 1.0, False),
        ((LARGEST, LARGEST), INF, True), ((LARGEST, LARGEST), 1.0, False),
    ],
)  # fmt: skip
def test_sums_of_a_system_that_are_no_numbers_are_judged_as_those_of_hosts(
    addends: tuple[float, ...], result: float, is_right: bool
) -> None:
    inputs = [torch.tensor([1.0, value]) for value in addends]
    results = [torch.tensor([2.0, result])] * 2
    tolerance = Tolerance(lambda parts: np.abs(parts).sum(axis=0) * 2.0**-20)

    judge = Judge(Collective.ALLREDUCE)
    found = judge.judge(ALGORITHMS["switchml"].build(2), inputs, results, tolerance)

    assert found.wrong == (0 if is_right else 2)


def test_a_system_is_held_to_its_schedule_and_its_integers() -> None:
    def exact(parts: Array) -> npt.NDArray[np.float64]:
        raise AssertionError("sums of integers have no error to ask for")

    schedule = ALGORITHMS["switchml"].build(2)
    inputs = [torch.full((4,), 2**30, dtype=torch.int32)] * 2
    right = [torch.full((4,), -(2**31), dtype=torch.int32)] * 2
    at = Judge(Collective.ALLREDUCE)

    assert at.judge(schedule, inputs, right, Tolerance(exact)).wrong == 0
    assert at.judge(schedule, inputs, [right[0], right[1] + 1], Tolerance(exact)).wrong == 4
    idle = replace(schedule, rows=())
    assert at.judge(idle, inputs, right, Tolerance(exact)).wrong == 8


def test_a_judge_looks_at_a_schedule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def find(*arguments: Any) -> Faults:
        calls.append(arguments)
        return find_faults(*arguments)

    monkeypatch.setattr(judge, "find_faults", find)
    ring, at = ring_allreduce(2), Judge(Collective.ALLREDUCE)
    inputs = of([1, 2], [4, 4])
    for _ in range(3):
        assert at.judge(ring, inputs, execute(ring, inputs)).wrong == 0
    assert len(calls) == 1


def test_a_schedule_is_not_taken_for_one_that_is_gone() -> None:
    """Python gives a new object the place, and so the id, of one that it has just freed."""
    at, inputs = Judge(Collective.ALLREDUCE), of([0, 0], [0, 0])
    for _ in range(20):
        assert at.judge(replace(ring_allreduce(2), rows=()), inputs, inputs).wrong == 4
        assert at.judge(replace(ring_allreduce(2), root=0), inputs, inputs).wrong == 0


@dataclass(frozen=True)
class Thousandths:
    """A codec that keeps three digits, and says so; `drift` is what it adds besides."""

    name: str = "thousandths"
    is_lossless: bool = False
    drift: float = 0.0

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        return (values.double() * 1000).round().to(torch.int64).view(torch.uint8)

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        assert data.numel() == 8 * elements
        return (data.view(torch.int64).double() / 1000 + self.drift).to(dtype)

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        return 2 * elements * item_bytes

    def error_bound(self, values: torch.Tensor) -> torch.Tensor:
        return 0.0005 + values.double().abs() * 2.0**-23


@dataclass(frozen=True)
class Silent:
    """Keeps nothing of what is behind the point, and does not say so."""

    name: str = "silent"
    is_lossless: bool = False

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        return values.round().view(torch.uint8)

    def decode(self, data: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
        return data.clone().view(dtype)

    def most_bytes(self, elements: int, item_bytes: int) -> int:
        return elements * item_bytes


@dataclass(frozen=True)
class Boundless(Silent):
    """Says that it may lose anything, by a number or by none."""

    bound: float = 1e30

    def error_bound(self, values: torch.Tensor) -> torch.Tensor:
        return torch.full(values.shape, self.bound, dtype=torch.float64)


@pytest.mark.parametrize("bound", [1e30, NAN, INF, -1.0])
def test_a_bound_beyond_the_values_does_not_make_them_right(bound: float) -> None:
    inputs = make_tensors(3, 5, 200, "float32")
    coded = replace(ALGORITHMS["ring"].build(5), codec=Boundless(bound=bound))

    assert verdict(coded, inputs, execute(coded, inputs))[0] > 0


@pytest.mark.parametrize("name", ["ring", "allgather", "reduce", "halvingdoubling"])
def test_a_codec_may_lose_what_it_says_and_no_more(name: str) -> None:
    inputs = make_tensors(3, 5, 200, "float32")
    schedule = ALGORITHMS[name].build(5, hierarchy=(5,))
    for codec, is_right in (
        (Thousandths(), True), (Thousandths(drift=0.01), False), (Silent(), False),
    ):  # fmt: skip
        coded = replace(schedule, codec=codec)
        wrong, _ = verdict(coded, inputs, execute(coded, inputs))
        assert (wrong == 0) == is_right, codec


def test_slack_grows_by_each_encoding() -> None:
    """Rank 0's number goes to 1 and, with 1's, to 2: encoded twice, added twice."""
    rows = (
        Transfer(0, 0, 1, 0, Op.REDUCE),
        Transfer(1, 1, 2, 0, Op.REDUCE),
        Transfer(2, 2, 0, 0, Op.COPY),
    )
    schedule = Schedule(Collective.ALLREDUCE, "by hand", 3, 1, rows, codec=Thousandths())
    slack = codec_slack(schedule, of([1.0], [1.0], [1.0])).item()
    encodings = 3 * 0.0005 + (1 + 2 + 3) * 2.0**-23
    roundings = (2 + 3) * 2.0**-24
    assert slack == pytest.approx(encodings + roundings, abs=1e-12)
    reducing = replace(schedule, coded=frozenset((Op.COPY,)))
    slack = codec_slack(reducing, of([1.0], [1.0], [1.0])).item()
    assert slack == pytest.approx(0.0005 + 3 * 2.0**-23 + roundings, abs=1e-12)
