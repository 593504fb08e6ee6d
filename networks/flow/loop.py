"""The compiled event loop of flows: messages end, arrive and are acknowledged in virtual time.

Executors go on between instants, as in the loop of packets. When an instant is over, agents that
were given something to do begin their messages, and then all that has changed is solved at once.
"""

from __future__ import annotations

import ringleaf.networks.flow.fill_tables as f
import ringleaf.networks.flow.state as n
import ringleaf.networks.virtual.state as s
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import call_back, call_handler, compiled, handler, inline
from ringleaf.core.heap import CAPACITY, COUNT, first_time_ps, pop_event
from ringleaf.core.native_types import ARENA
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.endpoints.driver import (
    ACT,
    DISPATCH,
    DRIVE,
    FAILED,
    due_ps,
    is_noteworthy,
    is_pending,
)
from ringleaf.networks.flow.messages import (
    ARRIVE,
    CREDIT,
    END,
    FULL,
    SUMMED,
    arrive,
    end,
    fetch_ahead,
    flush,
    is_over,
    solve,
    stir,
    take_answer,
    take_credit,
)
from ringleaf.networks.flow.windows import use_up

# Reasons for `run` to return.
REPORTED = 1  # collectives are done
EMPTY = 2  # nothing is left to happen
UNTIL = 3  # the next event is later than asked for
NEEDS_ROOM = 4  # the heap must grow

SPARE = 64  # events


@inline
def lacks_room(words: Words, at: int) -> bool:
    """Return whether the heap may have no room for what one step adds."""
    heap = words[words[at + n.NET_AT] + s.HEAP_AT]
    return words[heap + COUNT] + 3 * words[at + n.FLOWS] + SPARE > words[heap + CAPACITY]


@inline
def go_on(arena: Arena, at: int, time_ps: int, until_ps: int) -> int:
    """Do what is left of an instant, before an event of a later time.

    Returns:
        The reason for `run` to return; 0: nothing is left to do; -1: there may be more.
    """
    words = arena.words
    driver = words[words[at + n.NET_AT] + s.DRIVER]
    what = DISPATCH
    if not is_pending(words, driver):
        if words[at + n.STIRRED] > 0:
            flush(arena, at)
            return -1
        if f.is_dirty(words, words[at + n.FILLING_AT]):
            solve(words, at, words[at + n.NOW_PS])
            return -1
        if due_ps(words, driver) >= time_ps:
            return 0
        if due_ps(words, driver) > until_ps:
            return UNTIL
        what = ACT
    call_handler(words[driver + DRIVE], arena, driver, what, 0)
    return REPORTED if is_noteworthy(words, driver) else -1


@inline
def handle_sum(words: Words, at: int, kind: int, flow: int, now_ps: int) -> None:
    """Have Python go on with a sum that is done in the network."""
    words[at + n.NOW_PS] = now_ps
    if call_back(words[at + n.SUMS], 2 * flow + (kind == SUMMED)) < 0:
        words[words[words[at + n.NET_AT] + s.DRIVER] + FAILED] = 1


@inline
def handle(arena: Arena, at: int, event: int, now_ps: int) -> None:
    """Handle one event: its kind in 3 bits, and a flow above them."""
    kind, flow = event & 7, event >> 3
    words = arena.words
    row = n.flow_at(words, at, flow)
    if kind == END and not is_over(words, at, flow, now_ps):
        return
    if kind == SUMMED or words[row + n.AGENT] == 0:
        handle_sum(words, at, kind, flow, now_ps)
    elif kind == FULL:
        use_up(words, at, flow, now_ps)
    elif words[row + n.IS_CUT]:
        words[row + n.LATE + kind] += 1
    elif kind == END:
        end(arena, at, flow, now_ps)
    elif kind == ARRIVE:
        arrive(arena, at, flow, now_ps)
    elif kind == CREDIT:
        back = words[row + n.BACK]
        take_credit(arena, at, flow, words[n.flow_at(words, at, back) + n.OFFERED], now_ps)
    else:
        take_answer(arena, at, flow, now_ps)


@compiled(types.int64(ARENA, types.int64, types.int64))
def run(arena: Arena, at: int, until_ps: int) -> int:
    """Handle events until Python is needed; return the reason why it stopped."""
    words = arena.words
    net = words[at + n.NET_AT]
    heap = words[net + s.HEAP_AT]
    now_ps = -1
    while True:
        if lacks_room(words, at):
            return NEEDS_ROOM
        time_ps = first_time_ps(words, heap) if words[heap + COUNT] > 0 else FOREVER_PS
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
        now_ps = time_ps
        words[net + s.EVENTS] += 1
        event = pop_event(words, heap)
        fetch_ahead(words, at)
        handle(arena, at, event, now_ps)


@handler
def wake(arena: Arena, at: int, agent: int, now_ps: int) -> int:
    """Note that an agent has been given something to do."""
    stir(arena.words, at, agent, now_ps)
    return 0
