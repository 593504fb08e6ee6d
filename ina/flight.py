"""A worker's packets in flight: those that wait to be sent, and those that wait for an answer.

A packet is known by its slot, of which a worker has a fixed number; each slot has one packet
at a time. Slots in flight are linked in the order of sending, in two rings: those that have sent
once, and those that have sent more often. In each ring all have the same timeout, so the first one
is looked at first. It isn't overdue while more urgent packets are answered, as it may wait behind
them.

A packet that was sent once has a timeout from the measured round trip (RFC 6298), but not below
a floor. The round trip is the average, or a longer one that the latest packets had: a queue may
grow faster than averages do (RFC 9002, 6.1.2). It is taken for lost sooner if `LATEST` packets that
were sent later have their answers, as with three duplicate acknowledgements (RFC 5681), but for
each packet by itself. That is right where packets take the same way, which has a number (of the
server, if there are several), and the same queues, and where all workers send in the same order: an
answer waits for all of them.

Then it is sent again. If the flight probes, a probe is sent instead, and the packet only if
the answer to the probe demands it; when a timeout is over, the first of the packets that were sent
once probes for all of them. After that, a slot sends again only after a timeout of two round trips,
without the floor: resends of several workers have no common order.

If timeouts have grown as long as they may, and still nothing has got through, queues may drop the
same packets each time, as all workers send all they have, and do so together. Then half of the
slots are sent again, and so on down to one, as windows shrink (RFC 5681, 3.1), the longest not sent
first; the others wait for another timeout, which is longer by a part of it that is another one for
each worker and time. Each answer allows one slot more.

All timeouts are longer by the time for which the network may answer nothing, as while circuits
change. It is added once, and not doubled.

A flight is FLIGHT_WORDS words among an agent's own.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.headers import PRIORITIES
from ringleaf.core.round_trip import smooth, timeout_ps
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import window
from ringleaf.hosts.fifo import (
    FIFO_COUNT,
    FIFO_ROOM,
    FIFO_ROWS,
    FIFO_WORDS,
    Fifo,
    fifo_pop,
    fifo_push,
)

# A flight's words; its fifo of slots that have a packet to send comes first.
SLOTS = FIFO_WORDS
ROWS_AT = FIFO_WORDS + 1
MIN_TIMEOUT_PS = FIFO_WORDS + 2
TIMEOUT_PS = FIFO_WORDS + 3  # of packets that were sent once
SMOOTHED_PS = FIFO_WORDS + 4  # round trip; 0 before the first sample
VARIATION_PS = FIFO_WORDS + 5
BACKED_OFF_PS = FIFO_WORDS + 6  # when the timeout was last doubled
SENDINGS = FIFO_WORDS + 7  # packets sent
WAYS = FIFO_WORDS + 8
LATEST_AT = FIFO_WORDS + 9
PRIORITY = FIFO_WORDS + 10  # of the packet sent last
SINCE = FIFO_WORDS + 11  # the first sending of those that had this priority
OUT_OF_TURN = FIFO_WORDS + 12  # 1: other workers may send the slots queued now in another order
RETRY_PS = FIFO_WORDS + 13  # of packets that were sent again
PROBES = FIFO_WORDS + 14  # 1: a probe says whether a packet is lost
ASKED = FIFO_WORDS + 15  # slot whose probe asks for all overdue ones; or NOT_ASKED
ASKED_PS = FIFO_WORDS + 16  # when the latest probe was sent that found nothing lost
BEHIND_PS = FIFO_WORDS + 17  # by priority: when a more urgent packet was last answered
LEAST_PS = BEHIND_PS + PRIORITIES  # the shortest round trip so far; 0 before the first sample
NEWEST_PS = LEAST_PS + 1  # the latest round trip
IS_PATIENT = LEAST_PS + 2  # 1: answers may be late because of another worker's loss
FOREMOST = LEAST_PS + 3  # the latest sending that has been answered, of packets sent once
FOREMOST_PS = LEAST_PS + 4  # its round trip
QUEUE_PS = LEAST_PS + 5  # the shorter one of this and the one before; 0 if the flight probes
QUIET_PS = LEAST_PS + 6  # for which the network may answer nothing although nothing is lost
ALLOWED = LEAST_PS + 7  # slots that may be queued together after a timeout
HELD_PS = LEAST_PS + 8  # from when on those wait for another timeout that were not allowed
HOST = LEAST_PS + 9  # the worker's host, as hosts that hold slots back do so for unlike times
FLIGHT_WORDS = LEAST_PS + 10

# A slot's words. Slots in flight are in doubly linked rings; row `slots + ring` holds one's ends.
SENT_PS = 0
ATTEMPTS = 1  # packets sent for the slot's present content
WAITS = 2  # 1 while in the fifo
NEXT = 3  # slot sent after this one, or NOT_IN_FLIGHT
PREVIOUS = 4
SENDING = 5  # number of its latest sending
WAY = 6  # the way that this sending has taken
STRAYS = 7  # 1: other workers may have sent in another order
IS_LOST = 8  # 1: the slot's packet is known to be lost
LEVEL = 9  # priority of its latest sending
FIRST_PS = 10  # when it was sent first
SLOT_WORDS = 11
NOT_IN_FLIGHT = -1
NOT_ASKED = -1

RINGS = 2
"""One ring for slots that have sent once, one for those that have sent again, or probed."""

LATEST = 3
"""The number of answered sendings that are kept per way, latest first."""

FIRST_TIMEOUTS = 4  # times the least timeout, before there is a round trip
MAX_BACKOFF = 64  # times the least timeout


class Flight(NamedTuple):
    """A worker's flight: its numbers, its slots, the latest answers, and the slots that wait."""

    state: Words  # (FLIGHT_WORDS,)
    slots: Words  # (slots + RINGS, SLOT_WORDS), flat
    latest: Words  # (ways, LATEST), flat
    fifo: Fifo


def make_flight(
    store: Store,
    at: int,
    slots: int,
    min_timeout_ps: int,
    *,
    ways: int = 1,
    quiet_ps: int = 0,
    probes: bool = False,
    patient: bool = False,
    host: int = 0,
) -> None:
    """Lay out a host's flight at word `at`, of `slots` slots whose packets take `ways` ways."""
    fifo_at = store.allocate("words", slots)
    rows_at = store.allocate("words", (slots + RINGS) * SLOT_WORDS)
    latest_at = store.allocate("words", ways * LATEST)
    store.arena.words[latest_at : latest_at + ways * LATEST] = -1
    state = store.arena.words[at : at + FLIGHT_WORDS]
    state[WAYS], state[LATEST_AT], state[PROBES] = ways, latest_at, probes
    state[FIFO_ROWS], state[FIFO_ROOM] = fifo_at, slots
    state[SLOTS], state[ROWS_AT], state[ASKED] = slots, rows_at, NOT_ASKED
    state[IS_PATIENT], state[ALLOWED], state[HOST] = patient, slots, host
    state[MIN_TIMEOUT_PS], state[QUIET_PS] = min_timeout_ps, quiet_ps
    state[TIMEOUT_PS] = state[RETRY_PS] = FIRST_TIMEOUTS * min_timeout_ps
    rows = store.arena.words[rows_at:][: (slots + RINGS) * SLOT_WORDS].reshape(-1, SLOT_WORDS)
    rows[:, LEVEL] = PRIORITIES  # no round before the first is less urgent
    rows[:, NEXT] = NOT_IN_FLIGHT
    # The ends of an empty ring point to themselves, so linking needs no case for it.
    for ends in range(slots, slots + RINGS):
        rows[ends, [NEXT, PREVIOUS]] = ends


@inline
def open_flight(arena: Arena, at: int) -> Flight:
    """Return the flight whose state is at word `at`."""
    words = arena.words
    slots, rows_at = words[at + SLOTS], words[at + ROWS_AT]
    return Flight(
        window(words, at, FLIGHT_WORDS),
        window(words, rows_at, (slots + RINGS) * SLOT_WORDS),
        window(words, words[at + LATEST_AT], words[at + WAYS] * LATEST),
        Fifo(window(words, at, FIFO_WORDS), window(words, words[at + FIFO_ROWS], slots)),
    )


@inline
def has_waiting(flight: Flight) -> bool:
    """Return whether a slot waits to be sent."""
    return bool(flight.state[FIFO_COUNT] > 0)


@inline
def push_first(flight: Flight, slot: int) -> None:
    """Queue the slot for the first sending of its packet."""
    flight.slots[slot * SLOT_WORDS + ATTEMPTS] = 0
    flight.slots[slot * SLOT_WORDS + STRAYS] = flight.state[OUT_OF_TURN]
    flight.slots[slot * SLOT_WORDS + IS_LOST] = 0
    push_slot(flight, slot)


@inline
def push_slot(flight: Flight, slot: int) -> None:
    """Queue the slot for sending, unless it is queued already."""
    row = slot * SLOT_WORDS
    if not flight.slots[row + WAITS]:
        flight.slots[row + WAITS] = 1
        fifo_push(flight.fifo, slot)


@inline
def unlink_slot(flight: Flight, slot: int) -> None:
    """Take a slot out of its ring of slots in flight; it may be in none."""
    slots = flight.slots
    row = slot * SLOT_WORDS
    after, before = slots[row + NEXT], slots[row + PREVIOUS]
    if after != NOT_IN_FLIGHT:
        slots[before * SLOT_WORDS + NEXT] = after
        slots[after * SLOT_WORDS + PREVIOUS] = before
        slots[row + NEXT] = NOT_IN_FLIGHT


@inline
def push_again(flight: Flight, slot: int) -> None:
    """Queue the slot for sending again, or for a probe if one has to come first."""
    unlink_slot(flight, slot)
    if not flight.state[PROBES]:
        flight.slots[slot * SLOT_WORDS + IS_LOST] = 1
    push_slot(flight, slot)


@inline
def forget_sendings(flight: Flight) -> None:
    """Take all slots out of the rings and the queue, and end the backing off.

    What is known of round trips stays.
    """
    slots = flight.state[SLOTS]
    while has_waiting(flight):
        pop_slot(flight)
    for slot in range(slots):
        unlink_slot(flight, slot)
    end_backoff(flight)


@inline
def wait_anew(flight: Flight, now_ps: int) -> None:
    """Have all slots in flight wait for two timeouts from now on, which are not backed off.

    One is for the answers to a whole window, which come together, and those to probes behind them.
    """
    flight.state[ASKED] = NOT_ASKED
    flight.state[HELD_PS] = now_ps + flight.state[MIN_TIMEOUT_PS]
    end_backoff(flight)


@inline
def is_probe(flight: Flight, slot: int) -> bool:
    """Return whether the slot's next packet is a probe: the one it has sent may have arrived."""
    row = slot * SLOT_WORDS
    return bool(flight.slots[row + ATTEMPTS] > 0 and not flight.slots[row + IS_LOST])


@inline
def pop_slot(flight: Flight) -> int:
    """Remove and return the slot that has waited longest to be sent."""
    slot = fifo_pop(flight.fifo)
    flight.slots[slot * SLOT_WORDS + WAITS] = 0
    return slot


@inline
def link_slot(flight: Flight, slot: int, way: int, priority: int, now_ps: int) -> None:
    """Put the slot behind all others of its ring: its packet is on the line."""
    slots, state = flight.slots, flight.state
    row = slot * SLOT_WORDS
    if priority != state[PRIORITY]:
        state[PRIORITY], state[SINCE] = priority, state[SENDINGS]
    if slots[row + ATTEMPTS] == 0:
        slots[row + FIRST_PS] = now_ps
        if slots[row + LEVEL] < priority:
            slots[row + STRAYS] = 1  # others may still await the less urgent result before
    slots[row + SENDING], slots[row + WAY], slots[row + LEVEL] = state[SENDINGS], way, priority
    slots[row + ATTEMPTS] += 1
    state[SENDINGS] += 1
    ends = state[SLOTS] + min(slots[row + ATTEMPTS], RINGS) - 1
    last = slots[ends * SLOT_WORDS + PREVIOUS]
    slots[row + SENT_PS] = now_ps
    slots[row + PREVIOUS] = last
    slots[row + NEXT] = ends
    slots[last * SLOT_WORDS + NEXT] = slot
    slots[ends * SLOT_WORDS + PREVIOUS] = slot


@inline
def first_slot(flight: Flight, ring: int) -> int:
    """Return the slot that has been in a ring longest; not below the number of slots if none is."""
    return int(flight.slots[(flight.state[SLOTS] + ring) * SLOT_WORDS + NEXT])


@inline
def due_ps(flight: Flight, ring: int) -> int:
    """Return when a ring's first slot is overdue; in the first ring none is while a probe asks.

    A packet may wait in queues as long as answers to more urgent packets come.
    """
    first = first_slot(flight, ring)
    if first >= flight.state[SLOTS] or (ring == 0 and flight.state[ASKED] != NOT_ASKED):
        return FOREVER_PS
    level = flight.slots[first * SLOT_WORDS + LEVEL]
    sent_ps = max(flight.slots[first * SLOT_WORDS + SENT_PS], flight.state[BEHIND_PS + level])
    sent_ps = max(sent_ps, flight.state[HELD_PS])
    quiet_ps = flight.state[QUIET_PS]
    if ring > 0:
        return int(sent_ps + flight.state[RETRY_PS] + quiet_ps)
    return int(max(sent_ps, flight.state[ASKED_PS]) + flight.state[TIMEOUT_PS] + quiet_ps)


@inline
def deadline_ps(flight: Flight) -> int:
    """Return when the next slot is overdue."""
    return min(due_ps(flight, 0), due_ps(flight, 1))


@inline
def take_sample(flight: Flight, slot: int, now_ps: int) -> None:
    """Update the averages from a round trip (RFC 6298), of which there are `slots` at a time.

    Ambiguous round trips don't count (Karn). If only probes were sent since, the round trip counts
    from the first sending on: so timeouts adapt to queues in which packets wait longer than that.
    To a patient flight, an answer that comes sooner after a resend than any round trip took is one
    to the first sending, and shows how long that took (Eifel, RFC 3522, finds out by timestamps).
    Without it, queues that grow beyond the patience would make all round trips ambiguous.
    """
    state = flight.state
    row = slot * SLOT_WORDS
    attempts = flight.slots[row + ATTEMPTS]
    if attempts == 0:
        return
    if flight.slots[row + IS_LOST]:
        is_early = attempts == 1 or now_ps - flight.slots[row + SENT_PS] < state[LEAST_PS]
        if not state[IS_PATIENT] or attempts > 2 or not is_early:
            return
    most_ps = MAX_BACKOFF * state[MIN_TIMEOUT_PS]
    sample_ps = min(now_ps - flight.slots[row + FIRST_PS], most_ps)
    state[LEAST_PS] = min(state[LEAST_PS], sample_ps) if state[LEAST_PS] else sample_ps
    state[NEWEST_PS] = sample_ps
    smooth(state, SMOOTHED_PS, VARIATION_PS, sample_ps, state[SLOTS])
    note_foremost(flight, slot, sample_ps)


@inline
def note_foremost(flight: Flight, slot: int, sample_ps: int) -> None:
    """Note the round trip of the latest sending that has been answered (RFC 8985's RACK.rtt).

    If other jobs' packets fill a queue, the next packet takes as long or longer, while averages
    need several windows to follow. An answer that has been overtaken says nothing of queues: it has
    waited for a worker that has lost something. So may a single one that has not, hence two have to
    be late. A flight that probes does not need this, as no queue makes it send values again.
    """
    state, sending = flight.state, flight.slots[slot * SLOT_WORDS + SENDING]
    is_first = flight.slots[slot * SLOT_WORDS + ATTEMPTS] == 1
    if is_first and sending >= state[FOREMOST] and not state[PROBES]:
        state[QUEUE_PS] = min(state[FOREMOST_PS], sample_ps)
        state[FOREMOST], state[FOREMOST_PS] = sending, sample_ps


@inline
def end_backoff(flight: Flight) -> None:
    """Set the timeout as the averages say: an answer has shown that packets get through.

    So does QUIC (RFC 9002, 6.2.1); Karn would keep a doubled timeout until there is a round trip
    without retransmission. That guards against timeouts below the round trip, of which all samples
    would be ambiguous; the floor guards against that here. With many workers on many links
    hardly a block is sent once only at 1 % loss, so doubled timeouts would stay for long.
    A resend may be answered as late as a round trip after ours reached the switch, as another
    worker may learn of the loss so much later: its timeout is two round trips.
    """
    state = flight.state
    state[ALLOWED] = min(state[ALLOWED] + 1, state[SLOTS])
    if state[SMOOTHED_PS] == 0:
        state[TIMEOUT_PS] = state[RETRY_PS] = FIRST_TIMEOUTS * state[MIN_TIMEOUT_PS]
    else:
        expected_ps = max(state[SMOOTHED_PS], state[QUEUE_PS])
        state[TIMEOUT_PS] = timeout_ps(expected_ps, state[VARIATION_PS], state[MIN_TIMEOUT_PS])
        state[RETRY_PS] = 2 * state[SMOOTHED_PS]


@inline
def note_answer(flight: Flight, slot: int, now_ps: int) -> None:
    """Remember the latest sendings of each way that were answered.

    An answer that comes sooner than a round trip after a resend may be to an earlier sending, and
    says nothing (RFC 8985, 6.2, step 2).
    """
    row = slot * SLOT_WORDS
    for level in range(flight.slots[row + LEVEL]):
        flight.state[BEHIND_PS + level] = now_ps
    age_ps = now_ps - flight.slots[row + SENT_PS]
    is_ambiguous = flight.slots[row + ATTEMPTS] != 1 and age_ps < flight.state[SMOOTHED_PS]
    if flight.slots[row + STRAYS] or is_ambiguous:
        return
    sending = flight.slots[row + SENDING]
    first = LATEST * flight.slots[row + WAY]
    for i in range(first, first + LATEST):
        kept = flight.latest[i]
        flight.latest[i], sending = max(kept, sending), min(kept, sending)


@inline
def patience_ps(flight: Flight) -> int:
    """Return how old a packet must be before answers to later ones say that it is lost.

    If the flight is patient, that is the latest round trip and one more (RFC 8985's reordering
    window is like it): the answer waits for a worker that has lost the result before, which is late
    by the round trip in which it sends again. Otherwise one loss makes all workers send again, and
    their packets delay others, of which the same is then concluded.
    """
    if not flight.state[IS_PATIENT]:
        return 0
    if flight.state[SMOOTHED_PS] == 0:
        return int(flight.state[MIN_TIMEOUT_PS] // 2)
    return int(flight.state[NEWEST_PS] + flight.state[SMOOTHED_PS])


@inline
def is_passed(flight: Flight, slot: int, now_ps: int) -> bool:
    """Return whether `LATEST` packets sent later, on the same way, have their answers."""
    row = slot * SLOT_WORDS
    sending = flight.slots[row + SENDING]
    last = LATEST * flight.slots[row + WAY] + LATEST - 1
    return bool(
        sending < flight.latest[last]
        and now_ps - flight.slots[row + SENT_PS] >= patience_ps(flight)
        and sending >= flight.state[SINCE]  # more urgent packets may overtake
        and not flight.slots[row + STRAYS]
    )


@inline
def queue_passed(flight: Flight, now_ps: int) -> None:
    """Queue again the oldest slots that have sent once, as long as they have been passed."""
    slot = first_slot(flight, 0)
    while slot < flight.state[SLOTS] and is_passed(flight, slot, now_ps):
        push_again(flight, slot)
        slot = first_slot(flight, 0)


@inline
def queue_overdue(flight: Flight, now_ps: int) -> bool:
    """Queue the slots whose timeout is over; return whether there are any.

    If the flight probes, the first of the slots that have sent once asks for all of them (RFC 6298,
    5.4): their packets may be in a queue for which the timeout is too short.
    """
    queued = 0
    for ring in range(RINGS):
        while due_ps(flight, ring) <= now_ps and queued < flight.state[ALLOWED]:
            queued += 1
            slot = first_slot(flight, ring)
            push_again(flight, slot)
            if ring == 0 and flight.state[PROBES]:
                flight.state[ASKED] = slot
    if queued > 0 and flight.state[ALLOWED] < flight.state[SLOTS]:
        hold_others(flight, now_ps)
    return queued > 0


@inline
def hold_others(flight: Flight, now_ps: int) -> None:
    """Have slots wait for another timeout and a part of one, unlike that of other hosts."""
    state = flight.state
    of_256 = ((state[HOST] + 1) * 2654435761 + state[SENDINGS] * 40503 & 0xFFFFFFFF) >> 24
    state[HELD_PS] = now_ps + state[RETRY_PS] // 256 * of_256


@inline
def end_question(flight: Flight, slot: int, was_lost: bool, now_ps: int) -> None:
    """Note an answer to a slot; if the slot has probed for other overdue ones, it holds for them.

    If the packet was lost, the timeout was right, and probes are sent for the others, too. If not,
    they wait for another timeout.
    """
    state = flight.state
    if state[ASKED] == slot:
        state[ASKED] = NOT_ASKED
        if not was_lost:
            state[ASKED_PS] = flight.slots[slot * SLOT_WORDS + SENT_PS]
        while was_lost and due_ps(flight, 0) <= now_ps:
            push_again(flight, first_slot(flight, 0))


@inline
def push_lost(flight: Flight, slot: int, now_ps: int) -> None:
    """Queue the slot for sending again, as its packet has been lost."""
    flight.slots[slot * SLOT_WORDS + IS_LOST] = 1
    push_again(flight, slot)
    end_question(flight, slot, True, now_ps)


@inline
def back_off(flight: Flight, now_ps: int) -> None:
    """Double the timeouts, once per timeout (RFC 6298, 5.5); then halve what is sent after one."""
    state = flight.state
    if state[BACKED_OFF_PS] + state[TIMEOUT_PS] <= now_ps:
        state[BACKED_OFF_PS] = now_ps
        most_ps = MAX_BACKOFF * state[MIN_TIMEOUT_PS]
        if state[RETRY_PS] == most_ps:
            state[ALLOWED] = max(state[ALLOWED] // 2, 1)
        state[TIMEOUT_PS] = min(2 * state[TIMEOUT_PS], most_ps)
        state[RETRY_PS] = min(2 * state[RETRY_PS], most_ps)
