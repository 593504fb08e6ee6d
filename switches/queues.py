"""A switch port's queues: eight classes, strict priority, one capacity in bytes.

The port drains them at its line rate, so priorities contend and depths mean something
(BMv2 paces each priority queue apart, in packets per second). Class 7 is served first,
as in BMv2 with eight priority queues.
"""

from __future__ import annotations

from ringleaf.arena import Store, Words
from ringleaf.compiled import inline
from ringleaf.packets import NEXT, ROW_WORDS, ROWS_AT, row_bytes

CLASSES = 8

# Columns of the queue set's own state.
BYTES = 0  # in all classes
PACKETS = 1
CAPACITY_BYTES = 2
DROPPED = 3  # packets that found no room
PEAK_BYTES = 4
HEADS = 8  # per class: first packet
TAILS = 16  # per class: last packet
LENGTHS = 24  # per class: packets
QUEUE_WORDS = 32


def make_queues(store: Store, capacity_bytes: int) -> int:
    at = store.allocate("words", QUEUE_WORDS)
    store.arena.words[at + CAPACITY_BYTES] = capacity_bytes
    return at


@inline
def push(words: Words, at: int, packet: int, level: int) -> bool:
    """Append to class `level`; return False, and count a drop, when it does not fit."""
    row = words[ROWS_AT] + packet * ROW_WORDS
    size = row_bytes(words, row)
    if words[at + BYTES] + size > words[at + CAPACITY_BYTES]:
        words[at + DROPPED] += 1
        return False
    words[row + NEXT] = -1
    if words[at + LENGTHS + level] == 0:
        words[at + HEADS + level] = packet
    else:
        words[words[ROWS_AT] + words[at + TAILS + level] * ROW_WORDS + NEXT] = packet
    words[at + TAILS + level] = packet
    words[at + LENGTHS + level] += 1
    words[at + PACKETS] += 1
    words[at + BYTES] += size
    words[at + PEAK_BYTES] = max(words[at + PEAK_BYTES], words[at + BYTES])
    return True


@inline
def pop(words: Words, at: int) -> int:
    """Remove and return the first packet of the highest occupied class; -1 when empty."""
    level = CLASSES - 1
    while level >= 0 and words[at + LENGTHS + level] == 0:
        level -= 1
    if level < 0:
        return -1
    packet = words[at + HEADS + level]
    row = words[ROWS_AT] + packet * ROW_WORDS
    words[at + HEADS + level] = words[row + NEXT]
    words[at + LENGTHS + level] -= 1
    words[at + PACKETS] -= 1
    words[at + BYTES] -= row_bytes(words, row)
    return packet
