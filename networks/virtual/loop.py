"""The compiled event loop: packets cross links and switches in virtual time.

There is one event per packet and hop: its last bit has arrived (store and forward), and the delay
inside the node is over. Nodes' delays (`ringleaf.topologies.delays`) are thus part of links'
delays, and cost no events. A port that is busy gets one more event, when it falls idle. What
agents report is passed to executors here (`networks/endpoints/driver.py`); Python is called back,
by returning, only when a collective is done.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import call_handler, compiled, handler, inline
from ringleaf.core.heap import (
    CAPACITY,
    COUNT,
    LAST_OWN,
    OWN,
    first_event,
    first_time_ps,
    second_event,
)
from ringleaf.core.native_types import ARENA
from ringleaf.core.packets import (
    HEAD_BYTES,
    HEADS_AT,
    OUTBOX_ROWS,
    PHVS_FREE,
    PLACE,
    POOL_FREE,
    row_of,
)
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import prefetch
from ringleaf.hosts.agent import NUMBER
from ringleaf.networks.endpoints.driver import (
    ACT,
    DISPATCH,
    DRIVE,
    due_ps,
    is_noteworthy,
    is_pending,
)
from ringleaf.networks.virtual.crossing import cross_switch, drain, forward
from ringleaf.networks.virtual.events import AGAIN, ARRIVAL, CLONED, IDLE, TIMER
from ringleaf.networks.virtual.lines import capture, take_event
from ringleaf.networks.virtual.room import EVENTS_AT_ONCE
from ringleaf.networks.virtual.state import agent_row, node_row, port_row
from ringleaf.networks.virtual.stations import (
    arm_timer,
    fetch_for_packet,
    reach_host,
    ring_timer,
    serve_agents,
)
from ringleaf.switches.engine.replication import send_twin

# Reasons for `run` to return.
REPORTED = 1  # collectives are done, or agents have reported that no driver looks after
EMPTY = 2  # nothing is left to happen
UNTIL = 3  # the next event is later than asked for
NEEDS_ROOM = 4  # the packet pool or the heap must grow
CAPTURED = 5  # the capture buffer must be emptied


MOST_BYTES_AHEAD = 1088  # of a head, that are fetched before its event: 256 lanes and headers


@inline
def busied(words: Words, node: int, now_ps: int) -> int:
    """Return the number of a switch's own events handled in this instant.

    By it, a replay finds the place of a packet that arrives in the same instant among them.
    """
    return words[node + s.BUSIED] if words[node + s.BUSIED_PS] == now_ps else 0


@inline
def note_busied(words: Words, node: int, now_ps: int) -> None:
    """Count an event of a switch's own in this instant, for `busied`."""
    words[node + s.BUSIED] = busied(words, node, now_ps) + 1
    words[node + s.BUSIED_PS] = now_ps


@inline
def handle(arena: Arena, at: int, event: int, now_ps: int) -> None:
    """Handle one event: `event` is its kind in 3 bits, then a packet, port or timer above them."""
    words = arena.words
    # Pauses change what each event does. They have compiled handlers of their own, so that runs
    # without them pay one comparison.
    if words[at + s.PFC_AT]:
        call_handler(words[words[at + s.PFC_AT] + s.PFC_HANDLE], arena, at, event, now_ps)
        return
    kind, index = event & 7, event >> 3
    if kind == TIMER:
        ring_timer(arena, at, index, now_ps)
        return
    number = index if kind == IDLE else words[row_of(words, index) + PLACE]
    here = port_row(words, at, number)
    node = node_row(words, at, words[here + s.NODE])
    is_switch = words[node + s.KIND] == s.SWITCH
    if kind == ARRIVAL:
        words[at + s.HOPS] += 1
        if words[here + s.CAPTURE] & s.CAPTURE_RECEIVED:
            # A captured packet notes how many own events of the switch came before it in this
            # instant, which its time can't tell.
            order = busied(words, node, now_ps)
            capture(arena, at, number, index, now_ps - words[here + s.INWARD_PS], order)
        if is_switch:
            cross_switch(arena, at, node, number, index, now_ps)
        elif words[node + s.KIND] == s.OUTSIDE:
            call_handler(words[node + s.INGRESS], arena, words[node + s.BLOCK_AT], index, now_ps)
        else:
            reach_host(arena, at, node, index, now_ps)
    elif kind == AGAIN:
        words[at + s.HOPS] += 1
        note_busied(words, node, now_ps)
        cross_switch(arena, at, node, number, index, now_ps)
    elif kind == CLONED:
        note_busied(words, node, now_ps)
        count = send_twin(arena, words[node + s.BLOCK_AT], index)
        forward(arena, at, node, count, now_ps)
    else:
        words[here + s.DRAINING] = 0
        if is_switch:
            note_busied(words, node, now_ps)
            drain(arena, at, number, now_ps)
        else:
            serve_agents(arena, at, node, now_ps)


@inline
def lacks_room(arena: Arena, at: int) -> int:
    """Return why the next event can't be handled yet, or 0; it may send and clone OUTBOX_ROWS."""
    words = arena.words
    heap = words[at + s.HEAP_AT]
    if min(arena.own[POOL_FREE], arena.own[PHVS_FREE]) < 2 * OUTBOX_ROWS:
        return NEEDS_ROOM
    if words[heap + COUNT] + EVENTS_AT_ONCE > words[heap + CAPACITY]:
        return NEEDS_ROOM
    # Own events of one instant are ordered by a number, which must not run out of its bits; Python
    # renumbers them.
    if words[heap + OWN] > LAST_OWN:
        return NEEDS_ROOM
    if words[at + s.TEAM] and is_box_full(words, at):
        return NEEDS_ROOM
    if words[at + s.CAPTURE_ROOM] > 0:
        rows_left = words[at + s.CAPTURE_ROWS] - words[at + s.CAPTURE_COUNT]
        bytes_left = words[at + s.CAPTURE_ROOM] - words[at + s.CAPTURE_USED]
        if rows_left < words[at + s.CAPTURE_RESERVE_ROWS]:
            return CAPTURED
        if bytes_left < words[at + s.CAPTURE_RESERVE]:
            return CAPTURED
    return 0


@inline
def is_box_full(words: Words, at: int) -> bool:
    """Return whether one event might leave more packets for another region than there is room."""
    full = False
    for region in range(words[words[at + s.TEAM]]):
        box = s.box_of(words, at, region, words[at + s.HALF])
        full |= words[box] + EVENTS_AT_ONCE > s.BOX_ROWS
    return full


@inline
def lacks_room_to_wake(arena: Arena, at: int) -> int:
    """Return why the next agent can't be woken yet, or 0; it sends one packet at most."""
    words = arena.words
    if words[at + s.CAPTURE_ROOM] > 0:
        longest = words[at + s.CAPTURE_RESERVE] // words[at + s.CAPTURE_RESERVE_ROWS]
        if words[at + s.CAPTURE_ROWS] - words[at + s.CAPTURE_COUNT] < 2:
            return CAPTURED
        if words[at + s.CAPTURE_ROOM] - words[at + s.CAPTURE_USED] < 2 * longest:
            return CAPTURED
    heap = words[at + s.HEAP_AT]
    if arena.own[POOL_FREE] < OUTBOX_ROWS or (words[at + s.TEAM] and is_box_full(words, at)):
        return NEEDS_ROOM
    if words[heap + COUNT] + OUTBOX_ROWS > words[heap + CAPACITY]:
        return NEEDS_ROOM
    return 0


@inline
def next_time_ps(words: Words, heap: int) -> int:
    """Return the time of the heap's first event; FOREVER_PS if there is none."""
    return first_time_ps(words, heap) if words[heap + COUNT] > 0 else FOREVER_PS


@inline
def go_on(arena: Arena, at: int, time_ps: int, until_ps: int) -> int:
    """Let executors go on, before an event of a later time.

    Returns:
        The reason for `run` to return; 0: nothing is left to do; -1: there may be more.
    """
    words = arena.words
    driver = words[at + s.DRIVER]
    if driver == 0:
        return REPORTED if words[words[at + s.RING_AT]] > 0 else 0
    what = DISPATCH
    if not is_pending(words, driver):
        # An executor's step at the time of an event comes after all events of that instant.
        if due_ps(words, driver) >= time_ps:
            return 0
        if due_ps(words, driver) > until_ps:
            return UNTIL
        what = ACT
    pause = call_handler(words[driver + DRIVE], arena, driver, what, 0)
    if is_noteworthy(words, driver):
        return REPORTED
    return pause if pause else -1


@inline
def look_ahead(arena: Arena, at: int, heap: int) -> None:
    """Fetch what the next two events need: others have pushed it out of caches.

    Of the second, that is its packet. So the first one's is there, which tells an agent the rest.
    """
    words = arena.words
    event = first_event(words, heap)
    if event & 7 == ARRIVAL:
        here = port_row(words, at, words[row_of(words, event >> 3) + PLACE])
        node = node_row(words, at, words[here + s.NODE])
        if words[node + s.FETCHES_AHEAD]:
            fetch_for_packet(arena, at, node, event >> 3)
    event = second_event(words, heap)
    if event & 7 == ARRIVAL:
        fetch_packet(arena, at, event >> 3)


@inline
def fetch_packet(arena: Arena, at: int, packet: int) -> None:
    """Fetch a packet, and the port where it arrives."""
    words = arena.words
    row = row_of(words, packet)
    prefetch(words, row)
    prefetch(words, row + 8)
    head = words[HEADS_AT] + packet * words[HEAD_BYTES]
    for place in range(head, head + min(words[HEAD_BYTES], MOST_BYTES_AHEAD), 64):
        prefetch(arena.bytes, place)
    prefetch(words, port_row(words, at, words[row + PLACE]))


@compiled(types.int64(ARENA, types.int64, types.int64))
def run(arena: Arena, at: int, until_ps: int) -> int:
    """Handle events until Python is needed; return the reason why it stopped.

    Events of the instant in which an agent reports are all handled first.
    """
    words = arena.words
    heap = words[at + s.HEAP_AT]
    now_ps = -1
    while True:
        time_ps = next_time_ps(words, heap)
        # Executors go on between instants only, so that events of one time are all handled before.
        if time_ps > now_ps:
            reason = go_on(arena, at, time_ps, until_ps)
            if reason > 0:
                return reason
            if reason < 0:
                continue
            if time_ps == FOREVER_PS:
                return EMPTY
            if time_ps > until_ps:
                return UNTIL
        reason = lacks_room(arena, at)
        if reason:
            return reason
        now_ps = time_ps
        words[at + s.EVENTS] += 1
        event = take_event(words, at)
        look_ahead(arena, at, heap)
        handle(arena, at, event, now_ps)


@handler
def wake(arena: Arena, at: int, agent: int, now_ps: int) -> int:
    """Serve an agent that has been given something to do; return why no other may be, or 0."""
    words = arena.words
    number = words[agent + NUMBER]
    arm_timer(words, at, number, now_ps)
    node = node_row(words, at, words[agent_row(words, at, number) + s.AGENT_NODE])
    if words[at + s.PFC_AT]:
        call_handler(words[words[at + s.PFC_AT] + s.PFC_SERVE], arena, at, node, now_ps)
    else:
        serve_agents(arena, at, node, now_ps)
    return lacks_room_to_wake(arena, at)


@handler
def hold(_arena: Arena, _at: int, _agent: int, _now_ps: int) -> int:
    """Leave an agent that has been given something to do until somebody wakes it."""
    return 0
