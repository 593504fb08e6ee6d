"""NetReduce for scapy: RoCEv2 to its UDP ports; importing this binds it."""

from __future__ import annotations

from scapy.layers.inet import UDP
from scapy.packet import bind_bottom_up

from ringleaf.hosts.rc.layers import BTH
from ringleaf.ina.netreduce.wire import FIRST_UDP_PORT, UDP_PORTS

for _port in range(FIRST_UDP_PORT, FIRST_UDP_PORT + UDP_PORTS):
    bind_bottom_up(UDP, BTH, dport=_port)
