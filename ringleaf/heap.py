"""The event heap: a 4-ary heap of rows (time_ps, order and event) in the arena.

Events order by time, then by the order that they are given. A node's own come first, in the order
in which they were made (`order_own`); then packets, by the port at which they arrive (`order_at`),
so that it does not matter which of two nodes has sent first. The four children of a row are one
cache line, and the least of them is found without a branch: which one it is can't be predicted.
Behind the last row all times are `NEVER`, so there are always four.
"""

from __future__ import annotations

import numpy as np

from ringleaf.arena import Store, Words
from ringleaf.compiled import inline

ROW = 2
COUNT = 0
TIES = 1  # the last tie given among arrivals at a port
CAPACITY = 2
ROWS_AT = 3
OWN = 4  # the last number given to a node's own events
HEAP_WORDS = 8

# A row's second word: the event; above it, either the number of a node's own event, or ARRIVES, the
# port, and a tie for arrivals at one time at one port.
EVENT_BITS = 32
PLACE_BITS = 14
TIE_BITS = 16
ARRIVES = 1 << PLACE_BITS + TIE_BITS
LAST_TIE = (1 << TIE_BITS) - (1 << 13)  # some may still be made
LAST_OWN = ARRIVES - (1 << 20)

_EVENT = (1 << EVENT_BITS) - 1
_TIE = (1 << TIE_BITS) - 1
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
    words[rows_at : rows_at + size - _FIRST] = _NEVER
    words[rows_at : rows_at + used] = words[old : old + used]
    words[at + ROWS_AT] = rows_at
    words[at + CAPACITY] = capacity


def renumber(words: Words, at: int) -> None:
    """Number a heap's own events, and its ties, anew, in their order."""
    rows_at, count = int(words[at + ROWS_AT]), int(words[at + COUNT])
    rows = words[rows_at : rows_at + count * ROW].reshape(count, ROW)
    rows[:] = rows[np.lexsort((rows[:, 1], rows[:, 0]))]  # which is a heap as well
    order = rows[:, 1] >> EVENT_BITS
    own = (order > 0) & (order < ARRIVES)
    tied = (order >= ARRIVES) & (order & _TIE > 0)
    order = np.where(own, np.cumsum(own), order)
    order = np.where(tied, order & ~_TIE | np.cumsum(tied), order)
    rows[:, 1] = rows[:, 1] & _EVENT | order << EVENT_BITS
    words[at + OWN], words[at + TIES] = int(own.sum()), int(tied.sum())


@inline
def order_own(words: Words, at: int) -> int:
    """Return the order of a node's next own event; the caller keeps LAST_OWN."""
    words[at + OWN] += 1
    return words[at + OWN]


@inline
def order_at(words: Words, at: int, place: int, may_tie: bool) -> int:
    """Return the order of an arrival at a port, below 2^PLACE_BITS; the caller keeps LAST_TIE.

    Only where packets may overtake others can two arrive at one time at one port.
    """
    order = ARRIVES | place << TIE_BITS
    if may_tie:
        words[at + TIES] += 1
        order |= words[at + TIES]
    return order


@inline
def must_renumber(words: Words, at: int) -> bool:
    """Return whether numbers of events are about to run out."""
    return words[at + TIES] > LAST_TIE or words[at + OWN] > LAST_OWN


@inline
def _is_before(words: Words, a: int, time_ps: int, word: int) -> bool:
    """Return whether a row's event comes before another one; there is no branch in it."""
    other_ps = words[a]
    return (other_ps < time_ps) | ((other_ps == time_ps) & (words[a + 1] < word))


@inline
def _first(words: Words, a: int, b: int) -> int:
    return b if _is_before(words, b, words[a], words[a + 1]) else a


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
def push_event(words: Words, at: int, time_ps: int, event: int, order: int) -> None:
    """Add an event, a number of EVENT_BITS, in this order; the caller keeps CAPACITY."""
    count = words[at + COUNT]
    words[at + COUNT] = count + 1
    _place(words, words[at + ROWS_AT], count, time_ps, order << EVENT_BITS | event)


@inline
def pop_event(words: Words, at: int) -> int:
    """Remove the first event and return it; its time is read before, with `first_time_ps`.

    The hole sinks to the bottom, where the last event, mostly a late one, takes its place.
    """
    rows = words[at + ROWS_AT]
    event = words[rows + 1] & _EVENT
    count = words[at + COUNT] - 1
    words[at + COUNT] = count
    last = rows + count * ROW
    time_ps, word = words[last], words[last + 1]
    words[last] = _NEVER
    if count == 0:
        return event
    hole, child = 0, 1
    while child < count:
        line = rows + child * ROW
        left = _first(words, line, line + ROW)
        right = _first(words, line + 2 * ROW, line + 3 * ROW)
        best = _first(words, left, right)
        words[rows + hole * ROW] = words[best]
        words[rows + hole * ROW + 1] = words[best + 1]
        hole = (best - rows) >> 1
        child = 4 * hole + 1
    _place(words, rows, hole, time_ps, word)
    return event


@inline
def first_time_ps(words: Words, at: int) -> int:
    """Return the time of the first event; later than any, if there is none."""
    return words[words[at + ROWS_AT]]


@inline
def first_event(words: Words, at: int) -> int:
    """Return the first event; any, if there is none."""
    return words[words[at + ROWS_AT] + 1] & _EVENT
