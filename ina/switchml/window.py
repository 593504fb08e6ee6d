"""A worker's window: slots that wait to be sent, and slots that wait for their result.

Slots in flight are linked in the order of sending, and all have the same timeout, so the
first is overdue first.
"""

from __future__ import annotations

from hosts.agent import TIMER_AT_PS
from ina.switchml.state import (
    ATTEMPTS,
    BACKED_OFF_PS,
    FIFO_COUNT,
    FIFO_FIRST,
    FIRST_TIMEOUTS,
    MIN_TIMEOUT_PS,
    NEXT,
    NOT_IN_FLIGHT,
    POSITION,
    PREVIOUS,
    SENT_PS,
    SLOT_WORDS,
    SLOTS,
    SMOOTHED_PS,
    TIMEOUT_PS,
    VARIATION_PS,
    WAITS,
    Worker,
)
from ringleaf.arena import Arena
from ringleaf.compiled import inline
from ringleaf.units import FOREVER_PS

MAX_BACKOFF = 64  # times the least timeout


@inline
def push_slot(worker: Worker, slot: int) -> None:
    """Queue the slot for sending, once."""
    state = worker.state
    row = slot * SLOT_WORDS
    if worker.slots[row + WAITS]:
        return
    worker.slots[row + WAITS] = 1
    place = state[FIFO_FIRST] + state[FIFO_COUNT]
    if place >= state[SLOTS]:
        place -= state[SLOTS]
    worker.fifo[place] = slot
    state[FIFO_COUNT] += 1


@inline
def pop_slot(worker: Worker) -> int:
    state = worker.state
    slot = worker.fifo[state[FIFO_FIRST]]
    worker.slots[slot * SLOT_WORDS + WAITS] = 0
    state[FIFO_COUNT] -= 1
    state[FIFO_FIRST] += 1
    if state[FIFO_FIRST] == state[SLOTS]:
        state[FIFO_FIRST] = 0
    return slot


@inline
def link_slot(worker: Worker, slot: int, now_ps: int) -> None:
    """Put the slot behind all others in flight."""
    slots = worker.slots
    row = slot * SLOT_WORDS
    ends = worker.state[SLOTS] * SLOT_WORDS
    last = slots[ends + PREVIOUS]
    slots[row + SENT_PS] = now_ps
    slots[row + PREVIOUS] = last
    slots[row + NEXT] = worker.state[SLOTS]
    slots[last * SLOT_WORDS + NEXT] = slot
    slots[ends + PREVIOUS] = slot


@inline
def unlink_slot(worker: Worker, slot: int) -> None:
    slots = worker.slots
    row = slot * SLOT_WORDS
    after, before = slots[row + NEXT], slots[row + PREVIOUS]
    if after != NOT_IN_FLIGHT:
        slots[before * SLOT_WORDS + NEXT] = after
        slots[after * SLOT_WORDS + PREVIOUS] = before
        slots[row + NEXT] = NOT_IN_FLIGHT


@inline
def set_timer(arena: Arena, at: int, worker: Worker) -> None:
    """The slot that was sent first is overdue first, as all have the same timeout."""
    state = worker.state
    first = worker.slots[state[SLOTS] * SLOT_WORDS + NEXT]
    if first == state[SLOTS]:
        arena.words[at + TIMER_AT_PS] = FOREVER_PS
    else:
        sent_ps = worker.slots[first * SLOT_WORDS + SENT_PS]
        arena.words[at + TIMER_AT_PS] = sent_ps + state[TIMEOUT_PS]


@inline
def take_sample(worker: Worker, slot: int, now_ps: int) -> None:
    """Update the averages from a round trip (RFC 6298), one of `slots` in the same time.

    As many samples per round trip would make the averages forget within a fraction of
    one, hence the smaller gains (RFC 7323, appendix G). Rounds of an exponent alone, which are
    much shorter, don't count, and neither do ambiguous ones (Karn).
    """
    state = worker.state
    row = slot * SLOT_WORDS
    if worker.slots[row + ATTEMPTS] != 1 or worker.slots[row + POSITION] < 0:
        return
    sample_ps = now_ps - worker.slots[row + SENT_PS]
    if state[SMOOTHED_PS] == 0:
        state[SMOOTHED_PS] = sample_ps
        state[VARIATION_PS] = sample_ps // 2
    else:
        error_ps = sample_ps - state[SMOOTHED_PS]
        state[VARIATION_PS] += (abs(error_ps) - state[VARIATION_PS]) // (4 * state[SLOTS])
        state[SMOOTHED_PS] += error_ps // (8 * state[SLOTS])


@inline
def end_backoff(worker: Worker) -> None:
    """Set the timeout as the averages say: a result has shown that packets get through.

    Karn would keep a doubled timeout until there is a round trip without retransmission. But
    with many workers and links, each block is sent again by somebody even at modest loss.
    """
    state = worker.state
    if state[SMOOTHED_PS] == 0:
        state[TIMEOUT_PS] = FIRST_TIMEOUTS * state[MIN_TIMEOUT_PS]
    else:
        timeout_ps = state[SMOOTHED_PS] + 4 * state[VARIATION_PS]
        state[TIMEOUT_PS] = max(timeout_ps, state[MIN_TIMEOUT_PS])


@inline
def queue_overdue(worker: Worker, now_ps: int) -> bool:
    """Queue the slots whose timeout is over; return whether there are any."""
    state = worker.state
    ends = state[SLOTS] * SLOT_WORDS
    slot = worker.slots[ends + NEXT]
    is_overdue = False
    while slot != state[SLOTS]:
        if worker.slots[slot * SLOT_WORDS + SENT_PS] + state[TIMEOUT_PS] > now_ps:
            break
        is_overdue = True
        unlink_slot(worker, slot)
        push_slot(worker, slot)
        slot = worker.slots[ends + NEXT]
    return is_overdue


@inline
def back_off(worker: Worker, now_ps: int) -> None:
    """Double the timeout, once per timeout (RFC 6298, 5.5)."""
    state = worker.state
    if state[BACKED_OFF_PS] + state[TIMEOUT_PS] <= now_ps:
        state[BACKED_OFF_PS] = now_ps
        most_ps = MAX_BACKOFF * state[MIN_TIMEOUT_PS]
        state[TIMEOUT_PS] = min(2 * state[TIMEOUT_PS], most_ps)
