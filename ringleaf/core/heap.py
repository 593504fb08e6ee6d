"""The event heap: a 4-ary heap of rows (time_ps, order and event) in the arena.

Events order by time, then by the order that they are given. A node's own come first, in the order
in which they were made (`order_own`); then packets, by the port at which they arrive (`order_at`),
so that it does not matter which of two nodes has sent first. The four children of a row are one
cache line, and the least of them is found without a branch: which one it is can't be predicted.
Behind the last row all times are `NEVER`, so there are always four.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import inline

ROW = 2
COUNT = 0
OWN = 1  # the last number given to a node's own events
CAPACITY = 2
ROWS_AT = 3
HEAP_WORDS = 8

# A row's second word: the event; above it, either the number of a node's own event, or ARRIVES, the
# port, and the last bits of the packet's number on its link.
EVENT_BITS = 32
PORT_BITS = 20
NUMBER_BITS = 10
ARRIVES = 1 << PORT_BITS + NUMBER_BITS
LAST_OWN = ARRIVES - (1 << 20)  # some may still be made

_EVENT = (1 << EVENT_BITS) - 1
_NUMBER = (1 << NUMBER_BITS) - 1
_NEVER = (1 << 63) - 1
_LINE = 8  # words
_FIRST = _LINE - ROW  # from the start of the first line, so that rows 1 to 4 are the second


def make_heap(store: Store, capacity: int) -> int:
    """Return the offset of an empty heap with room for `capacity` events."""
    at = store.allocate("words", HEAP_WORDS)
    grow_heap(store, at, capacity)
    return at


def grow_heap(store: Store, at: int, capacity: int) -> None:
    """Move a heap to where there is room for `capacity` events."""
    size = _FIRST + (capacity + 4) * ROW
    rows_at = store.allocate("words", size) + _FIRST
    words = store.arena.words
    used = int(words[at + COUNT]) * ROW
    old = int(words[at + ROWS_AT])
    # Rows behind the last one never come first, so a line of four rows is compared as a whole.
    words[rows_at : rows_at + size - _FIRST] = _NEVER
    words[rows_at : rows_at + used] = words[old : old + used]
    words[at + ROWS_AT] = rows_at
    words[at + CAPACITY] = capacity


def renumber(words: Words, at: int) -> None:
    """Give a heap's own events new numbers, in their order."""
    rows_at, count = int(words[at + ROWS_AT]), int(words[at + COUNT])
    rows = words[rows_at : rows_at + count * ROW].reshape(count, ROW)
    rows[:] = rows[np.lexsort((rows[:, 1], rows[:, 0]))]  # which is a heap as well
    order = rows[:, 1] >> EVENT_BITS
    own = (order > 0) & (order < ARRIVES)
    order = np.where(own, np.cumsum(own), order)
    rows[:, 1] = rows[:, 1] & _EVENT | order << EVENT_BITS
    words[at + OWN] = int(own.sum())


def remove_events(words: Words, at: int, events: Collection[int]) -> None:
    """Remove the events of these numbers, which must not be packets that arrive, from a heap."""
    rows_at, count = int(words[at + ROWS_AT]), int(words[at + COUNT])
    rows = words[rows_at : rows_at + count * ROW].reshape(count, ROW)
    kept = rows[~np.isin(rows[:, 1] & _EVENT, list(events))]
    rows[: len(kept)] = kept[np.lexsort((kept[:, 1], kept[:, 0]))]  # which is a heap
    rows[len(kept) :] = _NEVER
    words[at + COUNT] = len(kept)


@inline
def order_own(words: Words, at: int) -> int:
    """Return the order of a node's next own event; the caller keeps LAST_OWN."""
    words[at + OWN] += 1
    return words[at + OWN]


@inline
def order_at(port: int, number: int) -> int:
    """Return the order of a packet that arrives at a port, below 2^PORT_BITS.

    Two of a link may arrive at one time where one is late. Then their numbers on the link decide.
    """
    return ARRIVES | port << NUMBER_BITS | number & _NUMBER


@inline
def _is_before(words: Words, a: int, time_ps: int, word: int) -> bool:
    """Return whether a row's event comes before another one; there is no branch in it."""
    other_ps = words[a]
    return (other_ps < time_ps) | ((other_ps == time_ps) & (words[a + 1] < word))


@inline
def _first(words: Words, a: int, b: int) -> int:
    return b if _is_before(words, b, words[a], words[a + 1]) else a


@inline
def _first_child(words: Words, line: int) -> int:
    """Return the first of the four rows of a cache line."""
    left = _first(words, line, line + ROW)
    right = _first(words, line + 2 * ROW, line + 3 * ROW)
    return _first(words, left, right)


@inline
def _place(words: Words, rows: int, hole: int, time_ps: int, word: int) -> None:
    """Write an event to a hole among the rows, or above it."""
    while hole > 0:
        parent = (hole - 1) >> 2
        above = rows + parent * ROW
        if _is_before(words, above, time_ps, word):
            break
        words[rows + hole * ROW] = words[above]
        words[rows + hole * ROW + 1] = words[above + 1]
        hole = parent
    words[rows + hole * ROW] = time_ps
    words[rows + hole * ROW + 1] = word


@inline
def word_of(order: int, event: int) -> int:
    """Return a row's second word."""
    return order << EVENT_BITS | event


@inline
def event_of(word: int) -> int:
    """Return the event of a row's second word."""
    return word & _EVENT


@inline
def push_event(words: Words, at: int, time_ps: int, event: int, order: int) -> None:
    """Add an event, a number of EVENT_BITS, in this order; the caller keeps CAPACITY."""
    push_row(words, at, time_ps, word_of(order, event))


@inline
def push_row(words: Words, at: int, time_ps: int, word: int) -> None:
    """Add an event with its order (`word_of`); the caller keeps CAPACITY."""
    count = words[at + COUNT]
    words[at + COUNT] = count + 1
    _place(words, words[at + ROWS_AT], count, time_ps, word)


@inline
def pop_event(words: Words, at: int) -> int:
    """Remove the first event and return it; its time is read before, with `first_time_ps`.

    The hole sinks to the bottom, where the last event, mostly a late one, takes its place.
    """
    rows = words[at + ROWS_AT]
    event = event_of(words[rows + 1])
    count = words[at + COUNT] - 1
    words[at + COUNT] = count
    last = rows + count * ROW
    time_ps, word = words[last], words[last + 1]
    # The row becomes free, and `_first_child` must never choose it.
    words[last] = _NEVER
    if count == 0:
        return event
    hole, child = 0, 1
    while child < count:
        best = _first_child(words, rows + child * ROW)
        words[rows + hole * ROW] = words[best]
        words[rows + hole * ROW + 1] = words[best + 1]
        hole = (best - rows) >> 1
        child = 4 * hole + 1
    _place(words, rows, hole, time_ps, word)
    return event


@inline
def replace_first(words: Words, at: int, time_ps: int, word: int) -> None:
    """Put an event, with its order, in the place of the first one, which is no later."""
    rows, count = words[at + ROWS_AT], words[at + COUNT]
    hole, child = 0, 1
    while child < count:
        best = _first_child(words, rows + child * ROW)
        if not _is_before(words, best, time_ps, word):
            break
        words[rows + hole * ROW] = words[best]
        words[rows + hole * ROW + 1] = words[best + 1]
        hole = (best - rows) >> 1
        child = 4 * hole + 1
    words[rows + hole * ROW] = time_ps
    words[rows + hole * ROW + 1] = word


@inline
def first_time_ps(words: Words, at: int) -> int:
    """Return the time of the first event; later than any, if there is none."""
    return words[words[at + ROWS_AT]]


@inline
def event_at(words: Words, at: int, row: int) -> int:
    """Return the event of a row; any, if there is none. Rows 1 to 4 may be next after row 0."""
    return event_of(words[words[at + ROWS_AT] + row * ROW + 1])


@inline
def first_event(words: Words, at: int) -> int:
    """Return the first event; any, if there is none."""
    return event_at(words, at, 0)


@inline
def second_event(words: Words, at: int) -> int:
    """Return the event after the first one; any, if there is none."""
    rows = words[at + ROWS_AT]
    return event_of(words[_first_child(words, rows + ROW) + 1])
