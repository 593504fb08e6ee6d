"""Data that lands in registered memory: it replaces the elements there, or is added to them.

What would only be a copy of memory that does not change any more need not land. So a claim may say
where the data of its message should lie as its packets come, and is told at the first packet of
which that is not so.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import call_handler, copy_items, inline
from ringleaf.core.packets import HEAD_LEN, PAYLOAD_AT, Packet
from ringleaf.core.views import window

COPY, FLOAT32, INT32 = range(3)
"""How data lands: as it is, or added to elements of a type, as torch adds them."""

ASKED = 3
"""Where, and how, is asked for when the message begins to come: its receive has a claim.

Above that it is the address of a claim whose data stays where it is."""

# A claim: words of the arena.
CHOOSE = 0  # address of a handler(arena, claim, what, 0), which returns how, and sets the target
TARGET = 1
CLAIM_WORDS = 2
SHIFT = 2  # only if data may stay where it is: how far that is behind the target; 0: no more

# What a handler is asked for.
BEGIN = 0  # where the message lands that begins to come
LAND = 1  # have the target hold what did not land, as data has come from elsewhere

ELEMENT_BYTES = 4  # of both types


@inline
def choose_landing(arena: Arena, claim: int) -> tuple[int, int]:
    """Return where and how the data of the message that gets a claim lands."""
    how = call_handler(arena.words[claim + CHOOSE], arena, claim, BEGIN, 0)
    return arena.words[claim + TARGET], how


@inline
def land(arena: Arena, how: int, target: int, source: Bytes, at: int, size_bytes: int) -> None:
    """Let data from `source`, from `at` on, land at a target that does not overlap it.

    What is added are whole elements.
    """
    if how == COPY:
        copy_items(arena.memory, target, source, at, size_bytes)
        return
    a = window(arena.memory, target, size_bytes)
    b = window(source, at, size_bytes)
    if how == FLOAT32:
        a_float32, b_float32 = a.view(np.float32), b.view(np.float32)
        for i in range(size_bytes >> 2):
            a_float32[i] += b_float32[i]
    else:
        a_int32, b_int32 = a.view(np.int32), b.view(np.int32)
        for i in range(size_bytes >> 2):
            a_int32[i] += b_int32[i]


@inline
def land_packet(
    arena: Arena, view: Packet, start: int, how: int, target: int, size_bytes: int
) -> None:
    """Let a packet's data, from `start` in its head on, land; it is the packet's last use.

    The data may lie in the head, or in the payload, or begin in one and go on in the other, where
    an element may be in both.
    """
    head, payload = view.head, view.row[PAYLOAD_AT]
    in_head = min(size_bytes, view.row[HEAD_LEN] - start)
    if how > ASKED:
        claim = how
        shift = arena.words[claim + SHIFT]
        if shift and in_head <= 0 and payload == target + shift:
            return
        how = call_handler(arena.words[claim + CHOOSE], arena, claim, LAND, 0) if shift else COPY
    split = 0 if how == COPY else in_head % ELEMENT_BYTES
    done = in_head - split
    land(arena, how, target, head, start, done)
    if split > 0:
        for i in range(ELEMENT_BYTES):  # the start of the data is not needed any more
            byte = head[start + done + i]
            if i >= split:
                byte = arena.memory[payload + i - split]
            head[start + i] = byte
        land(arena, how, target + done, head, start, ELEMENT_BYTES)
        payload += ELEMENT_BYTES - split
        done += ELEMENT_BYTES
    land(arena, how, target + done, arena.memory, payload, size_bytes - done)
