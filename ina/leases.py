"""Tensors of which a worker has only those segments in memory that it is busy with.

A worker reads a block when it sends it, and needs no memory for it once its result is there and
somewhere else, too. So a table, in words, says of each segment of a tensor where it is, and calls
back when the first byte is wanted, and when all results are there
(`ringleaf.networks.endpoints.segments`). No block crosses segments: sizes are powers of two.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import call_back, inline
from ringleaf.ina.tensors import LEASE_AT, SOURCE_AT, TARGET_AT, TensorQueue

SEGMENT_BYTES = 1 << 18

# A table's words: addresses of functions that are called with a segment, and segments.
OPEN = 0  # it is about to be read
CLOSE = 1  # it is all results
SEGMENTS = 2

# A segment's words.
PLACE = 0  # where it is in arena.memory
LEFT = 1  # bytes without a result
IS_OPEN = 2
SEGMENT_WORDS = 3


@inline
def is_there(arena: Arena, tensors: TensorQueue, row: int, start: int) -> bool:
    """Return whether a tensor's values from byte `start` on are in memory already."""
    table = tensors.rows[row + LEASE_AT]
    if table == 0:
        return True
    segment = table + SEGMENTS + start // SEGMENT_BYTES * SEGMENT_WORDS
    return bool(arena.words[segment + IS_OPEN])


@inline
def source_at(arena: Arena, tensors: TensorQueue, row: int, start: int) -> int:
    """Return where in memory a worker's values from byte `start` of a tensor on are."""
    if tensors.rows[row + LEASE_AT] == 0:
        return int(tensors.rows[row + SOURCE_AT] + start)
    return _place(arena, tensors.rows[row + LEASE_AT], start)


@inline
def target_at(arena: Arena, tensors: TensorQueue, row: int, start: int) -> int:
    """Return where in memory results from byte `start` of a tensor on are to be written."""
    if tensors.rows[row + LEASE_AT] == 0:
        return int(tensors.rows[row + TARGET_AT] + start)
    return _place(arena, tensors.rows[row + LEASE_AT], start)


@inline
def note_written(arena: Arena, tensors: TensorQueue, row: int, start: int, size: int) -> None:
    """Note that so many bytes of a result have been written; each once."""
    words, table = arena.words, tensors.rows[row + LEASE_AT]
    if table == 0:
        return
    segment = table + SEGMENTS + start // SEGMENT_BYTES * SEGMENT_WORDS
    words[segment + LEFT] -= size
    if words[segment + LEFT] == 0:
        call_back(words[table + CLOSE], segment)


@inline
def _place(arena: Arena, table: int, start: int) -> int:
    words = arena.words
    segment = table + SEGMENTS + start // SEGMENT_BYTES * SEGMENT_WORDS
    if words[segment + IS_OPEN] == 0:
        words[segment + IS_OPEN] = 1
        call_back(words[table + OPEN], segment)
    return int(words[segment + PLACE] + start % SEGMENT_BYTES)
