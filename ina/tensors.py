"""Tensors that a worker has been given, one after the other.

TENSORS_WORDS words among an agent's own: the current tensor's row, and a ring of those that wait.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.arena import Arena, Store, Words
from ringleaf.compiled import inline
from ringleaf.views import window

FLOAT32 = 0
INT32 = 1

# A tensor's words; the current one's come first among those of the ring's owner.
SOURCE_AT = 0  # bytes in arena.memory
TARGET_AT = 1
COUNT = 2
DTYPE = 3
TAG = 4
PRIORITY = 5
TENSOR_WORDS = 6

ROWS_AT = TENSOR_WORDS
FIRST = TENSOR_WORDS + 1
WAITING = TENSOR_WORDS + 2
TENSORS_WORDS = TENSOR_WORDS + 3

MOST_WAITING = 64


class Tensors(NamedTuple):
    state: Words  # (TENSORS_WORDS,)
    rows: Words  # (MOST_WAITING, TENSOR_WORDS), flat


def make_tensors(store: Store, at: int) -> None:
    """Lay out an empty ring at word `at`."""
    rows_at = store.allocate("words", MOST_WAITING * TENSOR_WORDS)
    store.arena.words[at + ROWS_AT] = rows_at


@inline
def open_tensors(arena: Arena, at: int) -> Tensors:
    words = arena.words
    return Tensors(
        window(words, at, TENSORS_WORDS),
        window(words, words[at + ROWS_AT], MOST_WAITING * TENSOR_WORDS),
    )


@inline
def post_tensor(
    tensors: Tensors,
    source_at: int,
    target_at: int,
    count: int,
    dtype: int,
    tag: int,
    priority: int,
) -> bool:
    """Put a tensor behind those that wait; False if there is no room."""
    state = tensors.state
    if state[WAITING] == MOST_WAITING:
        return False
    row = (state[FIRST] + state[WAITING]) % MOST_WAITING * TENSOR_WORDS
    tensors.rows[row + SOURCE_AT] = source_at
    tensors.rows[row + TARGET_AT] = target_at
    tensors.rows[row + COUNT] = count
    tensors.rows[row + DTYPE] = dtype
    tensors.rows[row + TAG] = tag
    tensors.rows[row + PRIORITY] = priority
    state[WAITING] += 1
    return True


@inline
def next_tensor(tensors: Tensors) -> bool:
    """Make the first that waits the current one; False if none does."""
    state = tensors.state
    if state[WAITING] == 0:
        return False
    row = state[FIRST] * TENSOR_WORDS
    for i in range(TENSOR_WORDS):
        state[i] = tensors.rows[row + i]
    state[FIRST] = (state[FIRST] + 1) % MOST_WAITING
    state[WAITING] -= 1
    return True
