"""Hosts' UDP packets as whole frames, for examples and measurements; agents write theirs in place.

A frame has no FCS. Pairs of addresses and ports are (source, destination).
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from ringleaf.core.headers import (
    IP_PROTOCOL_AT,
    IP_TOS_AT,
    PROTOCOL_UDP,
    UDP_PAYLOAD_AT,
    put16,
    write_ip_checksum,
    write_udp,
)
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import neighbors, port

_IP_IDENTIFICATION_AT = 18


def host_frame(
    graph: nx.Graph[str],
    host: str,
    to: tuple[int, int],
    udp_port: int,
    body: bytes,
    *,
    tos: int = 0,
    identification: int = 0,
) -> bytes:
    """Return a packet of a host to `to`, a MAC and an IPv4 address, between equal UDP ports."""
    macs, addresses = (mac(graph, host, 1), to[0]), (ipv4(graph, host), to[1])
    ports = udp_port, udp_port
    return udp_frame(macs, addresses, ports, body, tos=tos, identification=identification)


def udp_frame(
    macs: tuple[int, int],
    addresses: tuple[int, int],
    ports: tuple[int, int],
    body: bytes,
    *,
    protocol: int = PROTOCOL_UDP,
    tos: int = 0,
    identification: int = 0,
) -> bytes:
    """Return a UDP packet, or one with UDP's header below another protocol's number."""
    head = np.zeros(UDP_PAYLOAD_AT, np.uint8)
    write_udp(head, macs, addresses, ports, len(body))
    head[IP_TOS_AT], head[IP_PROTOCOL_AT] = tos, protocol
    put16(head, _IP_IDENTIFICATION_AT, identification)
    write_ip_checksum(head)
    return head.tobytes() + body


def switch_mac(graph: nx.Graph[str], host: str) -> int:
    """Return the MAC address of the switch's port that a host's first link leads to."""
    switch = neighbors(graph, host)[1]
    return mac(graph, switch, port(graph, switch, host))
