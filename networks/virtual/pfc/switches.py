"""Switches with PFC: what `networks/virtual/crossing.py` does without.

A packet is dropped if the port that
it came by has no room for it, and not for the length of the queue that it joins: if headroom is
large enough, that never happens.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.compiled import call_handler, inline, signed
from ringleaf.core.packets import (
    ENQUEUED_PS,
    IN_PORT,
    MARK,
    OUTBOX_AT,
    OUTBOX_ROWS,
    free_packet,
    open_packet,
    row_bytes,
    row_of,
)
from ringleaf.networks.virtual.bins import note_queues
from ringleaf.networks.virtual.crossing import arrive_again, find_port, go_round, leave_switch
from ringleaf.networks.virtual.drops import note_drop
from ringleaf.networks.virtual.lines import await_idle
from ringleaf.networks.virtual.pfc.charges import (
    charge,
    discharge,
    has_room,
    join_ring,
    leave_ring,
)
from ringleaf.networks.virtual.pfc.frames import send_frame
from ringleaf.networks.virtual.pfc.layout import PAUSED, UNTOLD, pause_row
from ringleaf.networks.virtual.pfc.queues import eligible, pop_eligible
from ringleaf.networks.virtual.state import node_row, port_row
from ringleaf.switches.engine.layout import AGAIN_PORT, PRIORITY, ROUND_PORT
from ringleaf.switches.engine.queues import DROPPED, LENGTHS, push
from ringleaf.switches.engine.replication import replicate


@inline
def level_of(arena: Arena, packet: int) -> int:
    """Return the class of a packet's queue, 0 to 7: the program's `standard_metadata.priority`."""
    return signed(open_packet(arena, packet).fields[PRIORITY]) & 7


@inline
def enqueue(arena: Arena, at: int, node: int, port: int, packet: int, copy: int, now: int) -> bool:
    """Send a packet, or put it in a queue, and return whether it is in one.

    `copy` is one that is in a queue and came with it; -1: there is none.
    """
    words = arena.words
    here, mine = port_row(words, at, port), pause_row(words, at, port)
    queues, level, row = words[here + s.QUEUES_AT], level_of(arena, packet), row_of(words, packet)
    words[row + ENQUEUED_PS] = now
    words[row + MARK] = words[queues + LENGTHS + level]
    paused = words[mine + PAUSED]
    is_paused = paused >> level & 1 > 0
    is_idle = words[here + s.BUSY_UNTIL_PS] <= now and words[mine + UNTOLD] == 0
    if is_idle and not is_paused and eligible(words, queues, paused) == 0:
        leave_switch(arena, at, port, packet, now)
        return False
    size = row_bytes(words, row)
    came_by = find_port(words, node, words[row + IN_PORT])
    if copy >= 0 and (
        level_of(arena, copy) != level or row_bytes(words, row_of(words, copy)) != size
    ):
        copy = -1
    if copy < 0 and not has_room(words, at, came_by, level, size):
        words[queues + DROPPED] += 1
        note_drop(arena, at, port, level, packet, now)
        free_packet(arena, packet)
        return False
    push(words, queues, packet, level)
    join_ring(words, packet, copy)
    if not is_paused:
        await_idle(words, at, port)
    if words[at + s.QUEUE_BINS_AT]:
        note_queues(words, at, port, now)
    if copy < 0:
        charge(arena, at, came_by, level, size, now)
    return True


@inline
def forward(arena: Arena, at: int, node: int, count: int, now_ps: int) -> None:
    """Take packets from the outbox to the queues of their ports, or to ingress again."""
    words = arena.words
    outbox = arena.own[OUTBOX_AT]
    copy = -1
    for row in range(outbox, outbox + 2 * count, 2):
        packet, out = words[row], words[row + 1]
        port = find_port(words, node, out)
        if port >= 0:
            if enqueue(arena, at, node, port, packet, copy, now_ps):
                copy = packet
        elif out == AGAIN_PORT:
            arrive_again(words, at, node, packet, now_ps)
        elif out == ROUND_PORT:
            go_round(arena, at, node, packet, now_ps)
        else:
            free_packet(arena, packet)


@inline
def cross_switch(arena: Arena, at: int, node: int, port: int, packet: int, now_ps: int) -> None:
    """Run a switch's ingress on a packet that came by a port, and forward what comes of it."""
    words = arena.words
    block = words[node + s.BLOCK_AT]
    words[row_of(words, packet) + IN_PORT] = words[port_row(words, at, port) + s.LOCAL_PORT]
    call_handler(words[node + s.INGRESS], arena, block, packet, now_ps)
    forward(arena, at, node, replicate(arena, block, packet, now_ps), now_ps)


@inline
def drain(arena: Arena, at: int, port: int, now_ps: int) -> None:
    """Send a pause frame, or else from queues that are not paused, as a port falls idle."""
    words = arena.words
    here, mine = port_row(words, at, port), pause_row(words, at, port)
    node = node_row(words, at, words[here + s.NODE])
    queues, paused = words[here + s.QUEUES_AT], words[mine + PAUSED]
    if words[at + s.QUEUE_BINS_AT]:
        note_queues(words, at, port, now_ps)
    if words[mine + UNTOLD] and words[here + s.BUSY_UNTIL_PS] <= now_ps:
        send_frame(arena, at, port, now_ps)
    turns = OUTBOX_ROWS
    while (
        words[here + s.BUSY_UNTIL_PS] <= now_ps
        and turns > 0
        and eligible(words, queues, paused) > 0
    ):
        turns -= 1
        packet = pop_eligible(arena, mine, queues, now_ps)
        row, level = row_of(words, packet), level_of(arena, packet)
        came_by, size = find_port(words, node, words[row + IN_PORT]), row_bytes(words, row)
        is_last = leave_ring(words, packet)
        leave_switch(arena, at, port, packet, now_ps)
        if is_last:
            discharge(arena, at, came_by, level, size, now_ps)
    if eligible(words, queues, paused) > 0 or words[mine + UNTOLD]:
        await_idle(words, at, port)
