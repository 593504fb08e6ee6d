"""A switch port's queues: eight classes with one capacity in bytes.

`disciplines.py` decides which of them is served next. The port drains them at its line rate, so
classes contend and depths mean something (BMv2 paces each priority queue apart, in packets per
second). Class 7 is the most urgent, as in BMv2 with eight priority queues.
"""

from __future__ import annotations

from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.packets import NEXT, ROW_WORDS, ROWS_AT, row_bytes

# Columns of the queue set's own state.
BYTES = 0  # in all classes
PACKETS = 1
CAPACITY_BYTES = 2
DROPPED = 3  # packets that found no room
PEAK_BYTES = 4
DISCIPLINE = 5  # code of `disciplines.py`, which has the next two, WEIGHTS and DEFICITS for itself
TURN = 6
CREDIT = 7
HEADS = 8  # per class: first packet
TAILS = 16  # per class: last packet
LENGTHS = 24  # per class: packets
CLASS_BYTES = 32  # per class
CLASS_PEAKS = 40  # per class: most bytes
WEIGHTS = 48  # per class
DEFICITS = 56  # per class
CHOOSER = 64  # address of the handler that chooses, and its number in `DISCIPLINES`, if the
NUMBER = 65  # discipline is of another package
TRIMMED = 66  # packets that were cut, as they found no room
QUEUE_WORDS = 67


def make_queues(store: Store, capacity_bytes: int) -> int:
    """Return the offset of empty queues, of which the highest occupied class is served first."""
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
    in_class = words[at + CLASS_BYTES + level] + size
    words[at + CLASS_BYTES + level] = in_class
    words[at + CLASS_PEAKS + level] = max(words[at + CLASS_PEAKS + level], in_class)
    return True


@inline
def first_bytes(words: Words, at: int, level: int) -> int:
    """Return the length of the first packet of an occupied class."""
    return row_bytes(words, words[ROWS_AT] + words[at + HEADS + level] * ROW_WORDS)


@inline
def take(words: Words, at: int, level: int) -> int:
    """Remove and return the first packet of an occupied class."""
    packet = words[at + HEADS + level]
    row = words[ROWS_AT] + packet * ROW_WORDS
    size = row_bytes(words, row)
    words[at + HEADS + level] = words[row + NEXT]
    words[at + LENGTHS + level] -= 1
    words[at + PACKETS] -= 1
    words[at + BYTES] -= size
    words[at + CLASS_BYTES + level] -= size
    return packet
