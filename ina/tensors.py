"""A worker's tensors: a stream, whose blocks follow one another without a gap.

All workers of a job are given the same tensors in the same order, so all number their blocks
alike, and a tensor's first blocks may go while those of the one before have no result yet (the
SwitchML paper's virtual stream buffer). The tensor given first goes first, whatever its priority:
to let urgent tensors overtake, give little at a time (`ringleaf.networks.endpoints.training`).

Tensors are numbered from 0; number i is in row i mod MOST_TENSORS of a ring until it and all
before it are done. TENSORS_WORDS words among an agent's own locate the ring.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import window
from ringleaf.hosts.agent import complete

FLOAT32 = 0
INT32 = 1

REDUCED = 1
"""A worker's report that a tensor is done. a: count of its elements, b: its tag."""

# Words of all tensors.
ROWS_AT = 0
OLDEST = 1  # number of the first that is not done
POSTED = 2  # tensors given so far
TENSORS_WORDS = 3

# A tensor's words.
SOURCE_AT = 0  # bytes in arena.memory
TARGET_AT = 1
COUNT = 2
DTYPE = 3
TAG = 4
PRIORITY = 5
FIRST = 6  # where its blocks begin in the stream, in the system's way
BLOCKS = 7
LEFT = 8  # blocks, or slots with some, that have no result yet
LEASE_AT = 9  # table of its segments (`ringleaf.ina.leases`); 0: it is all in memory
TENSOR_WORDS = 10

MOST_TENSORS = 64


class TensorQueue(NamedTuple):
    """A worker's tensors: the numbers of the stream, and the ring of their rows."""

    state: Words  # (TENSORS_WORDS,)
    rows: Words  # (MOST_TENSORS, TENSOR_WORDS), flat


def make_tensors(store: Store, at: int) -> None:
    """Lay out an empty ring at word `at`."""
    rows_at = store.allocate("words", MOST_TENSORS * TENSOR_WORDS)
    store.arena.words[at + ROWS_AT] = rows_at


@inline
def open_tensors(arena: Arena, at: int) -> TensorQueue:
    """Return the queue whose state is at word `at`."""
    words = arena.words
    return TensorQueue(
        window(words, at, TENSORS_WORDS),
        window(words, words[at + ROWS_AT], MOST_TENSORS * TENSOR_WORDS),
    )


@inline
def tensor_row(number: int) -> int:
    """Return the offset of a tensor's words in `rows`."""
    return number % MOST_TENSORS * TENSOR_WORDS


def post_tensor(
    tensors: TensorQueue,
    *,
    source_at: int,
    target_at: int,
    count: int,
    dtype: int,
    tag: int,
    priority: int = 0,
    lease: int = 0,
) -> int:
    """Put a tensor behind the others; return its row, or -1, and do nothing, if there is no room.

    All workers of a job are given the same tensors in the same order. REDUCED is reported when the
    sum is there; until then the source must stay as it is.

    Args:
        tensors: A worker's tensors; its `begin_tensor` must be called with the row.
        source_at: Offset of the elements in arena.memory, a multiple of 4.
        target_at: Offset of the sum; may be `source_at`, and must not overlap it otherwise.
            OmniReduce's must be it, as blocks that are zero everywhere are not written.
        count: Number of elements, of 4 bytes each; may be 0.
        dtype: FLOAT32 (the system's `error_bound` bounds the error) or INT32 (wraps around).
        tag: Given back with REDUCED.
        priority: DSCP's class selector in its packets, 0 to 7, the most urgent.
        lease: Table of its segments, for workers that look at it; 0: it is all in memory.
    """
    state, rows = tensors.state, tensors.rows
    if state[POSTED] - state[OLDEST] == MOST_TENSORS:
        return -1
    row = tensor_row(int(state[POSTED]))
    rows[row + SOURCE_AT] = source_at
    rows[row + TARGET_AT] = target_at
    rows[row + COUNT] = count
    rows[row + DTYPE] = dtype
    rows[row + TAG] = tag
    rows[row + PRIORITY] = priority
    rows[row + LEASE_AT] = lease
    state[POSTED] += 1
    return row


@inline
def lay_out(tensors: TensorQueue, row: int, first: int, blocks: int, parts: int) -> None:
    """Set the start and number of a tensor's blocks, and the number of parts that await results."""
    tensors.rows[row + FIRST] = first
    tensors.rows[row + BLOCKS] = blocks
    tensors.rows[row + LEFT] = parts


@inline
def end_tensor(arena: Arena, at: int, tensors: TensorQueue, row: int, now_ps: int) -> None:
    """Report the tensor if nothing of it is left, and free the rows of tensors that are done."""
    state, rows = tensors.state, tensors.rows
    if rows[row + LEFT] == 0:
        complete(arena, at, REDUCED, rows[row + COUNT], rows[row + TAG], now_ps)
        while state[OLDEST] < state[POSTED] and rows[tensor_row(state[OLDEST]) + LEFT] == 0:
            state[OLDEST] += 1


def raise_priority(tensors: TensorQueue, priority: int) -> None:
    """Send the rest of all tensors with at least this priority."""
    for number in range(tensors.state[OLDEST], tensors.state[POSTED]):
        row = tensor_row(number)
        tensors.rows[row + PRIORITY] = max(tensors.rows[row + PRIORITY], priority)
