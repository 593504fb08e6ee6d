"""The event heap: a 4-ary heap of rows (time_ps, sequence, event) in the arena.

Events order by (time, sequence), so events of one instant keep the order they were made in.
"""

from __future__ import annotations

from ringleaf.arena import Store, Words
from ringleaf.compiled import inline

ROW = 3
COUNT = 0
SEQUENCE = 1
CAPACITY = 2
ROWS_AT = 3
HEAP_WORDS = 8


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
def _before(words: Words, a: int, b: int) -> bool:
    if words[a] != words[b]:
        return words[a] < words[b]
    return words[a + 1] < words[b + 1]


@inline
def _move(words: Words, target: int, source: int) -> None:
    words[target] = words[source]
    words[target + 1] = words[source + 1]
    words[target + 2] = words[source + 2]


@inline
def push_event(words: Words, at: int, time_ps: int, event: int) -> None:
    rows = words[at + ROWS_AT]
    hole = words[at + COUNT]
    sequence = words[at + SEQUENCE]
    words[at + COUNT] = hole + 1
    words[at + SEQUENCE] = sequence + 1
    while hole > 0:
        parent = (hole - 1) >> 2
        if words[rows + parent * ROW] <= time_ps:  # on a tie the parent is older
            break
        _move(words, rows + hole * ROW, rows + parent * ROW)
        hole = parent
    words[rows + hole * ROW] = time_ps
    words[rows + hole * ROW + 1] = sequence
    words[rows + hole * ROW + 2] = event


@inline
def pop_event(words: Words, at: int) -> int:
    """Remove the first event and return it; its time is read before, with `first_time_ps`."""
    rows = words[at + ROWS_AT]
    event = words[rows + 2]
    count = words[at + COUNT] - 1
    words[at + COUNT] = count
    last = rows + count * ROW
    hole = rows
    child = 1  # the hole's first child, as an index
    while child < count:
        best = rows + child * ROW
        end = rows + min(child + 4, count) * ROW
        for other in range(best + ROW, end, ROW):
            if _before(words, other, best):
                best = other
        if not _before(words, best, last):
            break
        _move(words, hole, best)
        hole = best
        child = 4 * ((hole - rows) // ROW) + 1
    _move(words, hole, last)
    return event


@inline
def first_time_ps(words: Words, at: int) -> int:
    return words[words[at + ROWS_AT]]
