"""RoCEv2 for scapy, as defined in `wire.py`; importing this module binds it to its UDP port.

scapy's own (contrib.roce) moves the ICRC to the front before it takes a packet apart, so that
fields are not where they seem to be.
"""

from __future__ import annotations

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    IntField,
    PacketListField,
    ShortField,
    StrField,
    ThreeBytesField,
    XIntField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from ringleaf.hosts.congestion.telemetry import MOST_HOPS
from ringleaf.hosts.rc.wire import (
    ACKNOWLEDGE,
    ICRC_BYTES,
    PROBE,
    SEND_FIRST,
    SEND_LAST,
    SEND_MIDDLE,
    SEND_ONLY,
    TELEMETRY,
    UDP_PORT,
    telemetry_bytes,
)

_OPCODES = {
    SEND_FIRST: "SEND first",
    SEND_MIDDLE: "SEND middle",
    SEND_LAST: "SEND last",
    SEND_ONLY: "SEND only",
    ACKNOWLEDGE: "acknowledge",
    PROBE: "probe",
    TELEMETRY | SEND_FIRST: "SEND first, telemetry",
    TELEMETRY | SEND_MIDDLE: "SEND middle, telemetry",
    TELEMETRY | SEND_LAST: "SEND last, telemetry",
    TELEMETRY | SEND_ONLY: "SEND only, telemetry",
}


class BTH(Packet):
    """The base transport header."""

    name = "BTH"
    fields_desc = [  # noqa: RUF012 - as scapy wants it
        ByteEnumField("opcode", SEND_ONLY, _OPCODES),
        BitField("solicited", 0, 1),
        BitField("migreq", 0, 1),
        BitField("padcount", 0, 2),
        BitField("version", 0, 4),
        ShortField("pkey", 0xFFFF),
        BitField("fecn", 0, 1),
        BitField("becn", 0, 1),
        BitField("resv6", 0, 6),
        ThreeBytesField("dqpn", 0),
        BitField("ackreq", 0, 1),
        BitField("resv7", 0, 7),
        ThreeBytesField("psn", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the layer that follows by opcode, and by whether more than an ICRC is left."""
        if self.opcode == ACKNOWLEDGE:
            return AETH
        if telemetry_bytes(self.opcode):
            return Telemetry
        return RoceData if len(payload) > ICRC_BYTES else ICRC


class AETH(Packet):
    """The acknowledgement header."""

    name = "AETH"
    fields_desc = [  # noqa: RUF012
        BitField("reserved", 0, 1),
        BitEnumField("kind", 0, 2, {0: "ACK", 1: "RNR NAK", 3: "NAK"}),
        BitField("value", 0, 5),
        ThreeBytesField("msn", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return telemetry if more than an ICRC is left: acknowledgements carry no data."""
        return Telemetry if len(payload) > ICRC_BYTES else ICRC


class HopTelemetry(Packet):
    """A switch's telemetry about the port that the packet left by."""

    name = "hop"
    fields_desc = [  # noqa: RUF012
        IntField("rate_kbps", 0),
        IntField("sent_bytes", 0),
        IntField("queue_packets", 0),
        IntField("time_us", 0),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return all bytes after the hop as the next one's, as scapy wants it of list items."""
        return b"", s


class Telemetry(Packet):
    """Telemetry: room for hops, of which so many have written, newest first."""

    name = "telemetry"
    fields_desc = [  # noqa: RUF012
        ByteField("hops", 0),
        ByteField("reserved", 0),
        PacketListField("hop", [], HopTelemetry, count_from=lambda _: MOST_HOPS),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the data layer, or the ICRC where only that is left, as in acknowledgements."""
        return RoceData if len(payload) > ICRC_BYTES else ICRC


class _AllButIcrc(StrField):
    def getfield(self, pkt: Packet, s: bytes) -> tuple[bytes, bytes]:
        """Return the ICRC as the rest, and all before it as the field's value."""
        end = max(len(s) - ICRC_BYTES, 0)
        return s[end:], s[:end]


class RoceData(Packet):
    """The payload of a message."""

    name = "data"
    fields_desc = [_AllButIcrc("load", b"")]  # noqa: RUF012

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the ICRC, which always ends the packet."""
        return ICRC


class ICRC(Packet):
    """The invariant CRC: 0, but in packets that were damaged (`icrc.py`)."""

    name = "ICRC"
    fields_desc = [XIntField("icrc", 0)]  # noqa: RUF012


# Before scapy's own, which may have been loaded first.
UDP.payload_guess = [({"dport": UDP_PORT}, BTH), *UDP.payload_guess]
bind_layers(UDP, BTH, dport=UDP_PORT)
