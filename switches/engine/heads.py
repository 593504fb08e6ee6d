"""Bytes of a packet's head: pulled in from the payload, moved, summed, read as lanes."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes, Lanes, Words
from ringleaf.core.compiled import copy_items, inline
from ringleaf.core.packets import HEAD_LEN, PAYLOAD_AT, PAYLOAD_LEN, TAIL_LEN
from ringleaf.core.stack import on_stack

_U8 = np.uint64(8)


@inline
def pull(arena: Arena, row: Words, head: Bytes, size: int) -> int:
    """Move bytes from the payload to the head until it has `size`; return how many it has."""
    have = row[HEAD_LEN]
    assert size <= head.size, "the pool's heads are shorter than the program's headers"
    count = min(size - have, row[PAYLOAD_LEN])
    copy_items(head, have, arena.memory, row[PAYLOAD_AT], count)
    row[PAYLOAD_AT] += count
    row[PAYLOAD_LEN] -= count
    have += count
    if row[PAYLOAD_LEN] == 0:
        zeros = min(size - have, row[TAIL_LEN])
        for i in range(zeros):
            head[have + i] = 0
        row[TAIL_LEN] -= zeros
        have += zeros
    row[HEAD_LEN] = have
    return have


@inline
def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, count: int) -> None:
    """Copy `count` bytes between two buffers, such as the head and the switch's scratch memory."""
    for i in range(count):
        target[to + i] = source[start + i]


@inline
def move_rest(head: Bytes, length: int, old: int, new: int) -> int:
    """Move bytes behind the parsed headers from `old` to `new`; return the head's new length."""
    count = length - old
    assert new + count <= head.size, "no room in the head for the headers that were added"
    if new < old:
        for i in range(count):
            head[new + i] = head[old + i]
    elif new > old:
        for i in range(count - 1, -1, -1):
            head[new + i] = head[old + i]
    return new + count


@inline
def cut(row: Words, length: int) -> None:
    """Shorten the packet to `length` bytes, if it is longer."""
    row[HEAD_LEN] = min(row[HEAD_LEN], length)
    row[PAYLOAD_LEN] = min(row[PAYLOAD_LEN], length - row[HEAD_LEN])
    row[TAIL_LEN] = min(row[TAIL_LEN], length - row[HEAD_LEN] - row[PAYLOAD_LEN])


@inline
def sum_from(arena: Arena, row: Words, head: Bytes, start: int, most: int, bits: int) -> np.uint64:
    """Add up the packet's 16-bit words from head byte `start` on (RFC 1071), not folded.

    They are at most `most` bytes, if it is not negative, and continue an input of `bits` bits,
    padded to whole bytes.
    """
    end, size = row[HEAD_LEN], row[PAYLOAD_LEN]
    if most >= 0:
        end = min(end, start + most)
        size = min(size, start + most - end)
    total = np.uint64(0)
    shift = _U8 if ((bits + 7) // 8) % 2 == 0 else np.uint64(0)
    for i in range(start, end):
        total += np.uint64(head[i]) << shift
        shift ^= _U8
    payload = row[PAYLOAD_AT]
    for i in range(payload, payload + size):
        total += np.uint64(arena.memory[i]) << shift
        shift ^= _U8
    return total


@inline
def write_word(head: Bytes, at: int, start: int, width: int, word: np.uint64) -> None:
    """Write the low `width` (at most 64) bits from bit `start` after byte `at` on."""
    end = start + width
    while start < end:
        count = min(8 - start % 8, end - start)
        spare = 8 - start % 8 - count
        mask = ((1 << count) - 1) << spare
        bits = np.int64((word >> np.uint64(end - start - count)) & np.uint64(0xFF)) << spare
        i = at + start // 8
        head[i] = (np.int64(head[i]) & ~mask & 0xFF) | (bits & mask)
        start += count


@inline
def write_words(head: Bytes, at: int, start: int, width: int, words: tuple[np.uint64, ...]) -> None:
    """Write the low `width` bits of a value from bit `start` after byte `at` on."""
    value = on_stack(words)
    end = start + width
    for i in range((width + 63) // 64):
        count = min(64, width - 64 * i)
        write_word(head, at, end - 64 * i - count, count, value[i])


@inline
def read_lanes_16(lanes: Lanes, source: Bytes) -> None:
    """Read big-endian numbers of 2 bytes."""
    for i in range(lanes.size):
        lanes[i] = (np.uint32(source[2 * i]) << 8) | np.uint32(source[2 * i + 1])


@inline
def write_lanes_16(lanes: Lanes, target: Bytes) -> None:
    """Write big-endian numbers of 2 bytes."""
    for i in range(lanes.size):
        target[2 * i] = (lanes[i] >> 8) & 0xFF
        target[2 * i + 1] = lanes[i] & 0xFF


@inline
def read_lanes_8(lanes: Lanes, source: Bytes) -> None:
    """Read lanes from bytes, one each."""
    for i in range(lanes.size):
        lanes[i] = source[i]


@inline
def write_lanes_8(lanes: Lanes, target: Bytes) -> None:
    """Write the low 8 bits of lanes to bytes, one each."""
    for i in range(lanes.size):
        target[i] = lanes[i] & 0xFF
