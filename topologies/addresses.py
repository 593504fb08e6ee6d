"""Addresses of hosts and ports: a function of their names and places, so nobody hands them out.

Hosts of a topology from a file may have addresses of their own, which are attributes of theirs.

IPv4: 10.a.b.p for the host at port p of switch number 256 a + b, so a switch is a /24.
MAC: 02:r:i:i:ip:pp, locally administered; r is 0 for hosts and 1 for switches, i is the
node's number (20 bits) and p the port (12 bits).
"""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from ringleaf.errors import TopologyError
from ringleaf.topologies.graph import Role, attachment, hosts, index, port

PREFIX_BITS = 24
"""Length of the prefix that the hosts of one switch share."""

_NETWORK = 10 << 24
# Bit 1 of the first byte says that the address is locally administered (IEEE 802).
_LOCAL_MAC = 0x02 << 40


def ipv4(graph: nx.Graph[str], host: str) -> int:
    """Return the address of `host`, as the integer that goes into a header.

    Raises:
        TopologyError: If `host` is not a host, or sits beyond switch 65535 or port 254.
    """
    switch = attachment(graph, host)
    own: int | None = graph.nodes[host].get("ipv4")
    if own is not None:
        return own
    number = port(graph, switch, host)
    # In a /24, 255 is the broadcast address; 0 cannot occur, as ports begin at 1.
    if number > 254:
        raise TopologyError(f"ipv4: hosts must be on ports 1 to 254, got {number} on {switch}")
    return subnet(switch) | number


def has_own(graph: nx.Graph[str]) -> bool:
    """Return whether hosts have IPv4 addresses of their own, which say nothing of their switch."""
    return any("ipv4" in graph.nodes[host] for host in hosts(graph))


def subnet(switch: str) -> int:
    """Return the prefix, PREFIX_BITS long, of all hosts of `switch`.

    Raises:
        TopologyError: If the switch's number is above 65535.
    """
    number = index(switch)
    if number > 0xFFFF:
        raise TopologyError(f"ipv4: switches with hosts must be s0 to s65535, got {switch}")
    return _NETWORK | number << 8


def mac(graph: nx.Graph[str], node: str, port: int) -> int:
    """Return the address of one port of a host or switch, as the integer that goes into a header.

    Raises:
        TopologyError: If the node's number or the port has too many bits.
    """
    number = index(node)
    if number >= 1 << 20 or not 0 < port < 1 << 12:
        raise TopologyError(f"mac: needs node < 2^20 and port 1 to 4095, got {node} port {port}")
    own: int | None = graph.nodes[node].get("mac")
    if own is not None:
        return own
    role = int(graph.nodes[node]["role"] is Role.SWITCH)
    return _LOCAL_MAC | role << 32 | number << 12 | port


def common_bits(addresses: Sequence[int]) -> int:
    """Return how many of their first bits IPv4 addresses have in common."""
    return 32 - max(address ^ addresses[0] for address in addresses).bit_length()


def format_ipv4(address: int) -> str:
    """Return an IPv4 address as text, like `10.0.3.1`."""
    return ".".join(str(byte) for byte in address.to_bytes(4, "big"))


def format_mac(address: int) -> str:
    """Return a MAC address as text, like `02:01:00:00:30:02`."""
    return address.to_bytes(6, "big").hex(":")
