"""A switch port's queues: eight classes, strict priority, one capacity in bytes.

The port drains them at its line rate, so priorities contend and depths mean something
(BMv2 paces each priority queue apart, in packets per second). Class 7 is served first,
as in BMv2 with eight priority queues.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.arena import Arena, Store, Words
from ringleaf.compiled import inline
from ringleaf.packets import NEXT, ROW_WORDS, ROWS_AT, packet_bytes

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


class Queues(NamedTuple):
    """One port's queue set and the packets' rows, which link its packets by NEXT."""

    state: Words  # (QUEUE_WORDS,)
    rows: Words  # flat rows of the packet pool


def make_queues(store: Store, capacity_bytes: int) -> int:
    at = store.allocate("words", QUEUE_WORDS)
    store.arena.words[at + CAPACITY_BYTES] = capacity_bytes
    return at


@inline
def open_queues(arena: Arena, at: int) -> Queues:
    words = arena.words
    return Queues(words[at : at + QUEUE_WORDS], words[words[ROWS_AT] :])


@inline
def push(queues: Queues, packet: int, level: int) -> bool:
    """Append to class `level`; return False, and count a drop, when it does not fit."""
    state = queues.state
    row = packet * ROW_WORDS
    size = packet_bytes(queues.rows[row : row + ROW_WORDS])
    if state[BYTES] + size > state[CAPACITY_BYTES]:
        state[DROPPED] += 1
        return False
    queues.rows[row + NEXT] = -1
    if state[LENGTHS + level] == 0:
        state[HEADS + level] = packet
    else:
        queues.rows[state[TAILS + level] * ROW_WORDS + NEXT] = packet
    state[TAILS + level] = packet
    state[LENGTHS + level] += 1
    state[PACKETS] += 1
    state[BYTES] += size
    state[PEAK_BYTES] = max(state[PEAK_BYTES], state[BYTES])
    return True


@inline
def pop(queues: Queues) -> int:
    """Remove and return the first packet of the highest occupied class; -1 when empty."""
    state = queues.state
    level = CLASSES - 1
    while level >= 0 and state[LENGTHS + level] == 0:
        level -= 1
    if level < 0:
        return -1
    packet = state[HEADS + level]
    row = packet * ROW_WORDS
    state[HEADS + level] = queues.rows[row + NEXT]
    state[LENGTHS + level] -= 1
    state[PACKETS] -= 1
    state[BYTES] -= packet_bytes(queues.rows[row : row + ROW_WORDS])
    return packet
