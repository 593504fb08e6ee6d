"""Frames of RoCEv2, as scapy has them."""

from __future__ import annotations

import pytest
from scapy.packet import Packet

from ringleaf.hosts.rc.layers import AETH, BTH, ICRC, HopTelemetry, Telemetry


@pytest.mark.parametrize(
    ("layer", "frame"),
    [
        (BTH(), "0400ffff" + "00" * 8),
        (BTH(solicited=1, version=2), "0482ffff" + "00" * 8),
        (BTH(migreq=1, padcount=3), "0470ffff" + "00" * 8),
        (BTH(fecn=1, resv6=5, dqpn=0x010203), "0400ffff" + "85010203" + "00" * 4),
        (BTH(becn=1, ackreq=1, psn=0x040506), "0400ffff" + "40000000" + "80040506"),
        (AETH(), "00000000"),
        (AETH(kind=3, value=0, msn=0x010203), "60010203"),
        (AETH(kind=1, value=31), "3f000000"),
        (HopTelemetry(), "00" * 16),
        (Telemetry(), "0000"),
        (ICRC(), "00000000"),
    ],
)
def test_scapys_layers_have_the_standards_bits(layer: Packet, frame: str) -> None:
    """IBA 9.2 and 9.5: BTH and AETH; an ACK's kind is 0, an RNR NAK's 1 and a NAK's 3."""
    assert bytes(layer).hex() == frame


@pytest.mark.parametrize(("kind", "name"), [(0, "ACK"), (1, "RNR NAK"), (2, "2"), (3, "NAK")])
def test_scapy_names_answers(kind: int, name: str) -> None:
    assert AETH(kind=kind).sprintf("%AETH.kind%") == name


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        (0x00, "SEND first"), (0x01, "SEND middle"), (0x02, "SEND last"), (0x04, "SEND only"),
        (0x11, "acknowledge"), (0xC0, "probe"), (0xD0, "SEND first, telemetry"),
        (0xD1, "SEND middle, telemetry"), (0xD2, "SEND last, telemetry"),
        (0xD4, "SEND only, telemetry"),
    ],
)  # fmt: skip
def test_scapy_names_opcodes(opcode: int, name: str) -> None:
    """IBA 9.2, table 38; ours are among those left to manufacturers."""
    assert BTH(opcode=opcode).sprintf("%BTH.opcode%") == name
