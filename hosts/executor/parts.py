"""The parts of an operation: what their words say, and how a stream makes its next one."""

from __future__ import annotations

import ringleaf.hosts.executor.layout as x
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import prefetch
from ringleaf.hosts.plan import SUM
from ringleaf.hosts.rc.landing import SHIFT


@inline
def executor_of(words: Words, part: int) -> int:
    """Return the executor of a part."""
    return words[words[part + x.STREAM] + x.OWNER]


@inline
def kind_of(words: Words, part: int) -> int:
    """Return SEND, RECEIVE or SUM."""
    return words[words[part + x.STREAM] + x.KIND]


@inline
def flags_of(words: Words, part: int) -> int:
    """Return the flags of a part."""
    return words[words[part + x.PLANNED] + x.PLANNED_FLAGS]


@inline
def lease_of(words: Words, at: int, chunk: int) -> int:
    """Return the lease of an executor's chunk."""
    return words[at + x.LEASES_AT] + chunk * x.LEASE_WORDS


@inline
def address_of(words: Words, part: int) -> int:
    """Return the memory that a part's message is sent from, or has landed in."""
    if words[part + x.HELD] and kind_of(words, part) != SUM:
        return words[words[part + x.HELD] + x.BUFFER]
    executor = executor_of(words, part)
    return home_of(words, executor, part)


@inline
def home_of(words: Words, executor: int, part: int) -> int:
    """Return the address of a part's chunks, in the tensor or in scratch memory."""
    operation = words[executor + x.OPERATION]
    first = words[words[operation + x.EDGES_AT] + words[part + x.START]]
    base = words[executor + x.ADDRESS]
    if words[executor + x.LEASES_AT]:
        base += words[lease_of(words, executor, words[part + x.START]) + x.SHARED + SHIFT]
    if words[part + x.START] >= words[operation + x.OWN_CHUNKS]:
        base = words[executor + x.SCRATCH]
    return base + first * words[operation + x.ITEM_BYTES]


@inline
def bytes_of(words: Words, part: int) -> int:
    """Return the size of a part's chunks."""
    operation = words[executor_of(words, part) + x.OPERATION]
    edges = words[operation + x.EDGES_AT]
    elements = words[edges + words[part + x.STOP]] - words[edges + words[part + x.START]]
    return elements * words[operation + x.ITEM_BYTES]


@inline
def next_part(words: Words, stream: int) -> int:
    """Return a stream's first part that is not requested; 0: there is none.

    There is room for one, as long as not as many as may be are under way.
    """
    part = words[stream + x.NEXT_PART]
    planned = words[stream + x.NEXT_PLANNED]
    if part or planned == words[stream + x.END_PLANNED]:
        return part
    part = words[stream + x.FREE_PART]
    words[stream + x.FREE_PART] = words[part + x.LATER]
    words[stream + x.NEXT_PART] = part
    words[stream + x.NEXT_PLANNED] = planned + x.PLANNED_WORDS
    make(words, planned, part)
    return part


@inline
def make(words: Words, planned: int, part: int) -> None:
    """Make a part of a planned one, for the stream that it belongs to."""
    message, first = words[planned + x.PLANNED_MESSAGE], words[planned + x.PLANNED_START]
    turn = words[words[part + x.STREAM] + x.TURN]
    # Nodes of a symmetric schedule share the plan of the first one. Chunks, and the sender in a
    # message's number, are turned by the distance to that node.
    if turn:
        chunks = words[words[executor_of(words, part) + x.OPERATION] + x.OWN_CHUNKS]
        sender = message % chunks
        message += (sender + turn) % chunks - sender
        first = (first + turn) % chunks
    fetch_after(words, planned, part, first)
    size = words[planned + x.PLANNED_STOP] - words[planned + x.PLANNED_START]
    words[part + x.MESSAGE] = message
    words[part + x.START], words[part + x.STOP] = first, first + size
    words[part + x.PLANNED] = planned
    words[part + x.LATER] = words[part + x.HELD] = 0
    words[part + x.SIZE_BYTES] = words[planned + x.ROOM_BYTES]
    if flags_of(words, part) & x.IS_CODED == 0:
        words[part + x.SIZE_BYTES] = bytes_of(words, part)


@inline
def fetch_after(words: Words, planned: int, part: int, first: int) -> None:
    """Have the processor fetch the chunk of a stream's next part, given this one's first chunk.

    Very many nodes' chunks are in no cache. What follows the last part is of no use.
    """
    after = words[planned + x.PLANNED_WORDS + x.PLANNED_START]
    chunk = first + after - words[planned + x.PLANNED_START]
    prefetch(words, words[executor_of(words, part) + x.CHUNKS_AT] + chunk * x.CHUNK_WORDS)


@inline
def free_part(words: Words, stream: int, part: int) -> None:
    """Leave the words of a part that is done to another one of its stream."""
    words[part + x.LATER] = words[stream + x.FREE_PART]
    words[stream + x.FREE_PART] = part
