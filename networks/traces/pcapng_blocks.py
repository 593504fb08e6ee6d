"""Enhanced packet blocks of pcapng, written in bulk: captures hold millions of packets."""

from __future__ import annotations

from ringleaf.core import native_types as types
from ringleaf.core.arena import Bytes, Lanes, Words
from ringleaf.core.compiled import compiled, copy_items

ENHANCED_PACKET = 6
HEADER_BYTES = 28  # before a packet's bytes
BLOCK_BYTES = HEADER_BYTES + 4  # and the length, once more, after them
TIME_NS, INTERFACE, START, SIZE, AT = range(5)
ROW_WORDS = 5
_LOW = 0xFFFFFFFF

_BYTES, _LANES, _WORDS = types.uint8[::1], types.uint32[::1], types.int64[::1]


@compiled(types.void(_BYTES, _LANES, _BYTES, _WORDS))
def fill_blocks(target: Bytes, lanes: Lanes, data: Bytes, rows: Words) -> None:
    """Write a block per row (TIME_NS, INTERFACE, START, SIZE, AT) into zeroed memory.

    Args:
        target: The blocks' memory; AT is a block's place in it, a multiple of 4.
        lanes: The same memory as little-endian uint32.
        data: The packets' bytes, from START on.
        rows: Flat, ROW_WORDS per packet.
    """
    for i in range(rows.size // ROW_WORDS):
        row = rows[i * ROW_WORDS : (i + 1) * ROW_WORDS]
        size = row[SIZE]
        block = BLOCK_BYTES + (size + 3) // 4 * 4
        lane = row[AT] // 4
        lanes[lane] = ENHANCED_PACKET
        lanes[lane + 1] = block
        lanes[lane + 2] = row[INTERFACE]
        lanes[lane + 3] = row[TIME_NS] >> 32
        lanes[lane + 4] = row[TIME_NS] & _LOW
        lanes[lane + 5] = size
        lanes[lane + 6] = size
        lanes[lane + block // 4 - 1] = block
        copy_items(target, row[AT] + HEADER_BYTES, data, row[START], size)
