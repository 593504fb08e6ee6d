"""The three handlers of an rc agent (`hosts/agent.py`)."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.core.headers import get24
from ringleaf.core.packets import HEAD_LEN, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import CORRUPTED, READY, TIMER_AT_PS
from ringleaf.hosts.fifo import FIFO_COUNT, open_fifo
from ringleaf.hosts.rc.congestion import receive_notice, tend
from ringleaf.hosts.rc.icrc import is_damaged
from ringleaf.hosts.rc.queue import offer, open_levels, sendable, take_sender
from ringleaf.hosts.rc.receiver import is_whole, make_answer, receive_data, receive_probe
from ringleaf.hosts.rc.sender import expire, make_data, make_probe, receive_answer
from ringleaf.hosts.rc.state import (
    ANSWERS_AT,
    CONTROL_AT,
    DEADLINE_PS,
    IN_SENDERS,
    PROBING,
    QP_COUNT,
    RATE_BPS,
    TAKES_CUTS,
    TURN,
    open_qp,
)
from ringleaf.hosts.rc.trimming import receive_cut, receive_cut_notice
from ringleaf.hosts.rc.wire import ACKNOWLEDGE, CNP, CUT, DEST_QP_AT, HEAD_BYTES, OPCODE_AT, PROBE


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the next packet: acknowledgements, then queue pairs in turn, by priority."""
    words = arena.words
    answers = open_fifo(arena, at + ANSWERS_AT)
    packet = -1
    if answers.state[FIFO_COUNT] > 0:
        packet = make_answer(arena, at)
    while packet < 0 and open_levels(arena, at) > 0:
        number = take_sender(arena, at)
        qp = open_qp(arena, at, number)
        qp.state[IN_SENDERS] = 0
        if sendable(qp, now_ps):
            packet = make_data(arena, at, number, qp, now_ps)
            offer(arena, at, number, qp, now_ps)
            if qp.state[RATE_BPS] > 0:
                words[at + TURN] = number + 1
        elif qp.state[PROBING]:
            packet = make_probe(arena, at, qp, now_ps)
            offer(arena, at, number, qp, now_ps)
        elif qp.state[RATE_BPS] > 0:
            offer(arena, at, number, qp, now_ps)  # another has used their rate: wait for the timer
    words[at + READY] = answers.state[FIFO_COUNT] + open_levels(arena, at) > 0
    return packet


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a packet of RoCEv2, for the queue pair of its destination; ignore one for no queue pair.

    Queue pair number n of the agent is n + 1 on the wire. One with a wrong ICRC is discarded before
    anything in it is believed.
    """
    view = open_packet(arena, packet)
    head = view.head
    if is_damaged(view):
        arena.words[at + CORRUPTED] += 1
        return 0
    number = get24(head, DEST_QP_AT) - 1
    if not 0 <= number < arena.words[at + QP_COUNT]:
        return 0
    qp = open_qp(arena, at, number)
    if not is_whole(view):
        if arena.words[at + TAKES_CUTS] and view.row[HEAD_LEN] >= HEAD_BYTES:
            receive_cut(arena, at, number, qp, head)
    elif head[OPCODE_AT] == ACKNOWLEDGE:
        receive_answer(arena, at, number, qp, head, now_ps)
    elif head[OPCODE_AT] == CNP:
        receive_notice(arena, at, qp, now_ps)
    elif head[OPCODE_AT] == CUT:
        receive_cut_notice(arena, at, number, qp, head, now_ps)
    elif head[OPCODE_AT] == PROBE:
        receive_probe(arena, at, number, qp, head)
    else:
        receive_data(arena, at, number, qp, packet, now_ps)
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Expire the deadlines that are due, and set the agent's timer to the earliest one left."""
    words = arena.words
    words[at + TIMER_AT_PS] = FOREVER_PS
    count = words[at + QP_COUNT]
    for i in range(count):
        number = (words[at + TURN] + i) % count
        qp = open_qp(arena, at, number)
        if qp.state[DEADLINE_PS] <= now_ps:
            expire(arena, at, number, qp, now_ps)
        if qp.state[CONTROL_AT]:
            tend(arena, at, qp, now_ps)
        if qp.state[CONTROL_AT] or qp.state[RATE_BPS]:
            offer(arena, at, number, qp, now_ps)
        words[at + TIMER_AT_PS] = min(words[at + TIMER_AT_PS], qp.state[DEADLINE_PS])
    return 0
