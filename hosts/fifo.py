"""First-in, first-out queues of numbers, in `arena.words`."""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import span

# A fifo's words.
FIFO_ROWS = 0
FIFO_FIRST = 1
FIFO_COUNT = 2
FIFO_ROOM = 3
FIFO_WORDS = 5


class Fifo(NamedTuple):
    """A queue's state and its ring of numbers.

    Attributes:
        state: (FIFO_WORDS,)
        rows: (room,), a ring that begins at FIFO_FIRST.
    """

    state: Words
    rows: Words


@inline
def open_fifo(arena: Arena, at: int) -> Fifo:
    """Return the queue whose state is at word `at`."""
    words = arena.words
    rows = words[at + FIFO_ROWS]
    return Fifo(span(words, at, FIFO_WORDS), span(words, rows, words[at + FIFO_ROOM]))


@inline
def fifo_push(fifo: Fifo, value: int) -> None:
    """Append a number; the caller sees to it that there is room."""
    state = fifo.state
    slot = state[FIFO_FIRST] + state[FIFO_COUNT]
    if slot >= state[FIFO_ROOM]:
        slot -= state[FIFO_ROOM]
    fifo.rows[slot] = value
    state[FIFO_COUNT] += 1


@inline
def fifo_first(fifo: Fifo) -> int:
    """Return the number that `fifo_pop` would; any, if there is none."""
    return int(fifo.rows[fifo.state[FIFO_FIRST]])


@inline
def fifo_pop(fifo: Fifo) -> int:
    """Remove and return the oldest number; the caller sees to it that there is one."""
    state = fifo.state
    value = fifo.rows[state[FIFO_FIRST]]
    state[FIFO_FIRST] += 1
    if state[FIFO_FIRST] == state[FIFO_ROOM]:
        state[FIFO_FIRST] = 0
    state[FIFO_COUNT] -= 1
    return value
