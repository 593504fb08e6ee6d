"""Link layers of captures, by tcpdump's LINKTYPE_ numbers, and where their packets have IP.

Source: the registry of link-layer header types of draft-ietf-opsawg-pcaplinktype.
"""

from __future__ import annotations

LINKTYPE_LOOPBACK, LINKTYPE_ETHERNET, LINKTYPE_COOKED_2 = 0, 1, 276

TYPE_AT = {LINKTYPE_ETHERNET: 12, 104: 2, 113: 14, LINKTYPE_COOKED_2: 0}
"""Where headers with an EtherType have it: Ethernet, Cisco's HDLC, and Linux's cooked captures."""

PPP_LINKS = (9, 50)
"""PPP, as ns-3 captures links between two nodes, and with HDLC's two bytes before it (RFC 1662)."""

HEADER_BYTES = (
    {LINKTYPE_ETHERNET: 14, 104: 4, 113: 16, LINKTYPE_COOKED_2: 20, LINKTYPE_LOOPBACK: 4, 108: 4}
    | dict.fromkeys(PPP_LINKS, 2)
    | dict.fromkeys((12, 14, 101, 228, 229), 0)
)
"""The bytes before the network's layer, of each type that is understood; HDLC's are not counted."""

_NAMES = {
    **{0: "BSD loopback", 108: "OpenBSD loopback", 113: "Linux cooked", 276: "Linux cooked v2"},
    **{9: "PPP", 50: "PPP", 51: "PPPoE", 104: "Cisco HDLC", 105: "802.11", 127: "802.11 radiotap"},
    **{12: "raw IP", 14: "raw IP", 101: "raw IP", 228: "raw IPv4", 229: "raw IPv6"},
    **{189: "USB", 220: "USB", 195: "802.15.4", 201: "Bluetooth", 247: "InfiniBand"},
}


def link_name(link: int) -> str:
    """Return the name of a link type in brackets, after a blank; "" if it has none here."""
    return f" ({_NAMES[link]})" if link in _NAMES else ""
