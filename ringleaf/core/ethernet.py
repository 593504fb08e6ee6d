"""Ethernet's own: what frames take on the line, and addresses of groups (IEEE 802.3, RFC 1112)."""

from __future__ import annotations

MIN_FRAME_BYTES = 60  # without FCS; shorter ones are padded on the line
LINE_OVERHEAD_BYTES = 24  # preamble 8, FCS 4, gap 12
LONGEST_PACKET = 10_000  # bytes, that our switches take: a jumbo frame

_GROUP_MACS = 0x01005E << 24  # RFC 1112, 6.4


def group_mac(group_address: int) -> int:
    """Return the Ethernet address of a group's IPv4 address (RFC 1112, 6.4)."""
    return _GROUP_MACS | group_address & 0x7FFFFF
