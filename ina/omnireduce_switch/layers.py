"""OmniReduce's packets in switches for scapy; importing this binds it to its UDP ports."""

from __future__ import annotations

from scapy.fields import XIntField
from scapy.layers.inet import UDP
from scapy.packet import bind_bottom_up, bind_layers

from ringleaf.ina.omnireduce_switch.wire import FIRST_UDP_PORT
from ringleaf.ina.switchml.layers import SwitchMLHeader
from ringleaf.ina.switchml.wire import UDP_PORTS


class SparseSwitchML(SwitchMLHeader):
    """SwitchML's header, and the next block."""

    name = "OmniReduce in switches"
    fields_desc = [*SwitchMLHeader.fields_desc, XIntField("next", 0)]  # noqa: RUF012 - as scapy wants it


for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + UDP_PORTS):
    bind_bottom_up(UDP, SparseSwitchML, dport=_port)
bind_layers(UDP, SparseSwitchML, dport=FIRST_UDP_PORT + 1)  # the port of job 1
