"""A cache of rows on a NIC: least recently used, or least frequently used.

All is in registered memory, as a NIC agent's state is (`nic/state.py`). A heap of the rows that are
cached has the one to give up first: by the time of its last look-up (LRU), or by the number of its
look-ups so far (LFU), the older one of equals. LRU keeps every row that is looked up; LFU keeps a
row if it has been looked up more often than the least used row that is cached. Its counts are of
all rows, cached or not.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import int64_at
from ringleaf.hosts.nic.layout import CACHE_HEADER, cache_bytes

LRU, LFU = range(2)

# The header.
CAPACITY = 0
POLICY = 1
COUNT = 2  # rows that are cached
CLOCK = 3  # look-ups so far
ROWS = 4  # of the table

CLOCK_BITS = 36


class Cache(NamedTuple):
    """One cache. Rows are numbered from 0, slots likewise; -1 is none."""

    header: Words  # (CACHE_HEADER,)
    slot_of: Words  # (rows,) the slot of each row plus 1; 0: it is not cached
    uses_of: Words  # (rows,) look-ups of each row
    row_of: Words  # (capacity,)
    key_of: Words  # (capacity,) by which slots leave, least first
    place_of: Words  # (capacity,) of each slot in the heap
    heap: Words  # (capacity,) slots; those behind COUNT are free


@inline
def open_cache(arena: Arena, at: int, rows: int, capacity: int) -> Cache:
    """Return the cache at byte `at` of `arena.memory`, for `capacity` of so many rows."""
    first = at + 8 * CACHE_HEADER
    slots = first + 16 * rows
    return Cache(
        int64_at(arena.memory, at, CACHE_HEADER),
        int64_at(arena.memory, first, rows),
        int64_at(arena.memory, first + 8 * rows, rows),
        int64_at(arena.memory, slots, capacity),
        int64_at(arena.memory, slots + 8 * capacity, capacity),
        int64_at(arena.memory, slots + 16 * capacity, capacity),
        int64_at(arena.memory, slots + 24 * capacity, capacity),
    )


def clear_cache(arena: Arena, at: int, rows: int, capacity: int, policy: int) -> None:
    """Make an empty cache of memory with any contents."""
    int64_at(arena.memory, at, cache_bytes(rows, capacity) // 8)[:] = 0
    cache = open_cache(arena, at, rows, capacity)
    cache.header[CAPACITY], cache.header[POLICY], cache.header[ROWS] = capacity, policy, rows
    cache.heap[:] = range(capacity)


@inline
def _put(cache: Cache, place: int, slot: int) -> None:
    cache.heap[place] = slot
    cache.place_of[slot] = place


@inline
def _sift(cache: Cache, place: int) -> None:
    """Move the slot at a place up or down to where it belongs."""
    slot = cache.heap[place]
    key = cache.key_of[slot]
    while place > 0 and cache.key_of[cache.heap[(place - 1) >> 1]] > key:
        _put(cache, place, cache.heap[(place - 1) >> 1])
        place = (place - 1) >> 1
    count = cache.header[COUNT]
    child = 2 * place + 1
    while child < count:
        if (
            child + 1 < count
            and cache.key_of[cache.heap[child + 1]] < cache.key_of[cache.heap[child]]
        ):
            child += 1
        if cache.key_of[cache.heap[child]] >= key:
            break
        _put(cache, place, cache.heap[child])
        place = child
        child = 2 * place + 1
    _put(cache, place, slot)


@inline
def _key(cache: Cache, row: int) -> int:
    clock = cache.header[CLOCK]
    if cache.header[POLICY] == LRU:
        return clock
    # The clock decides between rows with as many look-ups: the older one leaves first.
    return cache.uses_of[row] << CLOCK_BITS | clock


@inline
def find(cache: Cache, row: int) -> int:
    """Return the slot of a row, and don't count that as a look-up."""
    return cache.slot_of[row] - 1


@inline
def look_up(cache: Cache, row: int) -> int:
    """Return the slot of a row, and count the look-up."""
    cache.header[CLOCK] += 1
    cache.uses_of[row] += 1
    slot = cache.slot_of[row] - 1
    if slot >= 0:
        cache.key_of[slot] = _key(cache, row)
        _sift(cache, cache.place_of[slot])
    return slot


@inline
def admits(cache: Cache, row: int) -> bool:
    """Return whether the row that was just looked up, and is not here, shall be cached."""
    if cache.header[CAPACITY] == 0:
        return False
    if cache.header[COUNT] < cache.header[CAPACITY] or cache.header[POLICY] == LRU:
        return True
    return cache.uses_of[row] > cache.key_of[cache.heap[0]] >> CLOCK_BITS


@inline
def insert(cache: Cache, row: int) -> int:
    """Cache a row; return the row that it takes the place of, or -1."""
    count = cache.header[COUNT]
    gone = -1
    if count == cache.header[CAPACITY]:
        slot = cache.heap[0]
        gone = cache.row_of[slot]
        cache.slot_of[gone] = 0
    else:
        slot = cache.heap[count]
        cache.place_of[slot] = count
        cache.header[COUNT] = count + 1
    cache.row_of[slot] = row
    cache.slot_of[row] = slot + 1
    cache.key_of[slot] = _key(cache, row)
    _sift(cache, cache.place_of[slot])
    return gone


@inline
def remove(cache: Cache, row: int) -> None:
    """Give up a row that is cached."""
    slot = cache.slot_of[row] - 1
    place, last = cache.place_of[slot], cache.header[COUNT] - 1
    cache.slot_of[row] = 0
    cache.header[COUNT] = last
    other = cache.heap[last]
    _put(cache, last, slot)
    if place != last:
        _put(cache, place, other)
        _sift(cache, place)
