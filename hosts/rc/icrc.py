"""The ICRC of RoCEv2: a CRC-32 of all of a packet that switches leave as it is.

A packet without a wrong bit would pass the check whatever its bytes are, and computing them costs
as much as all the rest. So senders leave it out, and write 0; whatever damages a packet on its way
writes the one that it would have had (`networks/virtual/damage.py`), and receivers check what is
not 0. As UDP's checksum (RFC 768), an ICRC that comes to 0 is written as all ones.

Up to three wrong bits are always found in packets of up to 11 KB, and others but for one in 2^32
(Koopman, "32-Bit Cyclic Redundancy Codes for Internet Applications", DSN 2002, table 1).

Source:
    InfiniBand Architecture vol. 1, 7.8.1, and annex A17 for what RoCEv2 takes for ones.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.headers import (
    IP_AT,
    IP_CHECKSUM_AT,
    IP_TOS_AT,
    IP_TTL_AT,
    UDP_CHECKSUM_AT,
    UDP_LENGTH_AT,
    UDP_PAYLOAD_AT,
    get16,
)
from ringleaf.core.packets import HEAD_LEN, Packet
from ringleaf.hosts.rc.wire import ICRC_BYTES, NOTICES_AT

POLYNOMIAL = 0xEDB88320  # Ethernet's, its bits reversed
ONES = 0xFFFFFFFF
LINK_HEADER_BYTES = 8  # InfiniBand's own, which RoCEv2 does not have, as ones


def _table() -> list[int]:
    """Return the remainder of each byte."""
    rows = list(range(256))
    for _ in range(8):
        rows = [row >> 1 ^ (POLYNOMIAL if row & 1 else 0) for row in rows]
    return rows


REMAINDERS = np.array(_table(), np.int64)


@inline
def icrc_end(head: Bytes) -> int:
    """Return where a packet ends by its UDP header, ICRC included; short frames are padded."""
    return UDP_PAYLOAD_AT - 8 + get16(head, UDP_LENGTH_AT)


@inline
def is_invariant(at: int) -> bool:
    """Return whether the ICRC covers the byte at an offset; what may change counts as ones."""
    is_checksum = at >> 1 == IP_CHECKSUM_AT >> 1 or at >> 1 == UDP_CHECKSUM_AT >> 1
    return not (is_checksum or at in (IP_TOS_AT, IP_TTL_AT, NOTICES_AT))


@inline
def icrc_of(head: Bytes, end: int) -> int:
    """Return the ICRC of a packet that lies in a head up to there, its ICRC included."""
    crc = ONES
    for at in range(IP_AT - LINK_HEADER_BYTES, end - ICRC_BYTES):
        byte = int(head[at]) if at >= IP_AT and is_invariant(at) else 0xFF
        crc = crc >> 8 ^ REMAINDERS[(crc ^ byte) & 0xFF]
    crc ^= ONES
    return crc if crc != 0 else ONES


@inline
def get_icrc(head: Bytes, end: int) -> int:
    """Return the ICRC that a packet carries, whose lowest byte comes first; 0: none."""
    low = get16(head, end - 4)
    high = get16(head, end - 2)
    return (low >> 8) | (low & 0xFF) << 8 | (high >> 8) << 16 | (high & 0xFF) << 24


@inline
def put_icrc(head: Bytes, end: int, icrc: int) -> None:
    """Write the ICRC of a packet."""
    for i in range(ICRC_BYTES):
        head[end - ICRC_BYTES + i] = icrc >> 8 * i & 0xFF


@inline
def is_damaged(view: Packet) -> bool:
    """Return whether a packet has an ICRC, and it is wrong."""
    end = icrc_end(view.head)
    # One that nothing has damaged has its ICRC, of zeros, behind the head.
    if view.row[HEAD_LEN] < end:
        return False
    icrc = get_icrc(view.head, end)
    return icrc != 0 and icrc != icrc_of(view.head, end)
