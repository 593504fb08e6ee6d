"""The compiled replay does the reference's additions, bit for bit."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from layered_schedules import layered
from schedule_strategies import nonsense, schedules

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.alltoall import pairwise_all_to_all
from ringleaf.collectives.algorithms.ring import ring_allreduce
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.replay import ScheduleRows, fits
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.collectives.sparse.sparcml import recursive_doubling
from ringleaf.core.tensors import FLOAT32, element_type


def tensors(schedule: Schedule, elements: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(elements)
    shape = (schedule.ranks, elements)
    if dtype is torch.int32:
        return list(torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, dtype=dtype))
    return list(torch.randn(shape, generator=generator) * 10.0 ** torch.arange(elements).fmod(9))


def replay(schedule: Schedule, inputs: list[torch.Tensor], width: int) -> list[torch.Tensor]:
    """Replay a schedule, `width` elements at a time, and return the ranks' results."""
    elements = inputs[0].numel()
    replay, results = ScheduleRows(schedule, elements), [torch.empty_like(each) for each in inputs]
    for start in range(0, elements, width):
        count = min(width, elements - start)
        given = [tensor[start : start + count] for tensor in inputs]
        given += [torch.zeros_like(given[0])] * (schedule.places - schedule.ranks)
        values = torch.stack(given).numpy()
        replay.run(start, values, np.empty(replay.staged * count, values.dtype))
        for result, row in zip(results, values, strict=False):
            result[start : start + count] = torch.from_numpy(row)
    return results


@given(
    nonsense() | layered() | schedules(most=12),
    st.integers(1, 40),
    st.sampled_from([torch.float32, torch.int32]),
    st.sampled_from([1, 3, 16, 40]),
)
def test_it_is_the_reference(
    schedule: Schedule, elements: int, dtype: torch.dtype, width: int
) -> None:
    """Pieces begin and end inside chunks, and hold several; some chunks are empty."""
    if not fits(schedule, element_type(dtype)):
        return
    inputs = tensors(schedule, elements, dtype)

    right = torch.stack(execute(schedule, inputs))

    found = torch.stack(replay(schedule, inputs, width))
    assert torch.equal(found.view(torch.int32), right.view(torch.int32))


def test_a_swap_reads_before_it_writes() -> None:
    """Of three ranks, each sends chunk d to the one d further on: rank r ends with r - d's."""
    schedule = pairwise_all_to_all(3)
    inputs = [torch.arange(3, dtype=torch.float32) + 10 * rank for rank in range(3)]
    results = [torch.tensor([10.0 * ((rank - d) % 3) + d for d in range(3)]) for rank in range(3)]

    assert torch.equal(torch.stack(replay(schedule, inputs, 2)), torch.stack(results))


def test_rows_that_only_write_to_one_node_need_no_room() -> None:
    """Ranks 1 and 2 add to rank 0 in one step, in row order; then each reads what 0 has."""
    add, copy = (Transfer(0, src, 0, 0, Op.REDUCE) for src in (1, 2)), Transfer(1, 0, 1, 0, Op.COPY)
    schedule = Schedule(Collective.REDUCE, "by hand", 3, 1, (*add, copy))
    inputs = [torch.tensor([2.0**24]), torch.tensor([1.0]), torch.tensor([1.0])]

    assert ScheduleRows(schedule, 1).staged == 1
    assert [each.item() for each in replay(schedule, inputs, 1)] == [2.0**24, 2.0**24, 1.0]


def test_schedules_that_can_not_be_replayed() -> None:
    assert not fits(ring_allreduce(2), np.dtype(np.float64))
    assert not fits(in_network_allreduce(2), FLOAT32)
    assert fits(recursive_doubling(2), FLOAT32)  # its codec loses nothing
