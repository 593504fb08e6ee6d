"""The arena's arrays begin at cache lines, however often they have grown."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store


@pytest.mark.parametrize("count", [1, 3000, 1 << 20])
@pytest.mark.parametrize("array", ["words", "fields", "lanes", "bytes"])
def test_ranges_begin_at_cache_lines(array: str, count: int) -> None:
    store = Store()
    offset = [store.allocate(array, count) for _ in range(2)][1]
    found = getattr(store.arena, array)[offset:]
    assert found.ctypes.data % 64 == 0
    assert not found.any()


@given(counts=st.lists(st.integers(0, 5000), max_size=12))
def test_ranges_keep_what_they_hold_and_begin_with_zeros(counts: list[int]) -> None:
    store = Store()
    ranges = []
    for number, count in enumerate(counts, start=1):
        at = store.allocate("words", count)
        assert not store.arena.words[at : at + count].any()
        store.arena.words[at : at + count] = number
        ranges.append((at, count))

    for number, (at, count) in enumerate(ranges, start=1):
        assert (store.arena.words[at : at + count] == number).all()


@pytest.mark.parametrize("shared", [False, True])
def test_registered_memory_begins_at_a_cache_line(shared: bool) -> None:
    store = Store(100, shared=shared)
    offset = [store.register_memory(1 << 20) for _ in range(2)][1]
    assert store.arena.memory[offset:].ctypes.data % 64 == 0
    assert store.arena.memory.size >= 2 << 20


@pytest.mark.parametrize("shared", [False, True])
def test_shared_memory_has_what_a_child_writes(shared: bool) -> None:
    store = Store(4096, shared=shared)
    store.arena.memory[17] = 1
    child = os.fork()
    if child == 0:
        store.arena.memory[17] = 2
        os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    assert store.arena.memory[17] == (2 if shared else 1)
