"""Ternary gradients for scapy, as `wire.py` has them; importing this binds them to UDP ports."""

from __future__ import annotations

from scapy.fields import BitEnumField, IEEEFloatField
from scapy.layers.inet import UDP
from scapy.packet import bind_bottom_up, bind_layers

from ringleaf.ina.switchml.layers import SwitchMLHeader
from ringleaf.ina.switchml.wire import SIZE_NONE, UDP_PORTS
from ringleaf.ina.tern.wire import FIRST_UDP_PORT, LEVELS_SIZE, SUM_SIZE, SUM_WORDS, WORDS
from ringleaf.ina.vote.layers import BitsHeader, BitWords

__all__ = ["BitWords", "TernHeader"]


class TernHeader(BitsHeader):
    """SwitchML's header, and the scale."""

    name = "Ternary sums"
    fields_desc = [  # noqa: RUF012 - as scapy wants it
        *SwitchMLHeader.fields_desc[:2],
        BitEnumField(
            "size", SIZE_NONE, 3, {LEVELS_SIZE: "levels", SUM_SIZE: "counts", SIZE_NONE: "none"}
        ),
        *SwitchMLHeader.fields_desc[3:],
        IEEEFloatField("scale", 0.0),
    ]
    words_of = {LEVELS_SIZE: WORDS, SUM_SIZE: SUM_WORDS}  # noqa: RUF012


for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + UDP_PORTS):
    bind_bottom_up(UDP, TernHeader, dport=_port)
bind_layers(UDP, TernHeader, dport=FIRST_UDP_PORT + 1)  # the port of job 1
