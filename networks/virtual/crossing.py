"""Packets through switches: ingress, replication, the ports' queues, egress."""

from __future__ import annotations

import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import call_handler, inline, signed
from ringleaf.core.packets import (
    ENQUEUED_PS,
    IN_PORT,
    MARK,
    OUTBOX_AT,
    OUTBOX_ROWS,
    TWIN,
    fields_of,
    free_packet,
    row_of,
)
from ringleaf.core.units import PS_PER_US
from ringleaf.core.views import window
from ringleaf.networks.virtual.bins import note_queues
from ringleaf.networks.virtual.drops import note_drop
from ringleaf.networks.virtual.events import AGAIN, CLONED
from ringleaf.networks.virtual.lines import await_idle, push_packet, send
from ringleaf.networks.virtual.state import node_row, port_row
from ringleaf.switches.engine.disciplines import pop
from ringleaf.switches.engine.layout import (
    AGAIN_PORT,
    CLONE,
    DEQ_QDEPTH,
    DEQ_TIMEDELTA,
    EGRESS_PORT,
    ENQ_QDEPTH,
    ENQ_TIMESTAMP,
    PORT_COUNT,
    PRIORITY,
    ROUND,
    ROUND_PORT,
    SEND,
    STANDARD_FIELDS,
)
from ringleaf.switches.engine.queues import LENGTHS, PACKETS, push
from ringleaf.switches.engine.replication import may_pass, replicate


@inline
def find_port(words: Words, node: int, local: int) -> int:
    """Return the port that a switch knows by a number, -1 if there is none."""
    if 1 <= local <= words[words[node + s.BLOCK_AT] + PORT_COUNT]:
        return words[node + s.FIRST_PORT] + local - 1
    return words[node + s.CPU_AT] if 0 < local == words[node + s.CPU_PORT] else -1


@inline
def arrive_again(words: Words, at: int, node: int, packet: int, now_ps: int) -> None:
    """Let a packet pass ingress once more, which takes time again, from the port it came by."""
    port = find_port(words, node, words[row_of(words, packet) + IN_PORT])
    due_ps = now_ps + words[node + s.PASS_PS]
    push_packet(words, at, due_ps, AGAIN, port, packet)


@inline
def split_off(arena: Arena, at: int, port: int, packet: int, flags: int, now_ps: int) -> bool:
    """Carry out egress's flags (clone, send, go round); return whether the packet was sent.

    A clone is an event of its own at this instant; so is a packet that goes round, but it has to
    pass ingress first.
    """
    words = arena.words
    node = node_row(words, at, words[port_row(words, at, port) + s.NODE])
    if flags & CLONE:
        push_packet(words, at, now_ps, CLONED, port, words[row_of(words, packet) + TWIN])
    if flags & SEND:
        send(arena, at, port, packet, now_ps)
        return True
    stay(arena, at, node, packet, flags, now_ps)
    return False


@inline
def stay(arena: Arena, at: int, node: int, packet: int, flags: int, now_ps: int) -> None:
    """Let a packet that egress does not send go round, or else end."""
    words = arena.words
    if flags & ROUND and may_pass(arena, words[node + s.BLOCK_AT], packet):
        arrive_again(words, at, node, packet, now_ps)
    else:
        free_packet(arena, packet)


@inline
def go_round(arena: Arena, at: int, node: int, packet: int, now_ps: int) -> None:
    """Run egress at once on a packet for PSA's port of recirculation, which has no queue."""
    words = arena.words
    port = find_port(words, node, words[row_of(words, packet) + IN_PORT])
    arena.fields[fields_of(words, packet) + EGRESS_PORT] = np.uint64(ROUND_PORT)
    flags = call_handler(words[node + s.EGRESS], arena, words[node + s.BLOCK_AT], packet, now_ps)
    if flags & CLONE:
        push_packet(words, at, now_ps, CLONED, port, words[row_of(words, packet) + TWIN])
    stay(arena, at, node, packet, flags, now_ps)


@inline
def leave_switch(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> bool:
    """Run egress on a packet that leaves its queue; return whether the packet was sent.

    Depths are of the packet's class, as in BMv2.
    """
    words = arena.words
    here = port_row(words, at, port)
    node = node_row(words, at, words[here + s.NODE])
    row = row_of(words, packet)
    enqueued_ps = words[row + ENQUEUED_PS]
    fields = window(arena.fields, fields_of(arena.words, packet), STANDARD_FIELDS)
    fields[EGRESS_PORT] = np.uint64(words[here + s.LOCAL_PORT])
    # BMv2's time stamps count microseconds.
    fields[ENQ_TIMESTAMP] = np.uint64(enqueued_ps // PS_PER_US)
    fields[ENQ_QDEPTH] = np.uint64(words[row + MARK])
    fields[DEQ_TIMEDELTA] = np.uint64((now_ps - enqueued_ps) // PS_PER_US)
    level = signed(fields[PRIORITY]) & 7
    fields[DEQ_QDEPTH] = np.uint64(words[words[here + s.QUEUES_AT] + LENGTHS + level])
    flags = call_handler(words[node + s.EGRESS], arena, words[node + s.BLOCK_AT], packet, now_ps)
    # Most packets are only sent or dropped; the rare flags are looked at in one comparison.
    if flags > SEND:
        return split_off(arena, at, port, packet, flags, now_ps)
    if flags:
        send(arena, at, port, packet, now_ps)
        return True
    free_packet(arena, packet)
    return False


@inline
def is_trimmed(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> bool:
    """Have a packet that found a queue full trimmed, if switches do so; return whether it was."""
    block = arena.words[at + s.TRIM_AT]
    if block == 0:
        return False
    return call_handler(arena.words[block], arena, at, packet | port << s.PACKET_BITS, now_ps) > 0


@inline
def enqueue(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> None:
    """Send a packet by an idle port, or else put it in its class's queue, or trim or drop it.

    ENQUEUED_PS and MARK, the depth that it finds, are noted for `leave_switch`.
    """
    words = arena.words
    here = port_row(words, at, port)
    queues = words[here + s.QUEUES_AT]
    level = signed(arena.fields[fields_of(words, packet) + PRIORITY]) & 7
    row = row_of(words, packet)
    words[row + ENQUEUED_PS] = now_ps
    # BMv2's enq_qdepth is the depth before this packet, so it is noted before the packet is queued.
    words[row + MARK] = words[queues + LENGTHS + level]
    # An idle port with empty queues needs no event of its own: egress runs within this one.
    if words[queues + PACKETS] == 0 and words[here + s.BUSY_UNTIL_PS] <= now_ps:
        leave_switch(arena, at, port, packet, now_ps)
    elif push(words, queues, packet, level):
        await_idle(words, at, port)
        if words[at + s.QUEUE_BINS_AT]:
            note_queues(words, at, port, now_ps)
    elif not is_trimmed(arena, at, port, packet, now_ps):
        note_drop(arena, at, port, level, packet, now_ps)
        free_packet(arena, packet)


@inline
def drain(arena: Arena, at: int, port: int, now_ps: int) -> None:
    """Send from the queues of a port that fell idle, until one packet is on the line."""
    words = arena.words
    queues = words[port_row(words, at, port) + s.QUEUES_AT]
    if words[at + s.QUEUE_BINS_AT]:
        note_queues(words, at, port, now_ps)
    went = False
    turns = OUTBOX_ROWS  # one event may not make more packets than there is room for
    while words[queues + PACKETS] > 0 and not went and turns > 0:
        turns -= 1
        # Egress may drop a packet or turn it round. The line is free for the next one then, in the
        # same instant.
        went = leave_switch(arena, at, port, pop(arena, queues, now_ps), now_ps)
    if words[queues + PACKETS] > 0:
        await_idle(words, at, port)


@inline
def forward(arena: Arena, at: int, node: int, count: int, now_ps: int) -> None:
    """Take `count` packets from the outbox to the queues of their ports, or to ingress again."""
    words = arena.words
    outbox = arena.own[OUTBOX_AT]
    for row in range(outbox, outbox + 2 * count, 2):
        packet, out = words[row], words[row + 1]
        port = find_port(words, node, out)
        if port >= 0:
            enqueue(arena, at, port, packet, now_ps)
        elif out == AGAIN_PORT:
            arrive_again(words, at, node, packet, now_ps)
        elif out == ROUND_PORT:
            go_round(arena, at, node, packet, now_ps)
        else:
            free_packet(arena, packet)  # as BMv2: no such port, no packet


@inline
def cross_switch(arena: Arena, at: int, node: int, port: int, packet: int, now_ps: int) -> None:
    """Run a switch's ingress on a packet that came by a port, and forward what comes of it."""
    words = arena.words
    block = words[node + s.BLOCK_AT]
    words[row_of(words, packet) + IN_PORT] = words[port_row(words, at, port) + s.LOCAL_PORT]
    call_handler(words[node + s.INGRESS], arena, block, packet, now_ps)
    forward(arena, at, node, replicate(arena, block, packet, now_ps), now_ps)
