"""A worker's packets in flight: what waits to be sent, and what waits for its answer.

A packet is known by its slot, of which a worker has a fixed number; each slot has one packet
at a time. Slots in flight are linked in the order of sending, and all have the same timeout, so
the first is overdue first. The timeout comes from the measured round trip (RFC 6298).

Before that, a packet is taken for lost when `LATEST` that were sent later have their answers:
three duplicate acknowledgements, that is (RFC 5681), but for each packet by itself. That is right
where packets take the same way, which has a number (of the server, if there are several), and the
same queues, and where all workers send in the same order: an answer waits for all of them.

A flight is FLIGHT_WORDS words among an agent's own.
"""

from __future__ import annotations

from typing import NamedTuple

from hosts.fifo import FIFO_COUNT, FIFO_ROOM, FIFO_ROWS, FIFO_WORDS, Fifo, fifo_pop, fifo_push
from ringleaf.arena import Arena, Store, Words
from ringleaf.compiled import inline
from ringleaf.units import FOREVER_PS
from ringleaf.views import window

# A flight's words; its fifo of slots that have a packet to send comes first.
SLOTS = FIFO_WORDS
ROWS_AT = FIFO_WORDS + 1
MIN_TIMEOUT_PS = FIFO_WORDS + 2
TIMEOUT_PS = FIFO_WORDS + 3  # the present one
SMOOTHED_PS = FIFO_WORDS + 4  # round trip; 0 before the first sample
VARIATION_PS = FIFO_WORDS + 5
BACKED_OFF_PS = FIFO_WORDS + 6  # when the timeout was last doubled
SENDINGS = FIFO_WORDS + 7  # packets sent
WAYS = FIFO_WORDS + 8
LATEST_AT = FIFO_WORDS + 9
PRIORITY = FIFO_WORDS + 10  # of the packet sent last
SINCE = FIFO_WORDS + 11  # the first sending of those that had this priority
OUT_OF_TURN = FIFO_WORDS + 12  # 1: other workers may send in another order what is queued now
FLIGHT_WORDS = FIFO_WORDS + 13

# A slot's words. Slots in flight are a doubly linked ring; row `slots` holds its ends.
SENT_PS = 0
ATTEMPTS = 1  # packets sent for what the slot has now
WAITS = 2  # 1 while in the fifo
NEXT = 3  # slot sent after this one, or NOT_IN_FLIGHT
PREVIOUS = 4
SENDING = 5  # number of its latest sending
WAY = 6  # that this has taken
STRAYS = 7  # 1: other workers may have sent in another order
SLOT_WORDS = 8
NOT_IN_FLIGHT = -1

LATEST = 3
"""Of each way, the latest of the sendings that were answered are kept, latest first."""

FIRST_TIMEOUTS = 4  # times the least timeout, before there is a round trip
MAX_BACKOFF = 64  # times the least timeout


class Flight(NamedTuple):
    state: Words  # (FLIGHT_WORDS,)
    slots: Words  # (slots + 1, SLOT_WORDS), flat
    latest: Words  # (ways, LATEST), flat
    fifo: Fifo


def make_flight(store: Store, at: int, slots: int, min_timeout_ps: int, ways: int = 1) -> None:
    """Lay out a flight of so many slots, whose packets take so many ways, at word `at`."""
    fifo_at = store.allocate("words", slots)
    rows_at = store.allocate("words", (slots + 1) * SLOT_WORDS)
    latest_at = store.allocate("words", ways * LATEST)
    store.arena.words[latest_at : latest_at + ways * LATEST] = -1
    state = store.arena.words[at : at + FLIGHT_WORDS]
    state[WAYS], state[LATEST_AT] = ways, latest_at
    state[FIFO_ROWS], state[FIFO_ROOM] = fifo_at, slots
    state[SLOTS], state[ROWS_AT] = slots, rows_at
    state[MIN_TIMEOUT_PS], state[TIMEOUT_PS] = min_timeout_ps, FIRST_TIMEOUTS * min_timeout_ps
    rows = store.arena.words[rows_at:][: (slots + 1) * SLOT_WORDS].reshape(-1, SLOT_WORDS)
    rows[:, NEXT] = NOT_IN_FLIGHT
    rows[slots, [NEXT, PREVIOUS]] = slots


@inline
def open_flight(arena: Arena, at: int) -> Flight:
    words = arena.words
    slots, rows_at = words[at + SLOTS], words[at + ROWS_AT]
    return Flight(
        window(words, at, FLIGHT_WORDS),
        window(words, rows_at, (slots + 1) * SLOT_WORDS),
        window(words, words[at + LATEST_AT], words[at + WAYS] * LATEST),
        Fifo(window(words, at, FIFO_WORDS), window(words, words[at + FIFO_ROWS], slots)),
    )


@inline
def has_waiting(flight: Flight) -> bool:
    return bool(flight.state[FIFO_COUNT] > 0)


@inline
def push_first(flight: Flight, slot: int) -> None:
    """Queue the slot for sending what it has not sent yet."""
    flight.slots[slot * SLOT_WORDS + ATTEMPTS] = 0
    flight.slots[slot * SLOT_WORDS + STRAYS] = flight.state[OUT_OF_TURN]
    push_slot(flight, slot)


@inline
def push_slot(flight: Flight, slot: int) -> None:
    """Queue the slot for sending, once."""
    row = slot * SLOT_WORDS
    if not flight.slots[row + WAITS]:
        flight.slots[row + WAITS] = 1
        fifo_push(flight.fifo, slot)


@inline
def pop_slot(flight: Flight) -> int:
    slot = fifo_pop(flight.fifo)
    flight.slots[slot * SLOT_WORDS + WAITS] = 0
    return slot


@inline
def link_slot(flight: Flight, slot: int, way: int, priority: int, now_ps: int) -> None:
    """Put the slot behind all others in flight: its packet is on the line."""
    slots, state = flight.slots, flight.state
    row = slot * SLOT_WORDS
    if priority != state[PRIORITY]:
        state[PRIORITY], state[SINCE] = priority, state[SENDINGS]
    slots[row + SENDING], slots[row + WAY] = state[SENDINGS], way
    slots[row + ATTEMPTS] += 1
    state[SENDINGS] += 1
    ends = flight.state[SLOTS] * SLOT_WORDS
    last = slots[ends + PREVIOUS]
    slots[row + SENT_PS] = now_ps
    slots[row + PREVIOUS] = last
    slots[row + NEXT] = flight.state[SLOTS]
    slots[last * SLOT_WORDS + NEXT] = slot
    slots[ends + PREVIOUS] = slot


@inline
def unlink_slot(flight: Flight, slot: int) -> None:
    slots = flight.slots
    row = slot * SLOT_WORDS
    after, before = slots[row + NEXT], slots[row + PREVIOUS]
    if after != NOT_IN_FLIGHT:
        slots[before * SLOT_WORDS + NEXT] = after
        slots[after * SLOT_WORDS + PREVIOUS] = before
        slots[row + NEXT] = NOT_IN_FLIGHT


@inline
def first_slot(flight: Flight) -> int:
    """The slot that has been in flight longest; the number of slots if none is."""
    return flight.slots[flight.state[SLOTS] * SLOT_WORDS + NEXT]


@inline
def deadline_ps(flight: Flight) -> int:
    """When the first slot is overdue."""
    first = first_slot(flight)
    if first == flight.state[SLOTS]:
        return FOREVER_PS
    sent_ps = flight.slots[first * SLOT_WORDS + SENT_PS]
    return sent_ps + flight.state[TIMEOUT_PS]


@inline
def take_sample(flight: Flight, slot: int, now_ps: int) -> None:
    """Update averages and timeout from a round trip (RFC 6298), one of `slots` in the same time.

    As many samples per round trip would make the averages forget within a fraction of
    one, hence the smaller gains (RFC 7323, appendix G). Ambiguous ones don't count (Karn).
    """
    state = flight.state
    row = slot * SLOT_WORDS
    if flight.slots[row + ATTEMPTS] != 1:
        return
    sample_ps = now_ps - flight.slots[row + SENT_PS]
    if state[SMOOTHED_PS] == 0:
        state[SMOOTHED_PS] = sample_ps
        state[VARIATION_PS] = sample_ps // 2
    else:
        error_ps = sample_ps - state[SMOOTHED_PS]
        state[VARIATION_PS] += (abs(error_ps) - state[VARIATION_PS]) // (4 * state[SLOTS])
        state[SMOOTHED_PS] += error_ps // (8 * state[SLOTS])


@inline
def end_backoff(flight: Flight) -> None:
    """Set the timeout as the averages say: an answer has shown that packets get through.

    So does QUIC (RFC 9002, 6.2.1); Karn would keep a doubled timeout until there is a round trip
    without retransmission. That guards against timeouts below the round trip, of which all samples
    would be ambiguous, and our floor is above what queues delay. With many workers on many links
    hardly a block is sent once only: at 1 % loss, 16 workers of a fat-tree took 1,225 us instead of
    652 for OmniReduce's 1 MiB, and 138 ms instead of 34 for ATP's.
    """
    state = flight.state
    if state[SMOOTHED_PS] == 0:
        state[TIMEOUT_PS] = FIRST_TIMEOUTS * state[MIN_TIMEOUT_PS]
    else:
        timeout_ps = state[SMOOTHED_PS] + 4 * state[VARIATION_PS]
        state[TIMEOUT_PS] = max(timeout_ps, state[MIN_TIMEOUT_PS])


@inline
def note_answer(flight: Flight, slot: int) -> None:
    """Remember the latest sendings of each way that were answered."""
    row = slot * SLOT_WORDS
    if flight.slots[row + STRAYS]:
        return
    sending = flight.slots[row + SENDING]
    first = LATEST * flight.slots[row + WAY]
    for i in range(first, first + LATEST):
        if sending > flight.latest[i]:
            flight.latest[i], sending = sending, flight.latest[i]


@inline
def is_passed(flight: Flight, slot: int) -> bool:
    """Whether so many that were sent later, on the same way, have their answers."""
    row = slot * SLOT_WORDS
    sending = flight.slots[row + SENDING]
    last = LATEST * flight.slots[row + WAY] + LATEST - 1
    return bool(
        sending < flight.latest[last]
        and sending >= flight.state[SINCE]  # what is more urgent may pass
        and not flight.slots[row + STRAYS]
    )


@inline
def queue_passed(flight: Flight) -> None:
    """Queue again what has been in flight longest, as long as it has been passed."""
    slot = first_slot(flight)
    while slot != flight.state[SLOTS] and is_passed(flight, slot):
        unlink_slot(flight, slot)
        push_slot(flight, slot)
        slot = first_slot(flight)


@inline
def queue_overdue(flight: Flight, now_ps: int) -> bool:
    """Queue the slots whose timeout is over; return whether there are any."""
    is_overdue = False
    while deadline_ps(flight) <= now_ps:
        is_overdue = True
        slot = first_slot(flight)
        unlink_slot(flight, slot)
        push_slot(flight, slot)
    return is_overdue


@inline
def back_off(flight: Flight, now_ps: int) -> None:
    """Double the timeout, once per timeout (RFC 6298, 5.5)."""
    state = flight.state
    if state[BACKED_OFF_PS] + state[TIMEOUT_PS] <= now_ps:
        state[BACKED_OFF_PS] = now_ps
        most_ps = MAX_BACKOFF * state[MIN_TIMEOUT_PS]
        state[TIMEOUT_PS] = min(2 * state[TIMEOUT_PS], most_ps)
