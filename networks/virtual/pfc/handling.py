"""The handler of a network's events with PFC: what `networks/virtual/loop.py` does without."""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena
from ringleaf.core.compiled import call_handler, handler, inline
from ringleaf.core.packets import HEAD_LEN, PLACE, free_packet, open_packet, row_of
from ringleaf.networks.virtual.events import AGAIN, ARRIVAL, CLONED, IDLE, TIMER
from ringleaf.networks.virtual.lines import await_idle, capture
from ringleaf.networks.virtual.loop import busied, note_busied
from ringleaf.networks.virtual.pfc.frames import is_pause, take_frame
from ringleaf.networks.virtual.pfc.hosts import serve, tell_agents
from ringleaf.networks.virtual.pfc.layout import PAUSED, pause_row
from ringleaf.networks.virtual.pfc.queues import eligible
from ringleaf.networks.virtual.pfc.switches import cross_switch, drain, forward
from ringleaf.networks.virtual.state import node_row, port_row
from ringleaf.networks.virtual.stations import reach_agent, ring_agent
from ringleaf.switches.engine.replication import send_twin


@inline
def take_pause(arena: Arena, at: int, node: int, port: int, packet: int, now_ps: int) -> None:
    """Handle a pause frame that arrives at a port."""
    words = arena.words
    here, mine = port_row(words, at, port), pause_row(words, at, port)
    goes_on = take_frame(arena, mine, open_packet(arena, packet).head, now_ps)
    free_packet(arena, packet)
    if words[node + s.KIND] == s.HOST:
        tell_agents(words, at, port)
        if goes_on:
            serve(arena, at, node, now_ps)
    elif goes_on and eligible(words, words[here + s.QUEUES_AT], words[mine + PAUSED]) > 0:
        if words[here + s.BUSY_UNTIL_PS] > now_ps:
            await_idle(words, at, port)
        elif not words[here + s.DRAINING]:
            drain(arena, at, port, now_ps)


@inline
def arrive(arena: Arena, at: int, node: int, port: int, packet: int, now_ps: int) -> None:
    """Let a packet arrive at a node; pause frames go no further than the port that they come to."""
    words = arena.words
    words[at + s.HOPS] += 1
    here = port_row(words, at, port)
    if words[here + s.CAPTURE] & s.CAPTURE_RECEIVED:
        order = busied(words, node, now_ps)
        capture(arena, at, port, packet, now_ps - words[here + s.INWARD_PS], order)
    view = open_packet(arena, packet)
    if words[node + s.KIND] == s.OUTSIDE:  # live: it is for a socket, pause frames as well
        call_handler(words[node + s.INGRESS], arena, words[node + s.BLOCK_AT], packet, now_ps)
    elif is_pause(view.head, view.row[HEAD_LEN]):
        take_pause(arena, at, node, port, packet, now_ps)
    elif words[node + s.KIND] == s.SWITCH:
        cross_switch(arena, at, node, port, packet, now_ps)
    else:
        reach_agent(arena, at, node, packet, now_ps)
        serve(arena, at, node, now_ps)


@handler
def handle(arena: Arena, at: int, event: int, now_ps: int) -> int:
    """Handle one event of a network with PFC; `event` is as in the loop's `handle`."""
    words = arena.words
    kind, index = event & 7, event >> 3
    if kind == TIMER:
        node = ring_agent(arena, at, index, now_ps)
        if node >= 0:
            serve(arena, at, node, now_ps)
        return 0
    port = index if kind == IDLE else words[row_of(words, index) + PLACE]
    here = port_row(words, at, port)
    node = node_row(words, at, words[here + s.NODE])
    if kind == ARRIVAL:
        arrive(arena, at, node, port, index, now_ps)
    elif kind == AGAIN:
        words[at + s.HOPS] += 1
        note_busied(words, node, now_ps)
        cross_switch(arena, at, node, port, index, now_ps)
    elif kind == CLONED:
        note_busied(words, node, now_ps)
        count = send_twin(arena, words[node + s.BLOCK_AT], index)
        forward(arena, at, node, count, now_ps)
    else:
        words[here + s.DRAINING] = 0
        if words[node + s.KIND] == s.SWITCH:
            note_busied(words, node, now_ps)
            drain(arena, at, port, now_ps)
        else:
            serve(arena, at, node, now_ps)
    return 0
