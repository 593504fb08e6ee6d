"""Pause frames (IEEE 802.1Qbb): how they are written, sent and read.

A frame is a MAC control frame of 64 bytes with FCS. It overtakes all that waits for its port, but
not the frame that is on the line, and takes time on the line and the link's delay as any other. It
names the classes whose state has changed. The standard's pauses end after at most 65,535 quanta of
512 bits, and are asked for again before that; here they last until the frame that ends them, and
pause frames are not lost, doubled or late.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.disciplines import CLASSES
from ringleaf.core.headers import ETHERTYPE_AT, get16, put16, put48
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.units import PS_PER_S
from ringleaf.networks.virtual.bins import count_bin
from ringleaf.networks.virtual.lines import await_idle, capture, deliver, line_bytes
from ringleaf.networks.virtual.pfc.layout import (
    ASKED,
    MAC,
    PAUSED,
    PAUSED_PS,
    PAUSES,
    SINCE_PS,
    UNTOLD,
    pause_row,
)
from ringleaf.networks.virtual.state import port_row

MAC_CONTROL = 0x0180C2000001  # destination of pause frames
ETHERTYPE_MAC_CONTROL = 0x8808
PFC_OPCODE = 0x0101
OPCODE_AT = 14
CLASSES_AT = 16  # a bit per class that the frame is about
TIMES_AT = 18  # by class: quanta to pause; 0: go on
FRAME_BYTES = 60  # without FCS
LONGEST = 0xFFFF  # quanta


@inline
def is_pause(head: Bytes, head_bytes: int) -> bool:
    """Return whether a head is that of a pause frame per class: MAC control with opcode 0x0101."""
    return (
        head_bytes >= FRAME_BYTES
        and get16(head, ETHERTYPE_AT) == ETHERTYPE_MAC_CONTROL
        and get16(head, OPCODE_AT) == PFC_OPCODE
    )


@inline
def make_frame(arena: Arena, mine: int) -> int:
    """Return a frame that tells all that is yet to be told by the port of a row."""
    words = arena.words
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    for place in range(FRAME_BYTES):
        head[place] = 0
    put48(head, 0, MAC_CONTROL)
    put48(head, 6, words[mine + MAC])
    put16(head, ETHERTYPE_AT, ETHERTYPE_MAC_CONTROL)
    put16(head, OPCODE_AT, PFC_OPCODE)
    put16(head, CLASSES_AT, words[mine + UNTOLD])
    for level in range(CLASSES):
        if words[mine + UNTOLD] & words[mine + ASKED] & 1 << level:
            put16(head, TIMES_AT + 2 * level, LONGEST)
    view.row[HEAD_LEN] = FRAME_BYTES
    words[mine + UNTOLD] = 0
    return packet


@inline
def send_frame(arena: Arena, at: int, port: int, now_ps: int) -> None:
    """Put a pause frame on the line of an idle port."""
    words = arena.words
    here = port_row(words, at, port)
    packet = make_frame(arena, pause_row(words, at, port))
    line, rate = line_bytes(FRAME_BYTES), words[here + s.RATE_BPS]
    done_ps = now_ps + (line * (8 * PS_PER_S) + rate - 1) // rate
    words[here + s.BUSY_UNTIL_PS] = done_ps
    words[here + s.TX_BYTES] += line
    words[here + s.TX_PACKETS] += 1
    count_bin(words, at, port, 0, now_ps, line)
    if words[here + s.CAPTURE] & s.CAPTURE_SENT:
        capture(arena, at, port, packet, now_ps, s.SENT)
    deliver(words, at, done_ps + words[here + s.DELAY_PS], here, packet)


@inline
def tell(arena: Arena, at: int, port: int, level: int, now_ps: int) -> None:
    """Tell the other end whether a class has to pause, as soon as the line is free."""
    words = arena.words
    mine = pause_row(words, at, port)
    words[mine + UNTOLD] |= 1 << level
    words[mine + PAUSES] += words[mine + ASKED] >> level & 1
    if words[port_row(words, at, port) + s.BUSY_UNTIL_PS] <= now_ps:
        send_frame(arena, at, port, now_ps)
    else:
        await_idle(words, at, port)


@inline
def take_frame(arena: Arena, mine: int, head: Bytes, now_ps: int) -> bool:
    """Pause classes, or let them go on; return whether any may go on now."""
    words = arena.words
    before, after = words[mine + PAUSED], words[mine + PAUSED]
    about = get16(head, CLASSES_AT)
    for level in range(CLASSES):
        if about >> level & 1:
            pauses = get16(head, TIMES_AT + 2 * level) > 0
            after = after | 1 << level if pauses else after & ~(1 << level)
    words[mine + PAUSED] = after
    if before == 0:
        words[mine + SINCE_PS] = now_ps
    elif after == 0:
        words[mine + PAUSED_PS] += now_ps - words[mine + SINCE_PS]
    return before & ~after > 0
