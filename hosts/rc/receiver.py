"""The receiving half of a queue pair: posted receives, and the acknowledgements it owes."""

from __future__ import annotations

from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import compiled, copy_items, inline
from ringleaf.core.headers import get24, put24, write_ip_checksum
from ringleaf.core.native_types import ARENA
from ringleaf.core.packets import HEAD_LEN, PAYLOAD_LEN, Packet, allocate_packet, open_packet
from ringleaf.hosts.agent import REFUSALS, complete
from ringleaf.hosts.congestion.control import CNP_DUE, TOLD_AT
from ringleaf.hosts.fifo import fifo_pop, fifo_push, open_fifo
from ringleaf.hosts.rc.congestion import count_mark, keep_telemetry, telemetry_room, write_notices
from ringleaf.hosts.rc.landing import ASKED, choose_landing, land_packet
from ringleaf.hosts.rc.queue import is_owing, owe
from ringleaf.hosts.rc.repathing import repath_if_asked_again
from ringleaf.hosts.rc.sender import write_head
from ringleaf.hosts.rc.state import (
    ADVERTISED,
    ANSWERS_AT,
    CONTROL_AT,
    CUT_PSN,
    CUTS,
    EAGER,
    EXPECTED_PSN,
    GAP_REPORTED,
    HAS_DATA,
    OVERRUN,
    PLACED_BYTES,
    RECEIVED,
    RECEIVES_END,
    RECEIVES_FIRST,
    REQUEST_WORDS,
    RING,
    SYNDROME,
    Qp,
    open_qp,
)
from ringleaf.hosts.rc.trimming import make_cut_notice
from ringleaf.hosts.rc.wire import (
    ACK,
    ACK_HEAD_BYTES,
    ACK_REQUEST_AT,
    ACKNOWLEDGE,
    BECN,
    CNP,
    CNP_BYTES,
    CREDITS,
    HEAD_BYTES,
    NOTICES_AT,
    OPCODE_AT,
    PSN_AT,
    PSN_MASK,
    RNR_NAK,
    SEND_FIRST,
    SEND_LAST,
    SEND_ONLY,
    SEQUENCE_NAK,
    SYNDROME_AT,
    TELEMETRY_MASK,
    body_bytes,
    credit_code,
    full_number,
    telemetry_bytes,
)


@compiled(types.boolean(ARENA, *[types.int64] * 6))
def post_receive(
    arena: Arena, at: int, number: int, address: int, size_bytes: int, tag: int, how: int
) -> bool:
    """Post memory for the QP's next message; return False if the ring of requests is full.

    `how` says how its data lands (`landing.py`); where it is added, each packet has whole elements.
    If that is `ASKED`, the address is that of a claim.
    """
    qp = open_qp(arena, at, number)
    state = qp.state
    if state[RECEIVES_END] - state[RECEIVES_FIRST] == RING:
        return False
    row = (state[RECEIVES_END] % RING) * REQUEST_WORDS
    qp.receives[row] = address
    qp.receives[row + 1] = size_bytes
    qp.receives[row + 2] = tag
    qp.receives[row + 3] = how
    state[RECEIVES_END] += 1
    # Credit is told anew when half of it is used up. For each receive, it would cost an
    # acknowledgement a message; at its very end, the sender would wait for a round trip.
    posted = state[RECEIVES_END] - state[RECEIVES_FIRST]
    known = state[ADVERTISED] - state[RECEIVES_FIRST]
    heeded = state[EAGER] == 0 or state[GAP_REPORTED] == 1  # else the peer goes without credit
    if heeded and known <= max(1, posted // 2):  # or it would send only that many per round trip
        owe(arena, at, number, qp, ACK)
    return True


@inline
def make_notice(arena: Arena, qp: Qp) -> int:
    """Return a congestion notification packet."""
    packet = allocate_packet(arena)
    write_head(arena, qp, packet, CNP, 0, CNP_BYTES)
    head = open_packet(arena, packet).head
    head[NOTICES_AT] = BECN
    for i in range(HEAD_BYTES, HEAD_BYTES + CNP_BYTES):
        head[i] = 0
    write_ip_checksum(head)
    open_packet(arena, packet).row[HEAD_LEN] = HEAD_BYTES + CNP_BYTES
    return packet


@inline
def make_answer(arena: Arena, at: int) -> int:
    """Return the answer that has waited longest, as a packet."""
    answers = open_fifo(arena, at + ANSWERS_AT)
    number = fifo_pop(answers)
    qp = open_qp(arena, at, number)
    state = qp.state
    control = state[CONTROL_AT]
    if state[CUTS] > 0:
        packet = make_cut_notice(arena, qp)
        # The queue pair has left the queue of answers with this one, and may owe others.
        if is_owing(arena, qp):
            fifo_push(answers, number)
        return packet
    if control and arena.words[control + CNP_DUE]:
        arena.words[control + CNP_DUE] = 0
        # The queue pair has left the queue of answers with this one, and still owes an
        # acknowledgement.
        if state[SYNDROME] >= 0:
            fifo_push(answers, number)
        return make_notice(arena, qp)
    packet = allocate_packet(arena)
    syndrome = state[SYNDROME]
    state[SYNDROME] = -1
    # An ACK names the last packet received, a NAK the one wanted (9.7.5.2).
    psn = state[EXPECTED_PSN] - (1 if syndrome == ACK else 0)
    telemetry_length = telemetry_room(arena, qp)
    write_head(arena, qp, packet, ACKNOWLEDGE, psn, 4 + telemetry_length)
    head = open_packet(arena, packet).head
    if syndrome == ACK:
        code = credit_code(state[RECEIVES_END] - state[RECEIVES_FIRST])
        # Five bits say roughly how many receives there are, rounded down. What the sender knows
        # counts, not what is posted.
        state[ADVERTISED] = state[RECEIVES_FIRST] + CREDITS[code]
        syndrome = ACK | code
    head[SYNDROME_AT] = syndrome
    put24(head, SYNDROME_AT + 1, state[RECEIVES_FIRST] & PSN_MASK)  # messages completed
    if control:
        write_notices(arena, qp, head)
    write_ip_checksum(head)
    if telemetry_length:
        copy_items(
            head, ACK_HEAD_BYTES, arena.bytes, arena.words[control + TOLD_AT], telemetry_length
        )
    open_packet(arena, packet).row[HEAD_LEN] = ACK_HEAD_BYTES + telemetry_length
    return packet


@inline
def is_whole(view: Packet) -> bool:
    """Return whether the packet is as long as its header says; else it was cut on its way."""
    in_head = view.row[HEAD_LEN] - HEAD_BYTES
    there = in_head + view.row[PAYLOAD_LEN]
    if there < 0:
        return False
    body = body_bytes(view.head)
    telemetry_length = telemetry_bytes(view.head[OPCODE_AT])
    return telemetry_length <= body <= there and telemetry_length <= in_head


@inline
def place(arena: Arena, at: int, qp: Qp, view: Packet, opcode: int) -> bool:
    """Let a packet's data land in the memory of its message; return False if it has no room."""
    state = qp.state
    row = (state[RECEIVES_FIRST] % RING) * REQUEST_WORDS
    if opcode in (SEND_FIRST, SEND_ONLY):
        state[PLACED_BYTES] = 0
    if qp.receives[row + 3] == ASKED:
        qp.receives[row], qp.receives[row + 3] = choose_landing(arena, qp.receives[row])
    telemetry_length = telemetry_bytes(view.head[OPCODE_AT])
    length = body_bytes(view.head) - telemetry_length
    if state[PLACED_BYTES] + length > qp.receives[row + 1]:
        return False
    # Runs without data take the same time: only the copying is left out.
    if arena.words[at + HAS_DATA]:
        target = qp.receives[row] + state[PLACED_BYTES]
        land_packet(
            arena, view, HEAD_BYTES + telemetry_length, qp.receives[row + 3], target, length
        )
    state[PLACED_BYTES] += length
    return True


@inline
def receive_probe(arena: Arena, at: int, number: int, qp: Qp, head: Bytes) -> None:
    """Report how far the QP has come: packets sent before the probe and not here have been lost."""
    state = qp.state
    repath_if_asked_again(arena, at, qp)
    if full_number(get24(head, PSN_AT), state[EXPECTED_PSN]) < state[EXPECTED_PSN]:
        owe(arena, at, number, qp, ACK)
    elif state[RECEIVES_FIRST] == state[RECEIVES_END]:
        state[GAP_REPORTED] = 1
        owe(arena, at, number, qp, RNR_NAK)
    else:
        state[GAP_REPORTED] = 1
        owe(arena, at, number, qp, SEQUENCE_NAK)


@inline
def receive_data(arena: Arena, at: int, number: int, qp: Qp, packet: int, now_ps: int) -> None:
    """Take a packet of data: place it if it is the expected one, and note the answer to be sent.

    A duplicate is acknowledged again, a gap is reported once by a NAK (go-back-N), and a message
    without a posted receive is refused by an RNR NAK.
    """
    state = qp.state
    view = open_packet(arena, packet)
    opcode = int(view.head[OPCODE_AT])  # a byte would not take the mask
    if telemetry_bytes(opcode) > 0:
        keep_telemetry(arena, qp, view.head)
        opcode &= ~TELEMETRY_MASK
    psn = full_number(get24(view.head, PSN_AT), state[EXPECTED_PSN])
    if state[CONTROL_AT]:
        count_mark(arena, at, number, qp, view.head, now_ps)
    if psn < state[EXPECTED_PSN]:
        owe(arena, at, number, qp, ACK)  # a duplicate: the acknowledgement was lost
    elif psn > state[EXPECTED_PSN]:
        # One NAK for a gap: each packet behind it would ask for another, and have the sender go
        # back again and again.
        if not state[GAP_REPORTED]:
            state[GAP_REPORTED] = 1
            owe(arena, at, number, qp, SEQUENCE_NAK)
    elif state[RECEIVES_FIRST] == state[RECEIVES_END]:
        state[GAP_REPORTED] = 1  # packets that follow are refused with it
        arena.words[at + REFUSALS] += 1
        owe(arena, at, number, qp, RNR_NAK)
    else:
        state[EXPECTED_PSN] += 1
        # The next packet was trimmed and is asked for already, so packets behind it need no NAK.
        state[GAP_REPORTED] = 1 if state[EXPECTED_PSN] == state[CUT_PSN] else 0
        state[SYNDROME] = min(state[SYNDROME], ACK)  # a NAK not yet sent has no object any more
        tag = qp.receives[(state[RECEIVES_FIRST] % RING) * REQUEST_WORDS + 2]
        if not place(arena, at, qp, view, opcode):
            # The message is longer than its receive. It is counted as received all the same, or the
            # sender would resend it for ever.
            complete(arena, at, OVERRUN, number, tag, now_ps)
        if opcode in (SEND_LAST, SEND_ONLY):
            state[RECEIVES_FIRST] += 1
            complete(arena, at, RECEIVED, number, tag, now_ps, state[PLACED_BYTES])
        if view.head[ACK_REQUEST_AT] & 0x80:
            owe(arena, at, number, qp, ACK)
