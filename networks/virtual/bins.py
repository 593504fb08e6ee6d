"""Time series of fixed length: bytes on each line, and bytes in each class of switches' queues.

A bin's width doubles whenever time runs past the last one, and two become one.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.arena import Words
from ringleaf.compiled import inline
from ringleaf.disciplines import CLASSES
from ringleaf.networks.virtual.state import port_row
from ringleaf.switches.engine.queues import CLASS_BYTES


@inline
def count_bin(words: Words, at: int, port: int, owner: int, now_ps: int, size: int) -> None:
    """Add the bytes of an owner that go on a line to the current bin."""
    bins = words[at + s.BINS]
    rows = words[at + s.PORTS] * words[at + s.OWNERS]
    since_ps = now_ps - words[at + s.BINS_FROM_PS]
    while since_ps >= bins * words[at + s.BIN_PS]:
        start = words[at + s.BINS_AT]
        for first in range(start, start + rows * bins, bins):
            for i in range(bins // 2):
                words[first + i] = words[first + 2 * i] + words[first + 2 * i + 1]
            for i in range(bins // 2, bins):
                words[first + i] = 0
        words[at + s.BIN_PS] *= 2
    series = words[at + s.BINS_AT] + (port * words[at + s.OWNERS] + owner) * bins
    words[series + since_ps // words[at + s.BIN_PS]] += size


@inline
def note_queues(words: Words, at: int, port: int, now_ps: int) -> None:
    """Keep the most that each class of a port's queues has held in the current bin."""
    bins = words[at + s.BINS]
    since_ps = now_ps - words[at + s.BINS_FROM_PS]
    start = words[at + s.QUEUE_BINS_AT]
    while since_ps >= bins * words[at + s.QUEUE_BIN_PS]:
        rows = words[at + s.PORTS] * CLASSES
        for first in range(start, start + rows * bins, bins):
            for i in range(bins // 2):
                words[first + i] = max(words[first + 2 * i], words[first + 2 * i + 1])
            for i in range(bins // 2, bins):
                words[first + i] = 0
        words[at + s.QUEUE_BIN_PS] *= 2
    held = words[port_row(words, at, port) + s.QUEUES_AT] + CLASS_BYTES
    cell = start + port * CLASSES * bins + since_ps // words[at + s.QUEUE_BIN_PS]
    for level in range(CLASSES):
        if (
            words[held + level] > 0
        ):  # of 8 cells, each in a cache line of its own, most need no access
            words[cell + level * bins] = max(words[cell + level * bins], words[held + level])
