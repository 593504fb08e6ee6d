"""SwitchML on the wire, as `p4/include/switchml_headers.p4` has it; numbers are big-endian.

Ethernet | IPv4 | UDP to port 0xBEE0 + job mod 16 | header, 10 bytes | int32 lanes, or none:

    bits    field
    0:4     message   1 update (worker to root), 2 result (root to workers)
    4:5     unused    0
    5:8     size      1: 64 lanes, 3: 256 lanes, 7: none, the packet is for its exponent
    8:16    job       1 to 255
    16:48   block     (round * slots + slot) mod 2^32, compared as RFC 1982 does
    48:49   version   round mod 2
    49:64   slot
    64:72   exponent  of the block that this slot carries in the next round
    72:80   tree      0, or one of the job's trees (PANAMA); it also aligns the lanes to 4 bytes

A slot's rounds are numbered from 0 through all tensors of a job: each round carries one block
of a tensor, or, before the first block of a float32 tensor, only its exponent. An exponent is
that of the largest magnitude in the block, biased as in IEEE 754 (0: zeros and subnormals,
255: an infinity or NaN); switches replace it by the largest of all workers'.

A job's packets go to its group address, up and down. Switches know the way by job and port.
"""

from __future__ import annotations

from ringleaf.core.headers import UDP_PAYLOAD_AT

# Offsets from the start of the frame.
MESSAGE_AT = UDP_PAYLOAD_AT
JOB_AT = UDP_PAYLOAD_AT + 1
BLOCK_AT = UDP_PAYLOAD_AT + 2
POOL_INDEX_AT = UDP_PAYLOAD_AT + 6
EXPONENT_AT = UDP_PAYLOAD_AT + 8
TREE_AT = UDP_PAYLOAD_AT + 9
VALUES_AT = UDP_PAYLOAD_AT + 10
HEADER_BYTES = VALUES_AT - UDP_PAYLOAD_AT

UPDATE = 1
RESULT = 2
SIZE_NONE = 7
SIZES = {64: 1, 256: 3}
"""Codes of the numbers of lanes that have a program."""

CODES = SIZES | {24: 0, 48: 2}
"""Codes of all numbers of words in packets; 24 are the bits of a vote (`ina/vote`), 48 ternary
elements (`ina/tern`)."""

FIRST_UDP_PORT = 0xBEE0
UDP_PORTS = 16
# The slot shares its 16 bits with the version.
MAX_SLOTS = 1 << 15
VERSION_SHIFT = 15
BLOCK_MASK = 0xFFFFFFFF
SPECIAL = 255
"""The exponent of infinities and NaNs."""

_GROUPS = 239 << 24 | 0xBEE0 << 8  # 239.0.0.0/8 is for local use (RFC 2365)


def udp_port(job: int) -> int:
    """Return the UDP port of a job, source and destination; a host's jobs must not share one."""
    return FIRST_UDP_PORT + job % UDP_PORTS


def group_address(job: int) -> int:
    """Return the IPv4 address that a job's packets go to, 239.190.224.job."""
    return _GROUPS | job
