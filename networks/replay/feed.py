"""Packets from a trace among the event loop's own events.

The switch's own events are on the heap, as in any network; the packets it receives are in the feed,
and the trace gives their place among the events of one instant.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import compiled, copy_items, inline
from ringleaf.core.heap import COUNT, first_time_ps
from ringleaf.core.native_types import ARENA
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.virtual.crossing import cross_switch
from ringleaf.networks.virtual.lines import take_event
from ringleaf.networks.virtual.loop import EMPTY, UNTIL, busied, handle, lacks_room
from ringleaf.networks.virtual.state import node_row, port_row

HUNGRY = 6  # a reason for `run` to return: the feed must be filled

# The feed's block of words.
ROWS_AT = 0
ROWS = 1  # number of rows
NEXT = 2  # the next row
MORE = 3  # 1: others will follow
BYTES_AT = 4  # in arena.bytes
FEED_WORDS = 8

# A row: time_ps, port (its global number), order, offset of its bytes, their count.
ROW_WORDS = 5


def make_feed(store: Store, *, rows: int, size_bytes: int) -> int:
    """Return the offset in `arena.words` of an empty feed, with MORE set.

    Args:
        store: The store that holds it.
        rows: Packets that there is room for at a time.
        size_bytes: Room for their bytes.
    """
    at = store.allocate("words", FEED_WORDS)
    rows_at = store.allocate("words", rows * ROW_WORDS)
    bytes_at = store.allocate("bytes", size_bytes)
    store.arena.words[at + ROWS_AT] = rows_at
    store.arena.words[at + BYTES_AT] = bytes_at
    store.arena.words[at + MORE] = 1
    return at


@inline
def receive(arena: Arena, at: int, row: int) -> None:
    """Let the switch receive the packet of a row."""
    words = arena.words
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    size = words[row + 4]
    copy_items(view.head, 0, arena.bytes, words[row + 3], size)
    view.row[HEAD_LEN] = size
    port = words[row + 1]
    node = node_row(words, at, words[port_row(words, at, port) + s.NODE])
    words[at + s.HOPS] += 1
    cross_switch(arena, at, node, port, packet, words[row])


@inline
def arrival_is_next(words: Words, at: int, row: int, event_ps: int) -> bool:
    """Return whether a packet comes before the first event of the heap."""
    if words[row] != event_ps:
        return words[row] < event_ps
    port = port_row(words, at, words[row + 1])
    return busied(words, node_row(words, at, words[port + s.NODE]), event_ps) >= words[row + 2]


@compiled(types.int64(ARENA, types.int64, types.int64, types.int64))
def run(arena: Arena, at: int, feed: int, until_ps: int) -> int:
    """Handle events and arrivals up to `until_ps`; return the reason why it stopped."""
    words = arena.words
    heap = words[at + s.HEAP_AT]
    while True:
        fed = words[feed + NEXT] < words[feed + ROWS]
        if not fed and words[feed + MORE]:
            return HUNGRY
        row = words[feed + ROWS_AT] + words[feed + NEXT] * ROW_WORDS
        event_ps = first_time_ps(words, heap) if words[heap + COUNT] > 0 else FOREVER_PS
        arrives = fed and arrival_is_next(words, at, row, event_ps)
        now_ps = words[row] if arrives else event_ps
        if now_ps == FOREVER_PS:
            return EMPTY
        if now_ps > until_ps:
            return UNTIL
        reason = lacks_room(arena, at)
        if reason:
            return reason
        words[at + s.EVENTS] += 1
        if arrives:
            words[feed + NEXT] += 1
            receive(arena, at, row)
        else:
            handle(arena, at, take_event(words, at), now_ps)
