"""Blocks of values: found, copied out of packets, added."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import copy_items, inline
from ringleaf.core.packets import HEAD_LEN, PAYLOAD_AT, PAYLOAD_LEN, Packet
from ringleaf.core.views import window
from ringleaf.ina.tensors import FLOAT32


@inline
def is_zero(memory: Bytes, start: int, end: int) -> bool:
    """Return whether no bit is set: -0.0 and NaN are not zero."""
    words = window(memory, start, end - start).view(np.uint32)
    bits = np.uint32(0)
    for i in range(words.size):
        bits |= words[i]
    return bool(bits == 0)


@inline
def copy_values(
    arena: Arena, view: Packet, first_at: int, offset: int, target: int, count: int
) -> None:
    """Copy bytes of a packet from `first_at` + `offset` on to memory.

    They may lie in the head, or in the payload, or begin in one and go on in the other.
    """
    start = first_at + offset
    head_len = view.row[HEAD_LEN]
    in_head = min(max(head_len - start, 0), count)
    copy_items(arena.memory, target, view.head, start, in_head)
    payload = view.row[PAYLOAD_AT] + max(start - head_len, 0)
    copy_items(arena.memory, target + in_head, arena.memory, payload, count - in_head)


@inline
def bytes_from(view: Packet, at: int) -> int:
    """Return the number of bytes that a packet has from an offset on."""
    return int(view.row[HEAD_LEN] + view.row[PAYLOAD_LEN] - at)


@inline
def clear(memory: Bytes, start: int, end: int) -> None:
    """Set the bytes from `start` to `end`, exclusive, to zero."""
    for i in range(start, end):
        memory[i] = 0


@inline
def add_block(memory: Bytes, target: int, source: int, count_bytes: int, dtype: int) -> None:
    """Add values to others: float32 rounded to nearest, or int32 that wraps around."""
    if dtype == FLOAT32:
        sums = window(memory, target, count_bytes).view(np.float32)
        terms = window(memory, source, count_bytes).view(np.float32)
        for i in range(sums.size):
            sums[i] = sums[i] + terms[i]
    else:
        whole = window(memory, target, count_bytes).view(np.uint32)
        parts = window(memory, source, count_bytes).view(np.uint32)
        for i in range(whole.size):
            whole[i] = np.uint32((np.int64(whole[i]) + np.int64(parts[i])) & 0xFFFFFFFF)
