"""The oracle: what collectives promise, the order of additions, and refusals."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.oracle import exact_sum, execute, execute_chunks
from ringleaf.collectives.schedule import (
    Aggregate,
    Collective,
    Op,
    Schedule,
    Transfer,
    chunk_ranges,
    owner,
)
from ringleaf.errors import ScheduleError

elements_of = st.sampled_from([0, 1, 2, 7, 39, 40, 41, 100, 1001])


def random_integers(ranks: int, elements: int, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(-(1 << 20), 1 << 20, (elements,), generator=generator, dtype=torch.int32)
        for _ in range(ranks)
    ]


def random_floats(ranks: int, elements: int, seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(elements, generator=generator) for _ in range(ranks)]


def promised(
    schedule: Schedule, inputs: Sequence[torch.Tensor], rank: int, chunk: int, ends: slice
) -> torch.Tensor | None:
    """What the collective's definition says; None where it says nothing."""
    total, root = exact_sum(inputs)[ends], schedule.root
    own = owner(schedule, chunk)
    match schedule.collective:
        case Collective.ALLREDUCE:
            return total
        case Collective.REDUCE:
            return total if rank == root else None
        case Collective.REDUCE_SCATTER:
            return total if rank == own else None
        case Collective.BROADCAST:
            return inputs[root][ends]
        case Collective.ALL_GATHER:
            return inputs[own][ends]
        case Collective.ALL_TO_ALL:
            return inputs[rank - own][ends]


@given(schedules(), elements_of, st.integers(0, 1000))
def test_integers_come_out_exactly_as_promised(
    schedule: Schedule, elements: int, seed: int
) -> None:
    inputs = random_integers(schedule.ranks, elements, seed)
    results = execute(schedule, inputs)
    for rank, result in enumerate(results):
        assert result.dtype == torch.int32
        for chunk, (start, stop) in enumerate(chunk_ranges(elements, schedule.chunks)):
            expected = promised(schedule, inputs, rank, chunk, slice(start, stop))
            if expected is not None:
                assert torch.equal(result[start:stop].to(expected.dtype), expected)


@given(schedules(), elements_of, st.integers(0, 1000))
def test_floats_are_near_the_exact_sum_and_the_same_everywhere(
    schedule: Schedule, elements: int, seed: int
) -> None:
    if schedule.collective is not Collective.ALLREDUCE:
        return
    inputs = random_floats(schedule.ranks, elements, seed)
    results = execute(schedule, inputs)
    # n - 1 additions, each off by half a unit in the last place of what is no more than this
    largest = exact_sum([tensor.abs() for tensor in inputs])
    bound = (schedule.ranks - 1) * 2.0**-24 * largest * (1 + 1e-5)
    assert bool(((results[0].double() - exact_sum(inputs)).abs() <= bound).all())
    assert all(torch.equal(result, results[0]) for result in results)


def run_step_by_step(schedule: Schedule, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The meaning of a schedule, word by word, with whole tensors kept from step to step."""
    now = [tensor.clone() for tensor in tensors]
    now += [torch.zeros_like(tensors[0]) for _ in range(schedule.places - schedule.ranks)]
    ranges = chunk_ranges(tensors[0].numel(), schedule.chunks)
    for step in range(schedule.steps):
        before = [tensor.clone() for tensor in now]
        for row in schedule.rows:
            ends = slice(*ranges[row.chunk])
            if row.step != step:
                continue
            if isinstance(row, Aggregate):
                total = exact_sum([before[rank][ends] for rank in row.ranks])
                for rank in row.ranks:
                    now[rank][ends] = total
            elif row.op is Op.REDUCE:
                now[row.dst][ends] += before[row.src][ends]
            else:
                now[row.dst][ends] = before[row.src][ends]
    return now[: schedule.ranks]


@given(nonsense() | schedules(most=9, most_bytes=8192), st.integers(0, 9), st.integers(0, 1000))
def test_every_bit_is_as_the_steps_say(schedule: Schedule, elements: int, seed: int) -> None:
    inputs = random_floats(schedule.ranks, elements, seed)
    kept = [tensor.clone() for tensor in inputs]
    expected = run_step_by_step(schedule, inputs)

    results = execute(schedule, inputs)
    assert all(map(torch.equal, results, expected))
    assert all(map(torch.equal, inputs, kept))

    overwritten = execute(schedule, inputs, in_place=True)
    assert all(a is b for a, b in zip(overwritten, inputs, strict=True))
    assert all(map(torch.equal, inputs, expected))


def test_additions_go_in_row_order() -> None:
    rows = (Transfer(0, 1, 0, 0, Op.REDUCE), Transfer(0, 2, 0, 0, Op.REDUCE))
    one_way = Schedule(Collective.REDUCE, "by hand", 3, 1, rows)
    other_way = Schedule(Collective.REDUCE, "by hand", 3, 1, rows[::-1])
    inputs = [torch.tensor([1.0]), torch.tensor([-1.0]), torch.tensor([1e-9])]
    assert execute(one_way, inputs)[0].item() == torch.tensor(1e-9).item()
    assert execute(other_way, inputs)[0].item() == 0.0


def test_the_networks_sum_is_rounded_once() -> None:
    inputs = [torch.tensor([value]) for value in (1e8, 1.0, -1e8)]
    results = execute(in_network_allreduce(3), inputs)
    assert [result.tolist() for result in results] == [[1.0], [1.0], [1.0]]
    assert results[0].dtype == torch.float32


def test_results_do_not_share_memory() -> None:
    results = execute(ring_allreduce(3), random_floats(3, 10, 0))
    results[0].zero_()
    assert results[1].count_nonzero() == 10


def test_tensors_of_any_shape_keep_it() -> None:
    inputs = [torch.arange(6).reshape(2, 3).t() for _ in range(2)]  # not contiguous
    results = execute(ring_allreduce(2), inputs)
    assert all(torch.equal(result, 2 * inputs[0]) for result in results)


def test_chunks_are_made_up_as_they_are_needed() -> None:
    asked: list[tuple[int, int, int]] = []

    def read(rank: int, start: int, stop: int) -> torch.Tensor:
        asked.append((rank, start, stop))
        return torch.arange(start, stop) * (rank + 1)

    chunks = execute_chunks(ring_allreduce(2), 5, read)
    first = next(chunks)
    assert asked == [(0, 0, 2), (1, 0, 2)]
    assert (first.chunk, first.start, first.stop) == (0, 0, 2)
    assert [value.tolist() for value in first.values] == [[0, 3], [0, 3]]
    assert [value.tolist() for value in next(chunks).values] == [[6, 9, 12], [6, 9, 12]]
    assert next(chunks, None) is None


def test_sums_are_wide() -> None:
    floats = exact_sum([torch.tensor([1e8]), torch.tensor([1.0])])
    assert (floats.dtype, floats.item()) == (torch.float64, 100_000_001.0)
    integers = exact_sum([torch.tensor([2**31 - 1], dtype=torch.int32)] * 2)
    assert (integers.dtype, integers.item()) == (torch.int64, 2**32 - 2)
    with pytest.raises(ScheduleError, match="exact_sum: needs one tensor at least, got none"):
        exact_sum([])


def test_tensors_that_do_not_fit_are_refused() -> None:
    ring = ring_allreduce(2)
    with pytest.raises(ScheduleError, match="execute: needs 2 tensors, got 1"):
        execute(ring, [torch.zeros(3)])
    with pytest.raises(
        ScheduleError,
        match=r"tensors must be alike, got \(4,\) torch.float32 on rank 1; rank 0 has \(3,\)",
    ):
        execute(ring, [torch.zeros(3), torch.zeros(4)])
    with pytest.raises(ScheduleError, match=r"alike, got .* torch.int32 on rank 1"):
        execute(ring, [torch.zeros(3), torch.zeros(3, dtype=torch.int32)])
    with pytest.raises(ScheduleError, match="tensors must be contiguous to be overwritten"):
        execute(ring, [torch.zeros(2, 3).t()] * 2, in_place=True)


def test_rows_that_make_no_sense_are_refused() -> None:
    wrong = Schedule(Collective.ALLREDUCE, "by hand", 2, 1, (Transfer(0, 0, 2, 0, Op.COPY),))
    with pytest.raises(ScheduleError, match="by hand allreduce: row 0: ranks must be below 2"):
        execute(wrong, [torch.zeros(3)] * 2)
