"""Packets that arrive without their data, as a switch has cut it off: they are asked for again.

The receiver answers each by a notice, which has the highest priority: the packet to go on from, and
how many were cut. The sender goes back to that packet, and not to the last acknowledged one, as
those between may still be on their way: headers overtake data. Whatever follows a packet that was
cut is sent again, too (go-back-N). If a notice is lost, or a header, probes find the gap.

Senders that answered each notice by a window would keep a path full of headers, for which data
waits, and all of it would be cut again and again. So a packet that is cut again is followed by half
as many, down to none, until there is progress. Where the network duplicates packets, each copy is
cut by itself and has more sent, so a sender answers only so many notices without progress.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.headers import PRIORITIES, get24, put24, write_ip_checksum, write_priority
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.hosts.agent import READY
from ringleaf.hosts.congestion.control import COUNTS_CUTS
from ringleaf.hosts.fifo import fifo_push, open_fifo
from ringleaf.hosts.rc.congestion import note_loss
from ringleaf.hosts.rc.queue import is_owing, offer, owe
from ringleaf.hosts.rc.sender import write_head
from ringleaf.hosts.rc.state import (
    ACKED_PSN,
    ALLOWED,
    ANSWERS_AT,
    CONTROL_AT,
    CUT_PSN,
    CUTS,
    EXPECTED_PSN,
    GAP_REPORTED,
    NAKED_PSN,
    NEXT_PSN,
    PROBES,
    PROBING,
    REQUEST_WORDS,
    RETRIES,
    RETRY_END,
    RING,
    SENDS_CURRENT,
    SENDS_END,
    SENDS_FIRST,
    TIMED_PSN,
    UNANSWERED,
    WANTS_CUT,
    Qp,
)
from ringleaf.hosts.rc.wire import (
    ACK,
    ACK_HEAD_BYTES,
    CUT,
    OPCODE_AT,
    PSN_AT,
    SEND_ONLY,
    SYNDROME_AT,
    TELEMETRY_MASK,
    full_number,
    telemetry_bytes,
)

MOST_RETRIES = 32  # of a packet by notices, without any progress; then a probe leads to the next
MOST_TOLD = 1 << 16  # packets that one notice tells to have been cut


@inline
def receive_cut(arena: Arena, at: int, number: int, qp: Qp, head: Bytes) -> None:
    """Take the headers of a packet of data that was cut."""
    state = qp.state
    opcode = int(head[OPCODE_AT])
    if telemetry_bytes(opcode) > 0:
        opcode &= ~TELEMETRY_MASK
    if opcode > SEND_ONLY:
        return
    psn = full_number(get24(head, PSN_AT), state[EXPECTED_PSN])
    if psn < state[EXPECTED_PSN]:
        owe(arena, at, number, qp, ACK)  # it has come before, whole
        return
    if not is_owing(arena, qp):
        fifo_push(open_fifo(arena, at + ANSWERS_AT), number)
        arena.words[at + READY] = 1
    state[CUTS] += 1
    if state[CUT_PSN] < state[EXPECTED_PSN] or psn <= state[CUT_PSN]:
        state[CUT_PSN] = psn
        state[WANTS_CUT] = 1
    if psn == state[EXPECTED_PSN]:
        state[GAP_REPORTED] = 1  # packets that follow need no NAK


@inline
def make_cut_notice(arena: Arena, qp: Qp) -> int:
    """Return a notice of the packets that were cut since the last one."""
    state = qp.state
    packet = allocate_packet(arena)
    write_head(arena, qp, packet, CUT, state[CUT_PSN], ACK_HEAD_BYTES - SYNDROME_AT)
    view = open_packet(arena, packet)
    head = view.head
    head[SYNDROME_AT] = state[WANTS_CUT]
    put24(head, SYNDROME_AT + 1, min(state[CUTS], MOST_TOLD))
    state[CUTS] = state[WANTS_CUT] = 0
    write_priority(head, PRIORITIES - 1)
    write_ip_checksum(head)
    view.row[HEAD_LEN] = ACK_HEAD_BYTES
    return packet


@inline
def go_back_to(qp: Qp, psn: int) -> None:
    """Start again from a packet that is not acknowledged."""
    state = qp.state
    state[NEXT_PSN] = state[NAKED_PSN] = psn
    state[SENDS_CURRENT] = state[SENDS_FIRST]
    while (
        state[SENDS_CURRENT] + 1 < state[SENDS_END]
        and qp.sends[(state[SENDS_CURRENT] + 1) % RING * REQUEST_WORDS + 3] <= psn
    ):
        state[SENDS_CURRENT] += 1
    state[PROBES] = state[PROBING] = 0
    state[TIMED_PSN] = -1  # Karn: a retransmitted packet's round trip is ambiguous


@inline
def halve_retry(qp: Qp) -> None:
    """Let half as many packets as before go out from the one that was cut again, at least it."""
    state = qp.state
    psn = state[NAKED_PSN]
    packets = min(state[RETRY_END] - psn, state[ALLOWED])
    state[RETRY_END] = psn + max(1, packets // 2)
    state[RETRIES] += 1


@inline
def receive_cut_notice(
    arena: Arena, at: int, number: int, qp: Qp, head: Bytes, now_ps: int
) -> None:
    """Go back to the packet that a notice asks for, and tell the controller of the loss."""
    state = qp.state
    psn = full_number(get24(head, PSN_AT), state[ACKED_PSN])
    state[UNANSWERED] = 0
    goes_back = (
        head[SYNDROME_AT] > 0
        and state[ACKED_PSN] <= psn < state[NEXT_PSN]
        and state[RETRIES] < MOST_RETRIES
    )
    if goes_back:
        if psn == state[NAKED_PSN]:
            halve_retry(qp)
        go_back_to(qp, psn)
    losses = 1 if goes_back else 0
    if state[CONTROL_AT] and arena.words[state[CONTROL_AT] + COUNTS_CUTS]:
        losses = min(get24(head, SYNDROME_AT + 1), MOST_TOLD)
    for _ in range(losses):
        note_loss(arena, at, qp, 0, now_ps)
    offer(arena, at, number, qp, now_ps)
