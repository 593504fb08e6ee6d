"""SwitchML for scapy, as `wire.py` has it; importing this binds it to its UDP ports."""

from __future__ import annotations

from scapy.fields import BitEnumField, BitField, ByteField, FieldListField, IntField, SignedIntField
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from ringleaf.core.units import format_count
from ringleaf.ina.switchml.wire import FIRST_UDP_PORT, RESULT, SIZE_NONE, SIZES, UDP_PORTS, UPDATE

_LANES = {code: lanes for lanes, code in SIZES.items()}


class SwitchMLHeader(Packet):
    """The header."""

    name = "SwitchML"
    fields_desc = [  # noqa: RUF012 - as scapy wants it
        BitEnumField("message", UPDATE, 4, {UPDATE: "update", RESULT: "result"}),
        BitField("unused", 0, 1),
        BitEnumField(
            "size",
            SIZE_NONE,
            3,
            {
                **{code: f"{format_count(lanes, 'lane')}" for code, lanes in _LANES.items()},
                SIZE_NONE: "none",
            },
        ),
        ByteField("job", 1),
        IntField("block", 0),
        BitField("version", 0, 1),
        BitField("slot", 0, 15),
        ByteField("exponent", 0),
        ByteField("tree", 0),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Say that lanes follow, if they do."""
        if self.size in _LANES and len(payload) >= 4 * _LANES[self.size]:
            return SwitchMLLanes
        return super().guess_payload_class(payload)


class SwitchMLLanes(Packet):
    """The values."""

    name = "SwitchML lanes"
    fields_desc = [  # noqa: RUF012
        FieldListField(
            "values",
            [],
            SignedIntField("value", 0),
            count_from=lambda packet: _LANES[packet.underlayer.size],
            max_count=max(SIZES),  # scapy's own limit is 100
        )
    ]


for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + UDP_PORTS):
    # Before what others have bound: scapy takes 0xBEEF, job 15's port, for VXLAN's.
    UDP.payload_guess = [({"dport": _port}, SwitchMLHeader), *UDP.payload_guess]
bind_layers(UDP, SwitchMLHeader, dport=FIRST_UDP_PORT + 1)  # the port of job 1
