"""Time series of fixed length: bytes on each line, and bytes in each class of switches' queues.

A bin's width doubles whenever time runs past the last one, and two become one. What all ports have
in a bin is one row, as they count in the same one: so the row stays in the processor's caches.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.core.disciplines import CLASSES
from ringleaf.networks.virtual.state import port_row
from ringleaf.switches.engine.queues import CLASS_BYTES


@inline
def count_bin(words: Words, at: int, port: int, owner: int, now_ps: int, size: int) -> None:
    """Add the bytes of an owner that go on a line to the current bin."""
    row = find_bin(words, at, now_ps)
    words[row + port * words[at + s.OWNERS] + owner] += size


@inline
def find_bin(words: Words, at: int, now_ps: int) -> int:
    """Return the place of the current bin's row, after making bins as wide as it takes."""
    bins = words[at + s.BINS]
    rows = words[at + s.PORTS] * words[at + s.OWNERS]
    start = words[at + s.BINS_AT]
    since_ps = now_ps - words[at + s.BINS_FROM_PS]
    while since_ps >= bins * words[at + s.BIN_PS]:
        for to in range(start, start + bins // 2 * rows):
            one = to + (to - start) // rows * rows
            words[to] = words[one] + words[one + rows]
        for to in range(start + bins // 2 * rows, start + bins * rows):
            words[to] = 0
        words[at + s.BIN_PS] *= 2
    return start + since_ps // words[at + s.BIN_PS] * rows


@inline
def held_at(words: Words, first: int) -> int:
    """Return what a port's classes hold together; `first` is the place of class 0."""
    total = 0
    for level in range(CLASSES):
        total += words[first + level]
    return total


@inline
def note_queues(words: Words, at: int, port: int, now_ps: int) -> None:
    """Keep what each class of a port held when the port held most in the current bin.

    So the classes of a bin are of one moment, and their sum is a depth that the queue had.
    """
    bins, rows = words[at + s.BINS], words[at + s.PORTS] * CLASSES
    since_ps = now_ps - words[at + s.BINS_FROM_PS]
    start = words[at + s.QUEUE_BINS_AT]
    while since_ps >= bins * words[at + s.QUEUE_BIN_PS]:
        for to in range(start, start + bins // 2 * rows, CLASSES):
            one = to + (to - start) // rows * rows
            if held_at(words, one + rows) > held_at(words, one):
                one += rows
            for level in range(CLASSES):
                words[to + level] = words[one + level]
        for to in range(start + bins // 2 * rows, start + bins * rows):
            words[to] = 0
        words[at + s.QUEUE_BIN_PS] *= 2
    classes_at = words[port_row(words, at, port) + s.QUEUES_AT] + CLASS_BYTES
    cell = start + since_ps // words[at + s.QUEUE_BIN_PS] * rows + port * CLASSES
    if held_at(words, classes_at) > held_at(words, cell):
        for level in range(CLASSES):
            words[cell + level] = words[classes_at + level]
