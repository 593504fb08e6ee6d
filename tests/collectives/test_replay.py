"""The compiled replay does the reference's additions, bit for bit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from schedule_strategies import nonsense, schedules

from ringleaf.collectives import replay
from ringleaf.collectives.alltoall import pairwise_all_to_all
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.replay import agrees, fits
from ringleaf.collectives.ring import ring_allreduce
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.sparse.sparcml import recursive_doubling


def tensors(schedule: Schedule, elements: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(elements)
    shape = (schedule.ranks, elements)
    if dtype is torch.int32:
        return list(torch.randint(-(2**31), 2**31 - 1, shape, generator=generator, dtype=dtype))
    return list(torch.randn(shape, generator=generator) * 10.0 ** torch.arange(elements).fmod(9))


@given(
    nonsense() | schedules(most=12),
    st.integers(1, 40),
    st.sampled_from([torch.float32, torch.int32]),
    st.sampled_from([1, 64, 1 << 20]),
)
def test_it_is_the_reference(
    schedule: Schedule, elements: int, dtype: torch.dtype, block_bytes: int
) -> None:
    inputs = tensors(schedule, elements, dtype)
    results = execute(schedule, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "_BLOCK_BYTES", block_bytes)
        assert agrees(schedule, inputs, results) == fits(schedule, dtype)


@given(schedules(least=2, most=6), st.integers(1, 40), st.data())
def test_one_other_bit_is_seen(schedule: Schedule, elements: int, data: st.DataObject) -> None:
    inputs = tensors(schedule, elements, torch.float32)
    results = execute(schedule, inputs)
    rank = data.draw(st.integers(0, schedule.ranks - 1))
    element = data.draw(st.integers(0, elements - 1))
    results[rank] = results[rank].clone()
    results[rank].view(torch.int32)[element] ^= 1

    assert not agrees(schedule, inputs, results)


def test_a_swap_reads_before_it_writes() -> None:
    """Of three ranks, each sends chunk d to the one d further on: rank r ends with r - d's."""
    schedule = pairwise_all_to_all(3)
    inputs = [torch.arange(3, dtype=torch.float32) + 10 * rank for rank in range(3)]
    results = [torch.tensor([10.0 * ((rank - d) % 3) + d for d in range(3)]) for rank in range(3)]

    assert agrees(schedule, inputs, results)


def test_what_it_can_not_run_is_unknown() -> None:
    ring = ring_allreduce(2)
    doubles = [torch.ones(4, dtype=torch.float64)] * 2
    assert not agrees(ring, doubles, execute(ring, doubles))
    assert fits(recursive_doubling(2), torch.float32)  # its codec loses nothing
