"""Where fields lie in packets, and their codes, as standards and descriptions of formats say."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import scapy.layers.vxlan  # noqa: F401 - it has one of SwitchML's ports
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

import ringleaf.ina.netreduce.layers  # noqa: F401 - it says which ports are RoCEv2's, too
from ringleaf.core import headers
from ringleaf.core.compiled import signed
from ringleaf.hosts.rc import wire as rc
from ringleaf.hosts.rc.layers import AETH, BTH, ICRC, HopTelemetry, RoceData, Telemetry
from ringleaf.ina.atp import wire as atp
from ringleaf.ina.atp.layers import ATP
from ringleaf.ina.netreduce import wire as netreduce
from ringleaf.ina.omnireduce import wire as omnireduce
from ringleaf.ina.omnireduce.layers import OmniReduceHeader
from ringleaf.ina.omnireduce_switch import wire as omnireduce_switch
from ringleaf.ina.omnireduce_switch.layers import SparseSwitchML
from ringleaf.ina.switchml import wire as switchml
from ringleaf.ina.switchml.layers import SwitchMLHeader
from ringleaf.ina.tern import wire as tern
from ringleaf.ina.tern.layers import TernHeader
from ringleaf.ina.vote import wire as vote
from ringleaf.ina.vote.layers import VoteHeader

# Bytes from the start of the payload of UDP, which is 42 bytes behind that of the frame.
PLACES: dict[ModuleType, dict[str, int]] = {
    # InfiniBand Architecture vol. 1, 9.2: opcode, flags, partition, FECN and BECN, queue pair,
    # acknowledge request, packet sequence number; then the AETH, and 4 bytes of ICRC
    rc: {
        "OPCODE_AT": 0, "PARTITION_AT": 2, "NOTICES_AT": 4, "DEST_QP_AT": 5, "ACK_REQUEST_AT": 8,
        "PSN_AT": 9, "HEAD_BYTES": 12, "SYNDROME_AT": 12, "ACK_HEAD_BYTES": 16,
        "PACKET_OVERHEAD_BYTES": 16, "FRAME_OVERHEAD_BYTES": 16 + 24,
    },
    switchml: {
        "MESSAGE_AT": 0, "JOB_AT": 1, "BLOCK_AT": 2, "POOL_INDEX_AT": 6, "EXPONENT_AT": 8,
        "TREE_AT": 9, "VALUES_AT": 10,
    },
    omnireduce_switch: {"NEXT_AT": 10, "VALUES_AT": 14},
    tern: {"SCALE_AT": 10, "VALUES_AT": 14},
    atp: {
        "MESSAGE_AT": 0, "JOB_AT": 1, "SERVER_AT": 2, "SIZE_AT": 3, "SEQUENCE_AT": 4,
        "AGGREGATOR_AT": 8, "PROPOSAL_AT": 10, "WORKERS_AT": 12, "SENDER_AT": 20, "RACK_AT": 21,
        "VALUES_AT": 22,
    },
    omnireduce: {
        "MESSAGE_AT": 0, "JOB_AT": 1, "SLOT_AT": 2, "ROUND_AT": 4, "WORKER_AT": 8,
        "PRESENT_AT": 10, "COLUMNS_AT": 11, "NEXT_AT": 12,
    },
    netreduce: {"OVERHEAD_BYTES": 16},
}  # fmt: skip
CODES: dict[ModuleType, dict[str, object]] = {
    rc: {
        "UDP_PORT": 4791, "DEFAULT_PARTITION": 0xFFFF, "FULL_MEMBER": 0x8000,
        "PARTITION_NUMBER": 0x7FFF, "SEND_FIRST": 0, "SEND_MIDDLE": 1, "SEND_LAST": 2,
        "SEND_ONLY": 4, "ACKNOWLEDGE": 17, "CNP": 0x81, "PROBE": 0xC0, "CUT": 0xC1,
        "CNP_BYTES": 16, "TELEMETRY": 0xD0, "TELEMETRY_MASK": 0xF0, "ICRC_BYTES": 4, "ACK": 0,
        "CREDIT_MASK": 31, "RNR_NAK": 0x20, "SEQUENCE_NAK": 0x60, "PSN_MASK": 2**24 - 1,
        "BECN": 0x40, "MARKS_MASK": 0x3F,
        "CREDITS": (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256),
    },
    switchml: {
        "HEADER_BYTES": 10, "UPDATE": 1, "RESULT": 2, "SIZE_NONE": 7, "SIZES": {64: 1, 256: 3},
        "CODES": {24: 0, 48: 2, 64: 1, 256: 3}, "FIRST_UDP_PORT": 0xBEE0, "UDP_PORTS": 16,
        "MAX_SLOTS": 2**15, "VERSION_SHIFT": 15, "BLOCK_MASK": 2**32 - 1, "SPECIAL": 255,
    },
    omnireduce_switch: {"HEADER_BYTES": 14, "NONE": 2**32 - 1, "FIRST_UDP_PORT": 0xBEF0},
    tern: {
        "HEADER_BYTES": 14, "ELEMENTS": 768, "PLANE_BYTES": 96, "WORDS": 48, "PLANES": 6,
        "SUM_WORDS": 144, "MOST_WORKERS": 31, "SUM_SIZE": 4, "MIXED": 2**32 - 1,
        "FIRST_UDP_PORT": 0xBF10,
    },
    vote: {
        "SIGNS": 768, "WORDS": 24, "PLANES": 6, "MOST_WORKERS": 63, "SIGNS_SIZE": 0,
        "FIRST_UDP_PORT": 0xBF00,
    },
    atp: {
        "HEADER_BYTES": 22, "GRADIENT": 1, "PARAMETER": 2, "REQUEST": 3, "RESEND": 8,
        "COLLISION": 4, "RAW": 2, "CONGESTED": 1, "SENT_BEFORE": 1, "LATE": 4, "WANTED": 128,
        "RACK_MASK": 127, "INTEGERS": 8, "SIZE_MASK": 7, "SIZE_NONE": 7, "SENDER_SHIFT": 4,
        "SIZES": {64: 1, 256: 3}, "NO_PROPOSAL": 0xFFFF, "LATE_GRADIENT": 1,
        "SEQUENCE_MASK": 2**32 - 1, "FIRST_UDP_PORT": 0xA700, "UDP_PORTS": 16,
    },
    omnireduce: {
        "UPDATE": 1, "RESULT": 2, "NONE": 2**32 - 1, "ROUND_MASK": 2**32 - 1, "BLOCK": 32,
        "BLOCK_BYTES": 128, "MAX_COLUMNS": 8, "MAX_SLOTS": 2**16, "MAX_WORKERS": 2**16,
        "FIRST_UDP_PORT": 0xB700, "UDP_PORTS": 16,
    },
    netreduce: {
        "FIRST_UDP_PORT": 0xBED0, "UDP_PORTS": 16, "TO_NEXT": 0, "FROM_PREVIOUS": 1,
        "MOST_WINDOW": 2**14, "LANES": (64, 256),
    },
    headers: {
        "ETHERTYPE_AT": 12, "IP_AT": 14, "IP_TOS_AT": 15, "IP_LENGTH_AT": 16,
        "IP_PROTOCOL_AT": 23, "IP_CHECKSUM_AT": 24, "IP_SRC_AT": 26, "IP_DST_AT": 30,
        "UDP_SRC_AT": 34, "UDP_DST_AT": 36, "UDP_LENGTH_AT": 38, "UDP_CHECKSUM_AT": 40,
        "UDP_PAYLOAD_AT": 42, "ETHERTYPE_IPV4": 0x800, "PROTOCOL_UDP": 17, "ECN_MASK": 3,
        "PRIORITIES": 8, "PRIORITY_SHIFT": 5, "ECN_CAPABLE": 2, "ECN_MARKED": 3,
    },
}  # fmt: skip


@pytest.mark.parametrize("module", PLACES, ids=lambda module: module.__name__)
def test_fields_lie_where_the_format_says(module: ModuleType) -> None:
    assert {name: getattr(module, name) - 42 for name in PLACES[module]} == PLACES[module]


@pytest.mark.parametrize("module", CODES, ids=lambda module: module.__name__)
def test_codes_are_those_of_the_format(module: ModuleType) -> None:
    assert {name: getattr(module, name) for name in CODES[module]} == CODES[module]


@given(
    workers=st.integers(-(2**63), 2**63 - 1),
    rack=st.integers(0, 127),
    sender=st.integers(0, 4095),
    sequence=st.integers(0, 2**32 - 1),
)
def test_atps_fields_come_back(workers: int, rack: int, sender: int, sequence: int) -> None:
    header = ATP(
        workers=workers % 2**64, rack=rack, wanted=1, sender=sender & 255, sequence=sequence
    )
    head = np.frombuffer(bytes(42) + bytes(header), np.uint8).copy()
    head[atp.SIZE_AT] = sender >> 8 << 4 | 7
    assert atp.get_workers(head) == workers
    assert atp.get_rack(head) == rack
    assert atp.get_sender(head) == sender
    assert atp.get_sequence(head) == sequence
    head[atp.WORKERS_AT : atp.WORKERS_AT + 8] = 0
    atp.put_workers(head, signed(workers))
    assert atp.get_workers(head) == workers


@pytest.mark.parametrize(
    ("layer", "first", "count"),
    [
        (ATP, 0xA700, 32),
        (OmniReduceHeader, 0xB700, 32),
        (SwitchMLHeader, 0xBEE0, 16),
        (SparseSwitchML, 0xBEF0, 16),
        (BTH, 0xBED0, 16),
        (VoteHeader, 0xBF00, 16),
        (TernHeader, 0xBF10, 16),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_scapy_reads_packets_to_a_systems_ports(
    layer: type[Packet], first: int, count: int
) -> None:
    """Without a port they are built for job 1, RoCEv2 for its own."""
    for port in (first - 1, first, first + count - 1, first + count):
        got = UDP(bytes(UDP(sport=9, dport=port) / Raw(bytes(64))))
        assert (layer in got) == (first <= port < first + count)
    built = Ether() / UDP() / layer()
    assert built[UDP].dport == (4791 if layer is BTH else first + 1)


@pytest.mark.parametrize(
    ("packet", "text"),
    [
        (ATP(), "10 01 00 07 00000000 0000 ffff 0000000000000000 00 00"),
        (
            ATP(
                message=3, resend=1, raw=1, job=2, server=3, sender_high=4, integers=1, size=3,
                sequence=5, aggregator=6, proposal=7, workers=8, sender=9, wanted=1, rack=10,
            ),
            "3a 02 03 4b 00000005 0006 0007 0000000000000008 09 8a",
        ),
        (ATP(collision=1, congested=1), "15 01 00 07 00000000 0000 ffff 0000000000000000 00 00"),
        (SwitchMLHeader(), "17 01 00000000 0000 00 00"),
        (
            SwitchMLHeader(
                message=2, unused=1, size=3, job=2, block=3, version=1, slot=4, exponent=5, tree=6
            ),
            "2b 02 00000003 8004 05 06",
        ),
        (SparseSwitchML(), "17 01 00000000 0000 00 00 00000000"),
        (SparseSwitchML(slot=1, next=7), "17 01 00000000 0001 00 00 00000007"),
        (VoteHeader(), "17 01 00000000 0000 00 00"),
        (VoteHeader(message=2, size=4, slot=5), "24 01 00000000 0005 00 00"),
        (TernHeader(), "17 01 00000000 0000 00 00 00000000"),
        (TernHeader(size=2, block=3, scale=-0.5), "12 01 00000003 0000 00 00 bf000000"),
        (OmniReduceHeader(), "10 01 0000 00000000 0000 00 00"),
        (
            OmniReduceHeader(
                message=2, type=1, job=2, slot=3, round=4, worker=5, present=6, next=[7, 8]
            ),
            "21 02 0003 00000004 0005 06 02 00000007 00000008",
        ),
        (BTH(), "04 00 ffff 00 000000 00 000000"),
        (
            BTH(
                opcode=17, solicited=1, padcount=2, version=3, pkey=4, becn=1, resv6=5, dqpn=6,
                ackreq=1, resv7=7, psn=8,
            ),
            "11 a3 0004 45 000006 87 000008",
        ),
        (BTH(migreq=1, fecn=1), "04 40 ffff 80 000000 00 000000"),
        (AETH(), "00 000000"),
        (AETH(reserved=1, kind=1, value=2, msn=3), "a2 000003"),
        (HopTelemetry(), "00000000 00000000 00000000 00000000"),
        (
            HopTelemetry(rate_kbps=1, sent_bytes=2, queue_packets=3, time_us=4),
            "00000001 00000002 00000003 00000004",
        ),
        (Telemetry(), "00 00"),
        (Telemetry(hops=1, reserved=2), "01 02"),
        (ICRC(), "00000000"),
        (RoceData(), ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Packet) else "",
)  # fmt: skip
def test_scapy_writes_headers_as_their_formats_say(packet: Packet, text: str) -> None:
    """Nothing told, and each field told another number."""
    assert bytes(packet) == bytes.fromhex(text)


@pytest.mark.parametrize(
    ("header", "size", "layer"),
    [
        (ATP(size=1), 256, "ATPIntegers"),
        (ATP(size=1), 255, "Raw"),
        (ATP(size=7), 256, "Raw"),
        (ATP(size=3), 1024, "ATPIntegers"),
        (ATP(size=1, raw=1), 256, "ATPFloats"),
        (ATP(size=1, raw=1, integers=1), 256, "ATPIntegers"),
        (ATP(size=1, message=2), 256, "ATPFloats"),
        (ATP(size=1, message=2, integers=1), 256, "ATPIntegers"),
        (SwitchMLHeader(size=1), 256, "SwitchMLLanes"),
        (SwitchMLHeader(size=1), 255, "Raw"),
        (SwitchMLHeader(size=3), 256, "Raw"),
        (SwitchMLHeader(size=3), 1024, "SwitchMLLanes"),
        (ATP(size=3, message=2), 1024, "ATPFloats"),
        (SwitchMLHeader(size=7), 256, "Raw"),
        (VoteHeader(size=0), 96, "BitWords"),
        (VoteHeader(size=0), 95, "Raw"),
        (VoteHeader(size=4), 576, "BitWords"),
        (VoteHeader(size=4), 575, "Raw"),
        (VoteHeader(size=1), 576, "Raw"),
        (TernHeader(size=2), 192, "BitWords"),
        (TernHeader(size=2), 191, "Raw"),
        (TernHeader(size=4), 576, "BitWords"),
        (TernHeader(size=4), 575, "Raw"),
        (BTH(opcode=4), 5, "RoceData"),
        (BTH(opcode=4), 4, "ICRC"),
        (BTH(opcode=17), 8, "AETH"),
        (BTH(opcode=0xD4), 200, "Telemetry"),
        (AETH(), 4, "ICRC"),
        (AETH(), 200, "Telemetry"),
    ],
)
def test_scapy_tells_what_follows_a_header(header: Packet, size: int, layer: str) -> None:
    got = type(header)(bytes(header) + bytes(size))
    assert type(got.payload).__name__ == layer
