"""The compiled event loop: packets cross links and switches in virtual time.

There is one event per packet and hop: its last bit has arrived (store and forward), and the delay
inside the node is over. Nodes' delays (`ringleaf.topologies.delays`) are thus part of links'
delays, and cost no events. A port that is busy gets one more event, when it falls idle. Python is
called back, by returning, only when an agent has reported something.
"""

from __future__ import annotations

from numba import types

import ringleaf.networks.virtual.state as s
from ringleaf.arena import Arena, Words
from ringleaf.compiled import ARENA, compiled, handler_at, inline
from ringleaf.networks.virtual.crossing import cross_switch, drain, forward
from ringleaf.networks.virtual.events import AGAIN, ARRIVAL, CLONED, TIMER
from ringleaf.networks.virtual.heap import CAPACITY, COUNT, first_time_ps, pop_event
from ringleaf.networks.virtual.lines import capture
from ringleaf.networks.virtual.state import agent_row, node_row, port_row
from ringleaf.networks.virtual.stations import arm_timer, reach_host, ring_timer, serve_agents
from ringleaf.packets import OUTBOX_ROWS, POOL_FREE
from ringleaf.switches.engine.replication import send_twin

# Reasons for `run` to return.
REPORTED = 1  # agents have reported; all events of that instant are done
EMPTY = 2  # nothing is left to happen
UNTIL = 3  # the next event is later than asked for
NEEDS_ROOM = 4  # the packet pool or the heap must grow
CAPTURED = 5  # the capture buffer must be emptied


@inline
def busied(words: Words, node: int, now_ps: int) -> int:
    """Return the number of a switch's own events handled in this instant.

    By it, a replay finds the place of a packet that arrives in the same instant among them.
    """
    return words[node + s.BUSIED] if words[node + s.BUSIED_PS] == now_ps else 0


@inline
def note_busied(words: Words, node: int, now_ps: int) -> None:
    words[node + s.BUSIED] = busied(words, node, now_ps) + 1
    words[node + s.BUSIED_PS] = now_ps


@inline
def handle(arena: Arena, at: int, event: int, now_ps: int) -> None:
    words = arena.words
    kind = event & 7
    number = (event >> 3) & 0x1FFFFFFF
    if kind == TIMER:
        ring_timer(arena, at, number, now_ps)
        return
    here = port_row(words, at, number)
    node = node_row(words, at, words[here + s.NODE])
    is_switch = words[node + s.KIND] == s.SWITCH
    if kind == ARRIVAL:
        words[at + s.HOPS] += 1
        if words[here + s.CAPTURE] & s.CAPTURE_RECEIVED:
            order = busied(words, node, now_ps)
            capture(arena, at, number, event >> 32, now_ps - words[here + s.INWARD_PS], order)
        if is_switch:
            cross_switch(arena, at, node, number, event >> 32, now_ps)
        elif words[node + s.KIND] == s.OUTSIDE:
            handler_at(words[node + s.INGRESS])(
                arena, words[node + s.BLOCK_AT], event >> 32, now_ps
            )
        else:
            reach_host(arena, at, node, event >> 32, now_ps)
    elif kind == AGAIN:
        words[at + s.HOPS] += 1
        note_busied(words, node, now_ps)
        cross_switch(arena, at, node, number, event >> 32, now_ps)
    elif kind == CLONED:
        note_busied(words, node, now_ps)
        count = send_twin(arena, words[node + s.BLOCK_AT], event >> 32)
        forward(arena, at, node, count, now_ps)
    else:
        words[here + s.DRAINING] = 0
        if is_switch:
            note_busied(words, node, now_ps)
            drain(arena, at, number, now_ps)
        else:
            serve_agents(arena, at, node, now_ps)


@inline
def lacks_room(words: Words, at: int) -> int:
    """Return why the next event can't be handled yet, or 0; it may send and clone OUTBOX_ROWS."""
    heap = words[at + s.HEAP_AT]
    if words[POOL_FREE] < 2 * OUTBOX_ROWS:
        return NEEDS_ROOM
    if words[heap + COUNT] + 4 * OUTBOX_ROWS > words[heap + CAPACITY]:
        return NEEDS_ROOM
    if words[at + s.CAPTURE_ROOM] > 0:
        rows_left = words[at + s.CAPTURE_ROWS] - words[at + s.CAPTURE_COUNT]
        bytes_left = words[at + s.CAPTURE_ROOM] - words[at + s.CAPTURE_USED]
        if rows_left < words[at + s.CAPTURE_RESERVE_ROWS]:
            return CAPTURED
        if bytes_left < words[at + s.CAPTURE_RESERVE]:
            return CAPTURED
    return 0


@compiled(types.int64(ARENA, types.int64, types.int64))
def run(arena: Arena, at: int, until_ps: int) -> int:
    """Handle events until an agent reports; return the reason why it stopped.

    Events of the instant in which an agent reports are all handled first.
    """
    words = arena.words
    heap, ring = words[at + s.HEAP_AT], words[at + s.RING_AT]
    now_ps = -1
    while words[heap + COUNT] > 0:
        time_ps = first_time_ps(words, heap)
        if time_ps > now_ps:
            if words[ring] > 0:
                return REPORTED
            if time_ps > until_ps:
                return UNTIL
        reason = lacks_room(words, at)
        if reason:
            return reason
        now_ps = time_ps
        words[at + s.EVENTS] += 1
        handle(arena, at, pop_event(words, heap), now_ps)
    return REPORTED if words[ring] > 0 else EMPTY


@compiled(types.void(ARENA, types.int64, types.int64, types.int64))
def wake(arena: Arena, at: int, agent: int, now_ps: int) -> None:
    """Serve an agent that Python has given something to do at `now_ps`."""
    words = arena.words
    arm_timer(words, at, agent, now_ps)
    node = words[agent_row(words, at, agent) + s.AGENT_NODE]
    serve_agents(arena, at, node_row(words, at, node), now_ps)
