"""Packets on links: times of arrival, losses, damage, duplicates, late packets, and captures."""

from __future__ import annotations

import numpy as np

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Arena, Fields, Words
from ringleaf.core.chance import draw64
from ringleaf.core.compiled import call_handler, copy_items, inline, signed
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.core.heap import (
    event_of,
    first_event,
    order_at,
    order_own,
    pop_event,
    push_event,
    push_row,
    replace_first,
    word_of,
)
from ringleaf.core.packets import (
    AFTER,
    DUE_PS,
    DUE_WORD,
    HEAD_LEN,
    OWNER,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    PLACE,
    TAIL_LEN,
    copy_packet,
    free_packet,
    open_packet,
    pin_payload,
    release_phv,
    row_bytes,
    row_of,
)
from ringleaf.core.units import PS_PER_S
from ringleaf.core.views import prefetch, window
from ringleaf.networks.virtual.bins import count_bin
from ringleaf.networks.virtual.events import ARRIVAL, IDLE
from ringleaf.networks.virtual.state import box_of, line_row, port_row


@inline
def line_bytes(size_bytes: int) -> int:
    """Return the bytes of line time that a frame of `size_bytes`, without FCS, takes."""
    return max(size_bytes, MIN_FRAME_BYTES) + LINE_OVERHEAD_BYTES


@inline
def draw(random: Fields) -> int:
    """Return 53 random bits."""
    # Probabilities have 53 bits (`PROBABILITY_ONE`).
    return signed(draw64(random, 0) >> np.uint64(11))


@inline
def happens(random: Fields, probability: int) -> bool:
    """Return whether an event of probability `probability` * 2^-53 happens; 0 draws no number."""
    return probability > 0 and draw(random) < probability


@inline
def capture(arena: Arena, at: int, port: int, packet: int, now_ps: int, order: int) -> None:
    """Append a packet to the capture buffer, as its first bit is sent or its last bit came."""
    words = arena.words
    view = open_packet(arena, packet)
    row = view.row
    head, body, tail = row[HEAD_LEN], row[PAYLOAD_LEN], row[TAIL_LEN]
    start = words[at + s.CAPTURE_BYTES_AT] + words[at + s.CAPTURE_USED]
    buffer = window(arena.bytes, start, head + body + tail)
    copy_items(buffer, 0, view.head, 0, head)
    copy_items(buffer, head, arena.memory, row[PAYLOAD_AT], body)
    for place in range(head + body, head + body + tail):
        buffer[place] = 0
    entry = words[at + s.CAPTURE_AT] + s.CAPTURE_ROW_WORDS * words[at + s.CAPTURE_COUNT]
    words[entry] = now_ps
    words[entry + 1] = port
    words[entry + 2] = start
    words[entry + 3] = buffer.size
    words[entry + 4] = order
    words[at + s.CAPTURE_COUNT] += 1
    words[at + s.CAPTURE_USED] += buffer.size


@inline
def push_packet(words: Words, at: int, time_ps: int, kind: int, port: int, packet: int) -> None:
    """Add an event of a packet that its own node makes, at one of its ports."""
    heap = words[at + s.HEAP_AT]
    words[row_of(words, packet) + PLACE] = port
    push_event(words, heap, time_ps, kind | packet << 3, order_own(words, heap))


@inline
def deliver(words: Words, at: int, time_ps: int, here: int, packet: int) -> None:
    """Let a packet arrive at the other end of the link of a port, whose row is `here`."""
    peer, region = words[here + s.PEER], words[here + s.PEER_REGION]
    words[row_of(words, packet) + PLACE] = peer
    # Events of one time are ordered by the port where they arrive and its count of packets, and not
    # by when they were pushed. So regions and threads do not change the order.
    word = word_of(order_at(peer, words[here + s.TX_PACKETS]), ARRIVAL | packet << 3)
    if region == words[at + s.REGION]:
        join_line(words, at, time_ps, word)
    else:
        mail(words, at, region, time_ps, word)


@inline
def join_line(words: Words, at: int, time_ps: int, word: int) -> None:
    """Let a packet of this order and event arrive at a port of this region.

    Packets of a link arrive in their order, unless some are late. So only the first one needs a row
    of the heap, which thus stays small. A packet that overtakes others has a row of its own.
    """
    heap, packet = words[at + s.HEAP_AT], event_of(word) >> 3
    row = row_of(words, packet)
    line = line_row(words, at, words[row + PLACE])
    words[row + DUE_PS], words[row + DUE_WORD], words[row + AFTER] = time_ps, word, -1
    if words[line + s.LINE_FIRST] < 0:
        words[line + s.LINE_FIRST] = packet
        push_row(words, heap, time_ps, word)
    else:
        last = row_of(words, words[line + s.LINE_LAST])
        last_ps = words[last + DUE_PS]
        # A packet that was delayed less than the one before it overtakes, and can't be in a list
        # that is ordered by time.
        if time_ps < last_ps or (time_ps == last_ps and word < words[last + DUE_WORD]):
            push_row(words, heap, time_ps, word)
            return
        words[last + AFTER] = packet
    words[line + s.LINE_LAST] = packet


@inline
def take_event(words: Words, at: int) -> int:
    """Remove the first event and return it; the next packet of its link gets a row of the heap."""
    heap = words[at + s.HEAP_AT]
    event = first_event(words, heap)
    if event & 7 == ARRIVAL:
        row = row_of(words, event >> 3)
        line = line_row(words, at, words[row + PLACE])
        if words[line + s.LINE_FIRST] == event >> 3:
            following = words[row + AFTER]
            words[line + s.LINE_FIRST] = following
            if following >= 0:
                after = row_of(words, following)
                # One sift of the heap in place of a removal and an insertion: the next packet of a
                # link mostly arrives soon.
                replace_first(words, heap, words[after + DUE_PS], words[after + DUE_WORD])
                prefetch(words, row_of(words, words[after + AFTER]) + DUE_PS)
                return event
    return pop_event(words, heap)


@inline
def mail(words: Words, at: int, region: int, time_ps: int, word: int) -> None:
    """Leave a packet's order and event for another region; the caller keeps BOX_ROWS."""
    box = box_of(words, at, region, words[at + s.HALF])
    row = box + s.BOX_HEADER + 2 * words[box]
    words[row], words[row + 1] = time_ps, word
    words[box] += 1
    words[at + s.MAIL_PS] = min(words[at + s.MAIL_PS], time_ps)


@inline
def is_only_damaged(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> bool:
    """Return whether a packet to which something happens gets a wrong bit, and is not lost."""
    block = arena.words[at + s.DAMAGE_AT]
    if block == 0:
        return False
    return call_handler(arena.words[block], arena, at, packet | port << s.PACKET_BITS, now_ps) > 0


@inline
def send(arena: Arena, at: int, port: int, packet: int, now_ps: int) -> None:
    """Put a packet on the line of an idle port.

    `now_ps` is when a host's agent gives the packet away. It is on the line OUTWARD_PS later, like
    all others of this port, so the port's idle times are counted in the agent's time, too.
    """
    words = arena.words
    here = port_row(words, at, port)
    row = row_of(words, packet)
    # A packet on a line has no fields, and header vectors are few.
    release_phv(arena, packet)
    line = line_bytes(row_bytes(words, row))
    rate = words[here + s.RATE_BPS]
    # Rounding up keeps a line from carrying more than its rate, however many packets there are.
    done_ps = now_ps + (line * (8 * PS_PER_S) + rate - 1) // rate
    words[here + s.BUSY_UNTIL_PS] = done_ps
    words[here + s.TX_BYTES] += line
    words[here + s.TX_PACKETS] += 1
    on_line_ps = now_ps + words[here + s.OUTWARD_PS]
    count_bin(words, at, port, words[row + OWNER], on_line_ps, line)
    if words[here + s.CAPTURE]:
        if words[here + s.CAPTURE] & s.CAPTURE_SENT:
            capture(arena, at, port, packet, on_line_ps, s.SENT)
        if words[here + s.CAPTURE] & s.PIN:
            pin_payload(arena, packet)
    # Each port has a state of its own, so that its losses do not depend on the order of events at
    # others.
    random = window(arena.fields, words[at + s.RANDOM_AT] + port, 1)
    # A lost packet has occupied the line, and was captured: it is lost behind the sender.
    if happens(random, words[here + s.LOSS]) and not is_only_damaged(
        arena, at, port, packet, now_ps
    ):
        words[here + s.LOST] += 1
        free_packet(arena, packet)
        return
    at_ps = done_ps + words[here + s.DELAY_PS]
    if happens(random, words[at + s.DUPLICATE]):
        twin = copy_packet(arena, packet)
        late_ps = at_ps + draw(random) % (words[at + s.JITTER_PS] + 1)
        deliver(words, at, late_ps, here, twin)
    if happens(random, words[at + s.REORDER]):
        at_ps += draw(random) % (words[at + s.JITTER_PS] + 1)
    deliver(words, at, at_ps, here, packet)


@inline
def await_idle(words: Words, at: int, port: int) -> None:
    """Make sure that there is an event when the port falls idle."""
    here = port_row(words, at, port)
    if not words[here + s.DRAINING]:
        words[here + s.DRAINING] = 1
        heap, idle_ps = words[at + s.HEAP_AT], words[here + s.BUSY_UNTIL_PS]
        push_event(words, heap, idle_ps, IDLE | port << 3, order_own(words, heap))
