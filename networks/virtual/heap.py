"""The event heap: a 4-ary heap of rows (time_ps, sequence, event) in the arena.

Events order by (time, sequence), so events of one instant keep the order they were made in.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.arena import Arena, Store, Words
from ringleaf.compiled import inline

ROW = 3
COUNT = 0
SEQUENCE = 1
CAPACITY = 2
ROWS_AT = 3
HEAP_WORDS = 8


class Heap(NamedTuple):
    state: Words  # (HEAP_WORDS,)
    rows: Words  # (capacity * ROW,)


def make_heap(store: Store, capacity: int) -> int:
    at = store.allocate("words", HEAP_WORDS)
    grow_heap(store, at, capacity)
    return at


def grow_heap(store: Store, at: int, capacity: int) -> None:
    rows_at = store.allocate("words", capacity * ROW)
    words = store.arena.words
    used = int(words[at + COUNT]) * ROW
    old = int(words[at + ROWS_AT])
    words[rows_at : rows_at + used] = words[old : old + used]
    words[at + ROWS_AT] = rows_at
    words[at + CAPACITY] = capacity


@inline
def open_heap(arena: Arena, at: int) -> Heap:
    words = arena.words
    rows_at = words[at + ROWS_AT]
    return Heap(words[at : at + HEAP_WORDS], words[rows_at : rows_at + words[at + CAPACITY] * ROW])


@inline
def push_event(heap: Heap, time_ps: int, event: int) -> None:
    state, rows = heap.state, heap.rows
    hole = state[COUNT]
    sequence = state[SEQUENCE]
    state[COUNT] = hole + 1
    state[SEQUENCE] = sequence + 1
    while hole > 0:
        parent = (hole - 1) >> 2
        if rows[parent * ROW] <= time_ps:  # on a tie the parent is older
            break
        rows[hole * ROW] = rows[parent * ROW]
        rows[hole * ROW + 1] = rows[parent * ROW + 1]
        rows[hole * ROW + 2] = rows[parent * ROW + 2]
        hole = parent
    rows[hole * ROW] = time_ps
    rows[hole * ROW + 1] = sequence
    rows[hole * ROW + 2] = event


@inline
def _before(rows: Words, a: int, b: int) -> bool:
    if rows[a] != rows[b]:
        return rows[a] < rows[b]
    return rows[a + 1] < rows[b + 1]


@inline
def pop_event(heap: Heap) -> int:
    """Remove the first event and return it; its time is read before, at `rows[0]`."""
    state, rows = heap.state, heap.rows
    event = rows[2]
    count = state[COUNT] - 1
    state[COUNT] = count
    last = count * ROW
    hole = 0
    while True:
        child = 4 * hole + 1
        if child >= count:
            break
        best = child * ROW
        for other in range(child + 1, min(child + 4, count)):
            if _before(rows, other * ROW, best):
                best = other * ROW
        if not _before(rows, best, last):
            break
        target = hole * ROW
        rows[target] = rows[best]
        rows[target + 1] = rows[best + 1]
        rows[target + 2] = rows[best + 2]
        hole = best // ROW
    target = hole * ROW
    rows[target] = rows[last]
    rows[target + 1] = rows[last + 1]
    rows[target + 2] = rows[last + 2]
    return event
