"""When hosts have used up their windows: what they have sent, and what is carried of it.

A host sends its messages in turns, as fast as its link goes, or as windows let it; a flow's rate is
what switches carry of that. The rest is its backlog, which waits in their queues, and grows until
that and what is yet to be acknowledged are a window.
"""

from __future__ import annotations

import numpy as np

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.core.units import FOREVER_PS, PS_PER_S
from ringleaf.core.views import as_floats
from ringleaf.networks.flow.balancing import CLOSE, share_of_host, wait_ps

GRID_PS = 1 << 22
"""Windows are used up at multiples of this time, so that queues change for several at once."""


@inline
def is_long(words: Words, row: int) -> bool:
    """Return whether a flow's message is so long that its window may be used up."""
    return bool(as_floats(words)[row + n.SIZE] > words[row + n.WINDOW])


@inline
def left_of(words: Words, row: int, now_ps: int) -> float:
    """Return the bits that are left of the message that is carried."""
    floats = as_floats(words)
    carried = floats[row + n.RATE] * (now_ps - words[row + n.FROM_PS]) / PS_PER_S
    return max(floats[row + n.REST] - carried, 0.0)


@inline
def backlog_of(words: Words, row: int, now_ps: int) -> float:
    """Return the bits that a flow's host has sent, and that are not yet carried."""
    floats = as_floats(words)
    more = floats[row + n.SENDS] - floats[row + n.RATE]
    return max(floats[row + n.BACKLOG] + more * (now_ps - words[row + n.FROM_PS]) / PS_PER_S, 0.0)


@inline
def move_on(words: Words, row: int, now_ps: int) -> None:
    """Have what is left of a flow's message, and its backlog, be those of now."""
    floats = as_floats(words)
    floats[row + n.BACKLOG] = backlog_of(words, row, now_ps)
    floats[row + n.REST] = left_of(words, row, now_ps)
    words[row + n.FROM_PS] = now_ps


@inline
def around_ps(words: Words, at: int, flow: int) -> float:
    """Return the round trip of a flow's packet and its acknowledgement, with queues."""
    row = n.flow_at(words, at, flow)
    there_ps = as_floats(words)[row + n.EMPTY_PS] + wait_ps(words, at, flow)
    return there_ps + wait_ps(words, at, words[row + n.BACK])


@inline
def unacknowledged(words: Words, at: int, flow: int, now_ps: int) -> float:
    """Return the bits in flight of a queue pair that has been idle."""
    floats, row = as_floats(words), n.flow_at(words, at, flow)
    whole_ps = around_ps(words, at, flow)
    left_ps = whole_ps - (now_ps - words[row + n.IDLE_PS])
    if left_ps <= 0:
        return 0.0
    most = min(floats[row + n.BEFORE] + floats[row + n.SIZE], float(words[row + n.WINDOW]))
    return np.floor(min(most * left_ps / whole_ps, floats[row + n.RATE] * left_ps / PS_PER_S))


@inline
def come_to_rest(words: Words, row: int, in_flight: float) -> None:
    """Have a flow begin anew, with what is in flight of its earlier messages."""
    floats = as_floats(words)
    carried = floats[row + n.RATE] * floats[row + n.EMPTY_PS] / PS_PER_S
    floats[row + n.BACKLOG] = max(in_flight - carried, 0.0)
    floats[row + n.SENDS] = floats[row + n.RATE] = 0.0
    words[row + n.END_PS] = words[row + n.FULL_PS] = FOREVER_PS


@inline
def room_of(words: Words, at: int, flow: int, now_ps: int) -> float:
    """Return the bits that a flow's window leaves: those not in flight."""
    row = n.flow_at(words, at, flow)
    carried = as_floats(words)[row + n.RATE] * around_ps(words, at, flow) / PS_PER_S
    return words[row + n.WINDOW] - carried - backlog_of(words, row, now_ps)


@inline
def turn(words: Words, at: int, link: int) -> float:
    """Return how fast a host sends each flow of its link whose window is not used up.

    Flows of several priorities have no turns, and no more than is carried.
    """
    filling, floats, here = words[at + n.FILLING_AT], as_floats(words), n.link_at(words, at, link)
    if words[here + n.TURN_STAMP] == words[filling + f.STAMP]:
        return floats[here + n.TURN]
    words[here + n.TURN_STAMP], floats[here + n.TURN] = words[filling + f.STAMP], 0.0
    level = f.NONE
    entry = words[f.link_row(words, filling, link) + f.FIRST]
    while entry != f.NONE:
        there = f.entry_row(words, filling, entry)
        flow = words[there + f.FLOW]
        row, mine = f.flow_row(words, filling, flow), n.flow_at(words, at, flow)
        if level not in (f.NONE, words[row + f.LEVEL]):
            return 0.0
        level = words[row + f.LEVEL]
        floats[mine + n.WISH] = floats[mine + (n.RATE if words[mine + n.HAS_WINDOW] else n.LEAVES)]
        entry = words[there + f.NEXT]
    floats[here + n.TURN] = share_of_host(words, at, link)
    return floats[here + n.TURN]


@inline
def send(words: Words, at: int, flow: int, now_ps: int) -> None:
    """Have a host send a flow in its turns, and work out when its window will be used up."""
    filling, floats, row = words[at + n.FILLING_AT], as_floats(words), n.flow_at(words, at, flow)
    own = f.first_entry(words, filling, flow)
    in_turns = min(floats[row + n.LEAVES], turn(words, at, words[own + f.LINK]))
    if words[row + n.FROM_PS] != now_ps:
        move_on(words, row, now_ps)
    floats[row + n.SENDS] = max(in_turns, floats[row + n.RATE])
    words[row + n.FULL_PS] = FOREVER_PS
    grows = floats[row + n.SENDS] - floats[row + n.RATE]
    if grows > CLOSE * floats[row + n.RATE]:
        fills_ps = max(room_of(words, at, flow, now_ps), 0.0) * PS_PER_S / grows
        if now_ps + fills_ps < words[row + n.END_PS]:
            words[row + n.FULL_PS] = ((now_ps + int(fills_ps)) // GRID_PS + 1) * GRID_PS


@inline
def use_up(words: Words, at: int, flow: int, now_ps: int) -> None:
    """Note that a flow has a window in flight, unless that is foretold for later now."""
    filling, row = words[at + n.FILLING_AT], n.flow_at(words, at, flow)
    if words[row + n.IS_ON] and words[row + n.FULL_PS] == now_ps:
        words[row + n.HAS_WINDOW] = 1
        words[at + n.NOW_PS] = now_ps
        own = f.first_entry(words, filling, flow)
        f.mark_flow(words, filling, flow)
        f.mark_link(words, filling, words[own + f.LINK])
