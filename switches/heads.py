"""Bytes of a packet's head: pulled in from the payload, moved, summed, read as lanes."""

from __future__ import annotations

import numpy as np

from ringleaf.arena import Arena, Bytes, Lanes
from ringleaf.compiled import inline
from ringleaf.packets import HEAD_LEN, PAYLOAD_AT, PAYLOAD_LEN, TAIL_LEN, open_packet

_U8 = np.uint64(8)


@inline
def pull(arena: Arena, packet: int, wanted: int) -> int:
    """Move bytes from the payload to the head until it has `wanted`; return what it has."""
    view = open_packet(arena, packet)
    row, head = view.row, view.head
    have = row[HEAD_LEN]
    assert wanted <= head.size, "the pool's heads are shorter than the program's headers"
    count = min(wanted - have, row[PAYLOAD_LEN])
    start = row[PAYLOAD_AT]
    for i in range(count):
        head[have + i] = arena.memory[start + i]
    row[PAYLOAD_AT] = start + count
    row[PAYLOAD_LEN] -= count
    have += count
    if row[PAYLOAD_LEN] == 0:
        zeros = min(wanted - have, row[TAIL_LEN])
        for i in range(zeros):
            head[have + i] = 0
        row[TAIL_LEN] -= zeros
        have += zeros
    row[HEAD_LEN] = have
    return have


@inline
def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, count: int) -> None:
    for i in range(count):
        target[to + i] = source[start + i]


@inline
def move_rest(head: Bytes, length: int, old: int, new: int) -> int:
    """Move what follows the parsed headers from `old` to `new`; return the head's new length."""
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
def cut(arena: Arena, packet: int, length: int) -> None:
    """Shorten the packet to `length` bytes, if it is longer."""
    row = open_packet(arena, packet).row
    row[HEAD_LEN] = min(row[HEAD_LEN], length)
    row[PAYLOAD_LEN] = min(row[PAYLOAD_LEN], length - row[HEAD_LEN])
    row[TAIL_LEN] = min(row[TAIL_LEN], length - row[HEAD_LEN] - row[PAYLOAD_LEN])


@inline
def sum_from(arena: Arena, packet: int, start: int, bits: int) -> np.uint64:
    """Add up the packet's 16-bit words from head byte `start` on (RFC 1071), not folded.

    They continue an input of `bits` bits, padded to whole bytes.
    """
    view = open_packet(arena, packet)
    row = view.row
    total = np.uint64(0)
    shift = _U8 if ((bits + 7) // 8) % 2 == 0 else np.uint64(0)
    for i in range(start, row[HEAD_LEN]):
        total += np.uint64(view.head[i]) << shift
        shift ^= _U8
    payload = row[PAYLOAD_AT]
    for i in range(payload, payload + row[PAYLOAD_LEN]):
        total += np.uint64(arena.memory[i]) << shift
        shift ^= _U8
    return total


@inline
def read_lanes_32(lanes: Lanes, head: Bytes, start: int, count: int) -> None:
    """Read big-endian numbers of 4 bytes."""
    source = head[start : start + 4 * count]
    for i in range(count):
        lanes[i] = (
            (np.uint32(source[4 * i]) << 24)
            | (np.uint32(source[4 * i + 1]) << 16)
            | (np.uint32(source[4 * i + 2]) << 8)
            | np.uint32(source[4 * i + 3])
        )


@inline
def read_lanes_16(lanes: Lanes, head: Bytes, start: int, count: int) -> None:
    """Read big-endian numbers of 2 bytes."""
    source = head[start : start + 2 * count]
    for i in range(count):
        lanes[i] = (np.uint32(source[2 * i]) << 8) | np.uint32(source[2 * i + 1])


@inline
def read_lanes_8(lanes: Lanes, head: Bytes, start: int, count: int) -> None:
    source = head[start : start + count]
    for i in range(count):
        lanes[i] = source[i]


@inline
def write_lanes_32(head: Bytes, start: int, lanes: Lanes, count: int) -> None:
    """Write big-endian numbers of 4 bytes."""
    target = head[start : start + 4 * count]
    for i in range(count):
        value = lanes[i]
        target[4 * i] = value >> 24
        target[4 * i + 1] = (value >> 16) & 0xFF
        target[4 * i + 2] = (value >> 8) & 0xFF
        target[4 * i + 3] = value & 0xFF


@inline
def write_lanes_16(head: Bytes, start: int, lanes: Lanes, count: int) -> None:
    """Write big-endian numbers of 2 bytes."""
    target = head[start : start + 2 * count]
    for i in range(count):
        value = lanes[i]
        target[2 * i] = (value >> 8) & 0xFF
        target[2 * i + 1] = value & 0xFF


@inline
def write_lanes_8(head: Bytes, start: int, lanes: Lanes, count: int) -> None:
    target = head[start : start + count]
    for i in range(count):
        target[i] = lanes[i] & 0xFF
