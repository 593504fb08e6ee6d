"""What PyTorch did at first is done without it, with the same outcome."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.compress.selection import places_of_largest
from ringleaf.experiments.checking.data import shuffled
from ringleaf.mersenne import Mersenne
from ringleaf.tensors import Array

seeds = st.integers(0, 2**31) | st.integers(2**32 - 2, 2**63 - 1)


@given(seeds, st.integers(0, 3000))
def test_an_order_is_that_of_randperm(seed: int, count: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    assert shuffled(count, seed).tolist() == torch.randperm(count, generator=generator).tolist()


@given(seeds, st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 30), st.integers(0, 700))))
def test_numbers_are_those_of_randint_call_by_call(
    seed: int, calls: list[tuple[int, int, int]]
) -> None:
    generator, ours = torch.Generator().manual_seed(seed), Mersenne(seed)
    for low, width, count in calls:
        theirs = torch.randint(low, low + width, (count,), generator=generator)
        assert ours.integers(low, low + width, count).tolist() == theirs.tolist()


def chosen(values: Array, count: int) -> list[int]:
    return sorted(torch.from_numpy(values).topk(count, sorted=False).indices.tolist())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@given(data=st.data(), seed=st.integers(0, 1000), elements=st.integers(1, 2000))
def test_of_equal_values_those_of_topk_are_taken(
    dtype: type, data: st.DataObject, seed: int, elements: int
) -> None:
    chance = np.random.default_rng(seed)
    kinds = data.draw(st.sampled_from([1, 2, 30, 2000]))
    values: Array = chance.integers(0, kinds, elements).astype(dtype)
    values[chance.random(elements) < data.draw(st.sampled_from([0, 0.1]))] = np.nan
    few = st.integers(0, elements // 64)  # which are found with a heap
    count = data.draw(few | st.integers(0, elements))

    assert sorted(places_of_largest(values, count).tolist()) == chosen(values, count)


def test_an_order_that_spoils_pivots_is_no_exception() -> None:
    """After 2 log2(n) cuts a heap does the rest: Musser's worst case of medians of three."""
    half = 2000
    odd = [float(i if i % 2 else half + i - 1) for i in range(1, half + 1)]
    values = -np.array(odd + [float(2 * i) for i in range(1, half + 1)], np.float32) // 3
    for count in (half // 2, half, 3 * half // 2):
        assert sorted(places_of_largest(values, count).tolist()) == chosen(values, count)
