"""OmniReduce for scapy, as `wire.py` has it; importing this binds it to its UDP ports."""

from __future__ import annotations

from scapy.fields import (
    BitEnumField,
    ByteField,
    FieldLenField,
    FieldListField,
    IntField,
    ShortField,
    XByteField,
    XIntField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_bottom_up, bind_layers

from ringleaf.ina.omnireduce.wire import FIRST_UDP_PORT, RESULT, UDP_PORTS, UPDATE, aggregator_port
from ringleaf.ina.tensors import FLOAT32, INT32


class OmniReduceHeader(Packet):
    """The header; blocks follow as they are in memory."""

    name = "OmniReduce"
    fields_desc = [  # noqa: RUF012 - as scapy wants it
        BitEnumField("message", UPDATE, 4, {UPDATE: "update", RESULT: "result"}),
        BitEnumField("type", FLOAT32, 4, {FLOAT32: "float32", INT32: "int32"}),
        ByteField("job", 1),
        ShortField("slot", 0),
        IntField("round", 0),
        ShortField("worker", 0),
        XByteField("present", 0),
        FieldLenField("columns", None, fmt="B", count_of="next"),
        FieldListField(
            "next", [], XIntField("position", 0), count_from=lambda packet: packet.columns
        ),
    ]


for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + 2 * UDP_PORTS):
    bind_bottom_up(UDP, OmniReduceHeader, dport=_port)
bind_layers(UDP, OmniReduceHeader, dport=aggregator_port(1))
