"""The frame of RoCEv2: InfiniBand Architecture vol. 1, section 9.2 and annex A17."""

from __future__ import annotations

from ringleaf.core.arena import Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.headers import UDP_LENGTH_AT, UDP_PAYLOAD_AT, get16
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES

SOURCE_PORT_LOW = 0xC000  # RoCEv2 senders use the dynamic range
SOURCE_PORTS = 0x4000
UDP_PORT = 4791
DEFAULT_PARTITION = 0xFFFF
FULL_MEMBER = 0x8000  # the bit of a partition key above the partition's number (10.9.2)
PARTITION_NUMBER = 0x7FFF

# Opcodes of the reliable connection service.
SEND_FIRST = 0x00
SEND_MIDDLE = 0x01
SEND_LAST = 0x02
SEND_ONLY = 0x04
ACKNOWLEDGE = 0x11
CNP = 0x81  # congestion notification packet (annex A17.9.3): BTH and 16 reserved bytes
PROBE = 0xC0  # our own, in the range that is left to manufacturers (9.2): BTH alone
CUT = 0xC1  # likewise: packets came without their data; as an ACKNOWLEDGE, but see `trimming.py`
CNP_BYTES = 16
TELEMETRY = 0xD0  # likewise, with a SEND's number: telemetry follows the BTH
TELEMETRY_MASK = 0xF0

# Offsets in the frame.
OPCODE_AT = UDP_PAYLOAD_AT
PARTITION_AT = UDP_PAYLOAD_AT + 2
NOTICES_AT = UDP_PAYLOAD_AT + 4
DEST_QP_AT = UDP_PAYLOAD_AT + 5
ACK_REQUEST_AT = UDP_PAYLOAD_AT + 8
PSN_AT = UDP_PAYLOAD_AT + 9
HEAD_BYTES = UDP_PAYLOAD_AT + 12
SYNDROME_AT = HEAD_BYTES
ACK_HEAD_BYTES = HEAD_BYTES + 4
ICRC_BYTES = 4
PACKET_OVERHEAD_BYTES = HEAD_BYTES + ICRC_BYTES
FRAME_OVERHEAD_BYTES = PACKET_OVERHEAD_BYTES + LINE_OVERHEAD_BYTES

# AETH syndromes (9.7.5.2.1). An ACK's low five bits say how many receives are posted.
ACK = 0x00
CREDITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
CREDIT_MASK = 0x1F
RNR_NAK = 0x20
SEQUENCE_NAK = 0x60
PSN_MASK = 0xFFFFFF

BECN = 0x40
MARKS_MASK = 0x3F  # BTH's reserved bits beside it


@inline
def opcode_of(is_first: bool, is_last: bool) -> int:
    """Return the BTH opcode of a SEND packet by its place in the message (section 9.2)."""
    if is_first:
        return SEND_ONLY if is_last else SEND_FIRST
    return SEND_LAST if is_last else SEND_MIDDLE


@inline
def body_bytes(head: Bytes) -> int:
    """Return the bytes between BTH and ICRC by the UDP header, as short frames are padded."""
    return get16(head, UDP_LENGTH_AT) - (8 + HEAD_BYTES - UDP_PAYLOAD_AT + ICRC_BYTES)


@inline
def telemetry_bytes(opcode: int) -> int:
    """Return the bytes of telemetry in a packet of data."""
    return TELEMETRY_BYTES if opcode & TELEMETRY_MASK == TELEMETRY else 0


@inline
def credit_code(receives: int) -> int:
    """Return the largest code that promises no more receives than there are."""
    code = 0
    while code + 1 < len(CREDITS) and CREDITS[code + 1] <= receives:
        code += 1
    return code


@inline
def full_number(wire_psn: int, near: int) -> int:
    """Return the 64-bit number closest to `near` that has these 24 bits."""
    return near + ((wire_psn - near + 0x800000) & PSN_MASK) - 0x800000
