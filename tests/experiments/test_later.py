"""Checks that are put off see results as they were, each once, and don't grow without end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.tensors import Array
from ringleaf.experiments.checking.deferred import Later

ITEM_BYTES = 4


@given(sizes=st.lists(st.integers(1, 50), max_size=20), most=st.integers(0, 400))
def test_each_result_is_checked_once_as_it_was(sizes: list[int], most: int) -> None:
    seen: list[tuple[str, int, int]] = []

    def judge(name: str, tensors: list[Array]) -> None:
        first, second = tensors
        assert np.array_equal(first, -second)
        seen.append((name, first.size, int(first.sum())))

    later = Later(judge, most_bytes=most)
    waiting_bytes = 0
    for number, size in enumerate(sizes):
        tensors = [np.full(size, sign * (number + 1), np.int32) for sign in (1, -1)]
        later.keep(f"{number}", tensors=tensors)
        for tensor in tensors:
            tensor[:] = 99  # the network uses the memory again
        waiting_bytes = 2 * ITEM_BYTES * sum(sizes[len(seen) : number + 1])
        assert waiting_bytes <= most

    later.settle()
    later.settle()
    assert seen == [(f"{i}", size, (i + 1) * size) for i, size in enumerate(sizes)]
