"""The bytes in a switch's queues by the port and class that they came by, and their thresholds.

Copies of one packet for several ports are charged to the port that it came by once, as in a switch
with shared memory. Those in queues form a ring, and the last that leaves takes the charge along.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline
from ringleaf.core.packets import AFTER, row_of
from ringleaf.networks.virtual.pfc.frames import tell
from ringleaf.networks.virtual.pfc.layout import (
    ASKED,
    HEADROOM,
    HELD,
    PEAKS,
    XOFF,
    XON,
    pause_row,
)
from ringleaf.networks.virtual.state import PFC_AT


@inline
def has_room(words: Words, at: int, port: int, level: int, size: int) -> bool:
    """Return whether a packet that came by a port fits below XOFF and the headroom."""
    mine = pause_row(words, at, port)
    most = words[words[at + PFC_AT] + XOFF] + words[mine + HEADROOM]
    return bool(words[mine + HELD + level] + size <= most)


@inline
def charge(arena: Arena, at: int, port: int, level: int, size: int, now_ps: int) -> None:
    """Count a packet that has joined a queue; above XOFF, ask for a pause."""
    words = arena.words
    mine = pause_row(words, at, port)
    queued = words[mine + HELD + level] + size
    words[mine + HELD + level] = queued
    words[mine + PEAKS + level] = max(words[mine + PEAKS + level], queued)
    if queued > words[words[at + PFC_AT] + XOFF] and not words[mine + ASKED] >> level & 1:
        words[mine + ASKED] |= 1 << level
        tell(arena, at, port, level, now_ps)


@inline
def discharge(arena: Arena, at: int, port: int, level: int, size: int, now_ps: int) -> None:
    """Count a packet that has left its queue; at XON, end the pause."""
    words = arena.words
    mine = pause_row(words, at, port)
    words[mine + HELD + level] -= size
    if words[mine + ASKED] >> level & 1 and (
        words[mine + HELD + level] <= words[words[at + PFC_AT] + XON]
    ):
        words[mine + ASKED] &= ~(1 << level)
        tell(arena, at, port, level, now_ps)


@inline
def join_ring(words: Words, packet: int, copy: int) -> None:
    """Put a queued packet in the ring of a copy, or in one of its own if that is -1."""
    row = row_of(words, packet)
    if copy < 0:
        words[row + AFTER] = packet
    else:
        words[row + AFTER] = words[row_of(words, copy) + AFTER]
        words[row_of(words, copy) + AFTER] = packet


@inline
def leave_ring(words: Words, packet: int) -> bool:
    """Take a packet out of its ring; return whether it was the last."""
    following = words[row_of(words, packet) + AFTER]
    if following == packet:
        return True
    before = following
    while words[row_of(words, before) + AFTER] != packet:
        before = words[row_of(words, before) + AFTER]
    words[row_of(words, before) + AFTER] = following
    return False
