"""ATP for scapy, as `wire.py` has it; importing this binds it to its UDP ports."""

from __future__ import annotations

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    FieldListField,
    IEEEFloatField,
    IntField,
    ShortField,
    SignedIntField,
    XLongField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_bottom_up, bind_layers

from ringleaf.core.units import format_count
from ringleaf.ina.atp.wire import (
    FIRST_UDP_PORT,
    GRADIENT,
    NO_PROPOSAL,
    PARAMETER,
    REQUEST,
    SIZE_NONE,
    SIZES,
    UDP_PORTS,
)

_LANES = {code: lanes for lanes, code in SIZES.items()}


class ATP(Packet):
    """The header."""

    name = "ATP"
    fields_desc = [  # noqa: RUF012 - as scapy wants it
        BitEnumField(
            "message",
            GRADIENT,
            4,
            {GRADIENT: "gradient", PARAMETER: "parameter", REQUEST: "request"},
        ),
        BitField("resend", 0, 1),
        BitField("collision", 0, 1),
        BitField("raw", 0, 1),
        BitField("congested", 0, 1),
        ByteField("job", 1),
        ByteField("server", 0),
        BitField("sender_high", 0, 4),
        BitField("integers", 0, 1),
        BitEnumField(
            "size",
            SIZE_NONE,
            3,
            {
                **{code: f"{format_count(lanes, 'lane')}" for code, lanes in _LANES.items()},
                SIZE_NONE: "none",
            },
        ),
        IntField("sequence", 0),
        ShortField("aggregator", 0),
        ShortField("proposal", NO_PROPOSAL),
        XLongField("workers", 0),
        ByteField("sender", 0),
        BitField("wanted", 0, 1),
        BitField("rack", 0, 7),
    ]

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Say that lanes follow, if they do, and whether they are integers."""
        if self.size not in _LANES or len(payload) < 4 * _LANES[self.size]:
            return super().guess_payload_class(payload)
        is_integer = self.integers or (self.message == GRADIENT and not self.raw)
        return ATPIntegers if is_integer else ATPFloats


class ATPIntegers(Packet):
    """The values, integers or fixed-point."""

    name = "ATP lanes"
    fields_desc = [  # noqa: RUF012
        FieldListField(
            "values",
            [],
            SignedIntField("value", 0),
            count_from=lambda packet: _LANES[packet.underlayer.size],
            max_count=max(SIZES),  # scapy's own limit is 100
        )
    ]


class ATPFloats(Packet):
    """The values, float32."""

    name = "ATP lanes"
    fields_desc = [  # noqa: RUF012
        FieldListField(
            "values",
            [],
            IEEEFloatField("value", 0.0),
            count_from=lambda packet: _LANES[packet.underlayer.size],
            max_count=max(SIZES),  # scapy's own limit is 100
        )
    ]


for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + 2 * UDP_PORTS):
    bind_bottom_up(UDP, ATP, dport=_port)
bind_layers(UDP, ATP, dport=FIRST_UDP_PORT + 1)  # gradients of job 1
