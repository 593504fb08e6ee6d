"""Whole frames as the formats have them, made by scapy alone."""

from __future__ import annotations

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw


def mac_of(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6))


def udp_frame(
    macs: tuple[int, int],
    addresses: tuple[int, int],
    ports: tuple[int, int],
    payload: bytes,
    tos: int = 2,
) -> bytes:
    """Return a frame; pairs are (source, destination), numbers as agents are told them.

    Agents send with TTL 64, without fragments, able to be marked (ECN 2), and without UDP checksum.
    """
    sender = IP(src=".".join(map(str, addresses[0].to_bytes(4))), id=0, flags="DF", ttl=64, tos=tos)
    sender.dst = ".".join(map(str, addresses[1].to_bytes(4)))
    ether = Ether(src=mac_of(macs[0]), dst=mac_of(macs[1]))
    return bytes(ether / sender / UDP(sport=ports[0], dport=ports[1], chksum=0) / Raw(payload))


def group_mac(address: int) -> int:
    """Return the Ethernet address of an IPv4 group: its lower 23 bits (RFC 1112, 6.4)."""
    return 0x01005E000000 | address & 0x7FFFFF
