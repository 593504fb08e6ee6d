"""Caches of NICs against models that say what they must keep, and nothing of how."""

from __future__ import annotations

from collections import Counter, OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.hosts.nic.cache import (
    COUNT,
    LFU,
    LRU,
    admits,
    clear_cache,
    find,
    insert,
    look_up,
    open_cache,
    remove,
)
from ringleaf.hosts.nic.layout import cache_bytes

ROWS = 12


class Kept:
    """A cache in which rows are looked up, and those that it admits are inserted."""

    def __init__(self, capacity: int, policy: int) -> None:
        store = Store()
        at = store.register_memory(cache_bytes(ROWS, capacity))
        clear_cache(store.arena, at, ROWS, capacity, policy)
        self.cache = open_cache(store.arena, at, ROWS, capacity)

    def ask(self, row: int) -> tuple[bool, int]:
        """Return whether a row is there, and the row that has gone for it, or -1."""
        if look_up(self.cache, row) >= 0:
            return True, -1
        return False, insert(self.cache, row) if admits(self.cache, row) else -1

    @property
    def rows(self) -> set[int]:
        slots = self.cache.heap[: self.cache.header[COUNT]]
        assert all(find(self.cache, int(self.cache.row_of[slot])) == slot for slot in slots)
        return {int(self.cache.row_of[slot]) for slot in slots}


actions = st.lists(st.tuples(st.booleans(), st.integers(0, ROWS - 1)), max_size=80)


@given(st.integers(0, 6), actions)
def test_lru_keeps_the_rows_that_were_looked_up_last(
    capacity: int, steps: list[tuple[bool, int]]
) -> None:
    kept, model = Kept(capacity, LRU), OrderedDict[int, None]()
    for gives_up, row in steps:
        if gives_up and row in model:
            remove(kept.cache, row)
            del model[row]
        else:
            hit, gone = kept.ask(row)
            assert hit == (row in model)
            model[row] = None
            model.move_to_end(row)
            wanted = model.popitem(last=False)[0] if len(model) > capacity else -1
            assert gone == (wanted if capacity else -1)
        assert kept.rows == set(model)


@given(st.integers(1, 6), actions)
def test_lfu_keeps_the_rows_that_were_looked_up_most_often(
    capacity: int, steps: list[tuple[bool, int]]
) -> None:
    kept, model, uses = Kept(capacity, LFU), dict[int, int](), Counter[int]()
    for now, (gives_up, row) in enumerate(steps):
        if gives_up and row in model:
            remove(kept.cache, row)
            del model[row]
            continue
        uses[row] += 1
        hit, gone = kept.ask(row)
        assert hit == (row in model)
        wanted = -1
        if not hit and len(model) == capacity:
            least = min(model, key=lambda each: (uses[each], model[each]))
            wanted = least if uses[row] > uses[least] else -1
        assert gone == wanted
        if wanted >= 0:
            del model[wanted]
        if hit or len(model) < capacity:
            model[row] = now
        assert kept.rows == set(model)


def test_lru_and_lfu_differ_after_a_scan() -> None:
    """By hand: row 0 is looked up three times, then 1, 2 and 3 once; there is room for two."""
    lru, lfu = Kept(2, LRU), Kept(2, LFU)
    for row in (0, 0, 0, 1, 2, 3):
        lru.ask(row)
        lfu.ask(row)
    assert lru.rows == {2, 3}
    assert lfu.rows == {0, 1}
