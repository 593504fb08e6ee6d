"""Telemetry in `p4/hpcc.p4`, packet by packet."""

from __future__ import annotations

import struct

import finsy as fy
import pytest
from scapy.packet import Raw
from switch_packets import make_switch, udp

from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.telemetry import MOST_HOPS, TELEMETRY_BYTES
from ringleaf.switches.switch import Switch

PORT, KBPS = 1, 40_000_000
LINE_GAPS = 24
HEADERS = 14 + 20 + 8  # to the end of UDP
BTH_BYTES = 12


@pytest.fixture
def switch() -> Switch:
    return make_switch(
        "hpcc",
        4,
        [
            fy.P4TableEntry(
                "ipv4_lpm",
                match=fy.P4TableMatch(dst="10.0.1.0/24"),
                action=fy.P4TableAction("forward", port=PORT, dmac=0x020000000003),
            ),
            fy.P4TableEntry(
                "port_rates",
                match=fy.P4TableMatch(port=PORT),
                action=fy.P4TableAction("set_rate", kbps=KBPS),
            ),
        ],
    )


def roce(opcode: int, body: bytes, *, dport: int = 4791) -> bytes:
    return bytes(udp(sport=50000, dport=dport) / Raw(bytes([opcode]) + bytes(11) + body))


def telemetry_of(packet: bytes) -> tuple[int, list[tuple[int, ...]]]:
    """Return the count of hops, and rate, bytes, queue and time of each, newest first."""
    told = packet[HEADERS + BTH_BYTES :][:TELEMETRY_BYTES]
    return told[0], list(struct.iter_unpack(">4I", told[2:]))


def test_a_hop_writes_itself_before_the_others_and_the_packet_stays_as_long(
    switch: Switch,
) -> None:
    packet = roce(0xD1, bytes(TELEMETRY_BYTES) + b"data")
    sizes = []
    for passes in range(1, MOST_HOPS + 2):
        ((port, out),) = switch.process(2, packet, now_ps=7 * passes * PS_PER_US)
        assert port == PORT
        assert len(out) == len(packet)
        assert out[-4:] == b"data"
        hops, rows = telemetry_of(out)
        sizes.append(passes * (len(packet) + LINE_GAPS))
        newest_first = [
            (KBPS, sent, 0, 7 * number) for number, sent in reversed([*enumerate(sizes, 1)])
        ]
        assert hops == passes
        assert rows[:passes] == newest_first[:MOST_HOPS]
        packet = out[:14] + packet[14:34] + out[34:]  # with the first hop's TTL


@pytest.mark.parametrize(("opcode", "dport"), [(0x01, 4791), (0x11, 4791), (0xC0, 4791), (0xD1, 9)])
def test_other_packets_keep_their_bytes_and_are_counted(
    switch: Switch, opcode: int, dport: int
) -> None:
    other = roce(opcode, bytes(TELEMETRY_BYTES), dport=dport)
    ((_, out),) = switch.process(2, other)
    assert out[HEADERS:] == other[HEADERS:]
    packet = roce(0xD0, bytes(TELEMETRY_BYTES))
    ((_, out),) = switch.process(2, packet)
    assert telemetry_of(out)[1][0][1] == len(other) + len(packet) + 2 * LINE_GAPS


def test_a_packet_too_short_for_telemetry_leaves_as_it_came(switch: Switch) -> None:
    packet = roce(0xD0, bytes(TELEMETRY_BYTES - 1))
    for _, out in switch.process(2, packet):
        assert out[HEADERS + BTH_BYTES :] == packet[HEADERS + BTH_BYTES :]
