"""Bytes of varbit fields: each lies in a lane, the most significant first."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Bytes, Lanes
from ringleaf.core.compiled import inline


@inline
def read_varbits(lanes: Lanes, start: int, head: Bytes, at: int, shift: int, count: int) -> None:
    """Read `count` bytes that begin `shift` (0 to 7) bits after the head's byte `at`."""
    for i in range(count):
        value = np.int64(head[at + i]) << shift
        if shift:
            value |= np.int64(head[at + i + 1]) >> (8 - shift)
        lanes[start + i] = value & 0xFF


@inline
def write_varbits(lanes: Lanes, start: int, head: Bytes, at: int, shift: int, count: int) -> None:
    """Write `count` bytes from `shift` bits after the head's byte `at` on."""
    for i in range(count):
        value = np.int64(lanes[start + i])
        if shift:
            kept = np.int64(head[at + i]) & (0xFF00 >> shift)
            head[at + i] = (kept | (value >> shift)) & 0xFF
            rest = np.int64(head[at + i + 1]) & (0xFF >> shift)
            head[at + i + 1] = (rest | (value << (8 - shift))) & 0xFF
        else:
            head[at + i] = value


@inline
def copy_varbits(lanes: Lanes, to: int, start: int, count: int) -> None:
    """Copy `count` lanes of varbit fields, one byte each."""
    for i in range(count):
        lanes[to + i] = lanes[start + i]


@inline
def same_varbits(lanes: Lanes, first: int, count: int, second: int, other_count: int) -> bool:
    """Return whether two varbit values are equal numbers; lengths don't count, as in BMv2."""
    for i in range(max(count, other_count)):  # from the last byte
        a = np.int64(lanes[first + count - 1 - i]) if i < count else 0
        b = np.int64(lanes[second + other_count - 1 - i]) if i < other_count else 0
        if a != b:
            return False
    return True
