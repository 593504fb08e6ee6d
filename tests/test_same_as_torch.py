"""What PyTorch did at first is done without it, with the same outcome."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.compression import selection
from ringleaf.collectives.compression.selection import places_of_largest
from ringleaf.core.mersenne import Mersenne
from ringleaf.core.tensors import Array
from ringleaf.experiments.checking.data import shuffled

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
    few = st.integers(elements // 80, elements // 40)  # some of which are found with a heap
    count = data.draw(few | st.integers(0, elements))

    assert sorted(places_of_largest(values, count).tolist()) == chosen(values, count)


def spoiling(elements: int, count: int, monkeypatch: pytest.MonkeyPatch) -> Array:
    """Return values whose cuts are all bad: each is decided on when it is compared.

    McIlroy, "A killer adversary for quicksort", Software: Practice and Experience 29(4), 1999.
    """
    values, last = [float(elements)] * elements, [0]
    decided = iter(range(elements))

    def before(_: Array, one: int, other: int) -> bool:
        if values[one] == values[other] == elements:
            values[one if one == last[0] else other] = next(decided)
        last[0] = one if values[one] == elements else other
        return values[one] < values[other]

    with monkeypatch.context() as patched:
        patched.setattr(selection, "_before", before)
        selection._select(np.zeros(elements), np.arange(elements), count)
    return -np.array(values, np.float32)


@pytest.mark.parametrize("count", [300, 550, 590])
def test_after_many_bad_cuts_a_heap_does_the_rest(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = spoiling(600, count, monkeypatch)
    least = np.sort(values)[-count]
    values[abs(values - least) < 9] = least

    assert sorted(places_of_largest(values, count).tolist()) == chosen(values, count)
