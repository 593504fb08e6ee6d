"""Ethernet, IPv4 and UDP as compiled code reads and writes them; numbers are big-endian.

Offsets count from the start of the Ethernet header and assume IPv4 without options.
"""

from __future__ import annotations

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline

ETHERTYPE_AT = 12
IP_AT = 14
IP_TOS_AT = 15
IP_LENGTH_AT = 16
IP_TTL_AT = 22
IP_PROTOCOL_AT = 23
IP_CHECKSUM_AT = 24
IP_SRC_AT = 26
IP_DST_AT = 30
UDP_SRC_AT = 34
UDP_DST_AT = 36
UDP_LENGTH_AT = 38
UDP_CHECKSUM_AT = 40
UDP_PAYLOAD_AT = 42

ETHERTYPE_IPV4 = 0x0800
PROTOCOL_UDP = 17
ECN_MASK = 0b11
PRIORITIES = 8  # class selectors
PRIORITY_SHIFT = 5  # of a class selector in the byte that holds DSCP and ECN (RFC 2474, 4.2.2)
ECN_CAPABLE = 0b10  # ECT(0), RFC 3168
ECN_MARKED = 0b11


@inline
def get16(data: Bytes, at: int) -> int:
    """Return the big-endian number of 2 bytes at an offset."""
    return (int(data[at]) << 8) | int(data[at + 1])


@inline
def get32(data: Bytes, at: int) -> int:
    """Return the big-endian number of 4 bytes at an offset."""
    return (get16(data, at) << 16) | get16(data, at + 2)


@inline
def get24(data: Bytes, at: int) -> int:
    """Return the big-endian number of 3 bytes at an offset, such as a PSN."""
    return (int(data[at]) << 16) | get16(data, at + 1)


@inline
def put16(data: Bytes, at: int, value: int) -> None:
    """Write the low 16 bits of a number at an offset, big-endian."""
    data[at] = (value >> 8) & 0xFF
    data[at + 1] = value & 0xFF


@inline
def put24(data: Bytes, at: int, value: int) -> None:
    """Write the low 24 bits of a number at an offset, big-endian."""
    data[at] = (value >> 16) & 0xFF
    put16(data, at + 1, value & 0xFFFF)


@inline
def put32(data: Bytes, at: int, value: int) -> None:
    """Write the low 32 bits of a number at an offset, big-endian."""
    put16(data, at, (value >> 16) & 0xFFFF)
    put16(data, at + 2, value & 0xFFFF)


@inline
def put48(data: Bytes, at: int, value: int) -> None:
    """Write the low 48 bits of a number, as MAC addresses are, at an offset, big-endian."""
    put16(data, at, (value >> 32) & 0xFFFF)
    put32(data, at + 2, value & 0xFFFFFFFF)


@inline
def write_ip_checksum(head: Bytes) -> None:
    """Set the IPv4 header checksum (RFC 1071) of a header without options."""
    put16(head, IP_CHECKSUM_AT, 0)
    total = 0
    for at in range(IP_AT, IP_AT + 20, 2):
        total += get16(head, at)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    put16(head, IP_CHECKSUM_AT, ~total & 0xFFFF)


@inline
def write_priority(head: Bytes, priority: int) -> None:
    """Set the class selector, 0 to 7, and leave ECN as it is; the checksum is up to the caller."""
    head[IP_TOS_AT] = priority << PRIORITY_SHIFT | int(head[IP_TOS_AT]) & ECN_MASK


@inline
def write_udp(
    head: Bytes,
    macs: tuple[int, int],
    addresses: tuple[int, int],
    ports: tuple[int, int],
    payload_bytes: int,
) -> None:
    """Write the 42 bytes up to the UDP payload; each pair is (source, destination).

    TTL 64, ECN-capable, don't fragment, UDP checksum 0 (none, RFC 768).
    """
    put48(head, 0, macs[1])
    put48(head, 6, macs[0])
    put16(head, ETHERTYPE_AT, ETHERTYPE_IPV4)
    head[IP_AT] = 0x45
    head[IP_TOS_AT] = ECN_CAPABLE
    put16(head, IP_LENGTH_AT, 28 + payload_bytes)
    put32(head, 18, 0x00004000)  # identification 0, don't fragment
    head[22] = 64
    head[IP_PROTOCOL_AT] = PROTOCOL_UDP
    put32(head, IP_SRC_AT, addresses[0])
    put32(head, IP_DST_AT, addresses[1])
    put16(head, UDP_SRC_AT, ports[0])
    put16(head, UDP_DST_AT, ports[1])
    put16(head, UDP_LENGTH_AT, 8 + payload_bytes)
    put16(head, UDP_CHECKSUM_AT, 0)
    write_ip_checksum(head)
