"""Hashes over parts that vary by packet: headers that may be missing, varbits, the payload.

Generated code gathers the fields' bits as BMv2's `BufBuilder` does, one after the other, padded
with zeros to whole bytes. The payload, as long as any, follows without being copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleaf.core.arena import Arena, Bytes, Fields, Lanes, Words
from ringleaf.core.compiled import inline
from ringleaf.core.packets import HEAD_LEN, PAYLOAD_AT, PAYLOAD_LEN, TAIL_LEN

_U0 = np.uint64(0)
_U8 = np.uint64(8)
_U56 = np.uint64(56)
_BYTE = np.uint64(0xFF)


class Input(NamedTuple):
    """Bytes: those gathered, then those of the head, the payload and the tail of zeros."""

    gathered: Bytes
    head: Bytes
    memory: Bytes
    head_at: int  # here and below: offsets in the input where the parts begin
    memory_at: int
    tail_at: int
    size: int
    parsed: int  # byte of the head that is the payload's first
    payload: int  # offset in memory


@inline
def put_bits(gathered: Bytes, at: int, value: np.uint64, width: int) -> int:
    """Append the low `width` (at most 64) bits of a value at bit `at`; return where they end."""
    end = at + width
    while at < end:
        room = 8 - at % 8
        count = min(room, end - at)
        bits = np.int64((value >> np.uint64(end - at - count)) & _BYTE) & ((1 << count) - 1)
        # The first bits of a byte overwrite it: the memory has an earlier packet's input.
        kept = 0 if room == 8 else np.int64(gathered[at // 8])
        gathered[at // 8] = kept | (bits << (room - count))
        at += count
    return at


@inline
def put_varbits(gathered: Bytes, at: int, lanes: Lanes, start: int, count: int) -> int:
    """Append the `count` bytes of a varbit field at bit `at`; return where they end."""
    for i in range(count):
        at = put_bits(gathered, at, np.uint64(lanes[start + i]), 8)
    return at


@inline
def input_of(
    arena: Arena, row: Words, head: Bytes, gathered: Bytes, bits: int, parsed: int, most: int
) -> Input:
    """Return an input of so many gathered bits, and of the packet from byte `parsed` on, if >= 0.

    Of these, at most `most` bytes count, if it is not negative.
    """
    head_at = (bits + 7) // 8
    memory_at = head_at + (row[HEAD_LEN] - parsed if parsed >= 0 else 0)
    tail_at = memory_at + (row[PAYLOAD_LEN] if parsed >= 0 else 0)
    size = tail_at + (row[TAIL_LEN] if parsed >= 0 else 0)
    if most >= 0:
        size = min(size, head_at + most)
    payload = row[PAYLOAD_AT]
    return Input(gathered, head, arena.memory, head_at, memory_at, tail_at, size, parsed, payload)


@inline
def _byte(data: Input, i: int) -> np.uint64:
    if i < data.head_at:
        return np.uint64(data.gathered[i])
    if i < data.memory_at:
        return np.uint64(data.head[data.parsed + i - data.head_at])
    if i < data.tail_at:
        return np.uint64(data.memory[data.payload + i - data.memory_at])
    return _U0


@inline
def crc_reflected(steps: Fields, remainder: np.uint64, data: Input) -> np.uint64:
    """Return the remainder after `data`, for CRCs that take the lowest bit of each byte first.

    Args:
        steps: (256,) the remainder of each byte.
        remainder: The initial value, or that of the bytes before.
        data: The bytes.
    """
    for i in range(data.size):
        remainder = (remainder >> _U8) ^ steps[(remainder ^ _byte(data, i)) & _BYTE]
    return remainder


@inline
def crc_upright(steps: Fields, remainder: np.uint64, data: Input) -> np.uint64:
    """Return a CRC that is not reflected; remainders lie in the highest bits."""
    for i in range(data.size):
        remainder = (remainder << _U8) ^ steps[(remainder >> _U56) ^ _byte(data, i)]
    return remainder


@inline
def xor_of(data: Input, size: int) -> np.uint64:
    """Return the exclusive or of the input's words of `size` bytes."""
    total = _U0
    for i in range(data.size):
        total ^= _byte(data, i) << np.uint64(8 * (size - 1 - i % size))
    return total


@inline
def sum_of(data: Input) -> np.uint64:
    """Return the sum of the input's 16-bit words (RFC 1071), not folded."""
    total = _U0
    for i in range(data.size):
        total += _byte(data, i) << (_U0 if i % 2 else _U8)
    return total


@inline
def first_of(data: Input) -> np.uint64:
    """Return the first eight bytes as a number."""
    total = _U0
    for i in range(min(data.size, 8)):
        total = (total << _U8) | _byte(data, i)
    return total
