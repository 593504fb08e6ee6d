"""The event loop of virtual time on real sockets and the wall clock.

Switches, queues, links' rates and delays, hosts and their agents are those of
`networks/virtual/loop.py`. There are three differences: time is the clock's; a packet for an
OUTSIDE node is sent on a socket; and frames from sockets arrive at ports. An event is handled with
the time at which it was due, so that a process that is scheduled late still keeps its lines' rates.
"""

from __future__ import annotations

import ringleaf.networks.live.state as v
import ringleaf.networks.virtual.state as s
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Bytes, Words
from ringleaf.core.compiled import compiled, copy_items, handler, inline, signed
from ringleaf.core.heap import COUNT, first_time_ps
from ringleaf.core.native_types import ARENA
from ringleaf.core.packets import (
    HEAD_BYTES,
    HEAD_LEN,
    HEADS_AT,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    PLACE,
    TAIL_LEN,
    allocate_packet,
    free_packet,
    open_packet,
    row_of,
)
from ringleaf.core.units import PS_PER_MS, PS_PER_NS, PS_PER_S
from ringleaf.hosts.agent import complete
from ringleaf.networks.live.state import socket_row
from ringleaf.networks.live.syscalls import address_in, await_input, clock_ps, send_batch
from ringleaf.networks.virtual.events import ARRIVAL
from ringleaf.networks.virtual.lines import take_event
from ringleaf.networks.virtual.loop import REPORTED, UNTIL, handle, lacks_room
from ringleaf.networks.virtual.pfc.frames import is_pause

ASKED = 6  # another reason for `serve` to return: a thread, or a caller, wants something
LONGEST_WAIT_PS = 100 * PS_PER_MS
PACKET_IN = 1  # report of a desk, which stands for a switch's controllers. a: the packet
AT_ONCE = 64  # frames of one socket before the next one's turn


@inline
def get_u32(ring: Bytes, at: int) -> int:
    """Return a number in the machine's byte order, which is little-endian wherever Numba runs."""
    low = signed(ring[at]) | signed(ring[at + 1]) << 8
    return low | signed(ring[at + 2]) << 16 | signed(ring[at + 3]) << 24


@inline
def set_vector(words: Words, at: int, address: int, length: int) -> None:
    """Write an entry of a message's I/O vector (`struct iovec`, sendmmsg(2)): address, bytes."""
    words[at] = address
    words[at + 1] = length


@inline
def flush(arena: Arena, socket: int) -> None:
    """Send the packets that a socket has collected."""
    words = arena.words
    count = words[socket + v.PENDING]
    done = 0
    while done < count:
        messages = address_in(words, words[socket + v.MESSAGES_AT] + done * v.MESSAGE_WORDS)
        sent = send_batch(words[socket + v.DESCRIPTOR], messages, count - done, 0)
        if sent < 1:  # the first of them is refused: a link that is down, a full queue
            words[socket + v.REFUSED] += 1
            done += 1
        else:
            words[socket + v.SENT] += sent
            done += sent
    for i in range(count):
        free_packet(arena, words[words[socket + v.PACKETS_AT] + i])
    words[socket + v.PENDING] = 0


@handler
def discard(arena: Arena, _at: int, packet: int, _now_ps: int) -> int:
    """Drop a packet."""
    free_packet(arena, packet)
    return 0


@handler
def hand_over(arena: Arena, desk: int, packet: int, now_ps: int) -> int:
    """Report a packet to Python, which frees it; `serve` returns before it takes more.

    Controllers can't pause, so frames that ask for it end here.
    """
    view = open_packet(arena, packet)
    if is_pause(view.head, view.row[HEAD_LEN]):
        free_packet(arena, packet)
        return 0
    complete(arena, desk, PACKET_IN, packet, 0, now_ps)
    return 0


@handler
def emit(arena: Arena, socket: int, packet: int, _now_ps: int) -> int:
    """Add a packet to a socket's next batch."""
    words = arena.words
    number = words[socket + v.PENDING]
    row = row_of(words, packet)
    head = address_in(arena.bytes, words[HEADS_AT] + packet * words[HEAD_BYTES])
    vectors = words[socket + v.VECTORS_AT] + number * v.PARTS * v.VECTOR_WORDS
    set_vector(words, vectors, head, words[row + HEAD_LEN])
    payload = address_in(arena.memory, words[row + PAYLOAD_AT])
    set_vector(words, vectors + v.VECTOR_WORDS, payload, words[row + PAYLOAD_LEN])
    zeros = address_in(words, words[socket + v.ZEROS_AT])
    set_vector(words, vectors + 2 * v.VECTOR_WORDS, zeros, words[row + TAIL_LEN])
    message = words[socket + v.MESSAGES_AT] + number * v.MESSAGE_WORDS
    words[message + v.VECTORS_OF_MESSAGE] = address_in(words, vectors)
    words[message + v.PARTS_OF_MESSAGE] = v.PARTS
    words[words[socket + v.PACKETS_AT] + number] = packet
    words[socket + v.PENDING] = number + 1
    if number + 1 == v.BATCH:
        flush(arena, socket)
    return 0


@inline
def give_back(rings: Bytes, frame: int) -> None:
    """Return a frame to the kernel: set its status to 0, with the byte that names the owner last.

    The highest byte is set, too, while any program on the machine asks for timestamps, as ping
    does.
    """
    for byte in (3, 2, 1, 0):
        rings[frame + v.STATUS_AT + byte] = 0


@inline
def take_frame(arena: Arena, socket: int, rings: Bytes, frame: int) -> int:
    """Return a frame of the ring as a packet; -1 if it is too long."""
    words = arena.words
    length = get_u32(rings, frame + v.LENGTH_AT)
    if get_u32(rings, frame + v.KEPT_AT) < length or length > words[HEAD_BYTES]:
        words[socket + v.CUT] += 1
        return -1
    packet = allocate_packet(arena)
    # `tp_mac` has 16 bits, and `tp_net` is in the upper half of the same word.
    start = frame + (get_u32(rings, frame + v.START_AT) & 0xFFFF)
    head = words[HEADS_AT] + packet * words[HEAD_BYTES]
    copy_items(arena.bytes, head, rings, start, length)
    words[row_of(words, packet) + HEAD_LEN] = length
    return packet


@inline
def receive(arena: Arena, at: int, socket: int, rings: Bytes, now_ps: int) -> int:
    """Let a socket's frames arrive; return the reason why no more can be taken now, or 0."""
    words = arena.words
    for _ in range(AT_ONCE):
        frame = words[socket + v.RING_AT] + words[socket + v.FRAME] * v.FRAME_BYTES
        if not get_u32(rings, frame + v.STATUS_AT) & v.STATUS_USER:
            break
        if words[words[at + s.RING_AT]] > 0:
            break  # Python first: the next frame may be for a receive that it is about to post
        reason = lacks_room(arena, at)
        if reason:
            return reason
        packet = take_frame(arena, socket, rings, frame)
        # The frame has been copied, so the kernel can fill it again while the packet is handled.
        give_back(rings, frame)
        words[socket + v.FRAME] = (words[socket + v.FRAME] + 1) % words[socket + v.FRAMES]
        words[socket + v.RECEIVED] += 1
        if packet >= 0:
            words[row_of(words, packet) + PLACE] = words[socket + v.PORT]
            handle(arena, at, ARRIVAL | packet << 3, now_ps)
    return 0


@inline
def run_due(arena: Arena, at: int, now_ps: int) -> int:
    """Handle the events that are due, each at its time; return the reason to stop early, or 0."""
    words = arena.words
    heap = words[at + s.HEAP_AT]
    while words[heap + COUNT] > 0 and first_time_ps(words, heap) <= now_ps:
        if words[words[at + s.RING_AT]] > 0:
            break  # as in `receive`
        reason = lacks_room(arena, at)
        if reason:
            return reason
        words[at + s.EVENTS] += 1
        time_ps = first_time_ps(words, heap)
        handle(arena, at, take_event(words, at), time_ps)
    return 0


@inline
def wait(arena: Arena, at: int, live: int, now_ps: int, until_ps: int) -> None:
    """Sleep until a frame, the next event, a wake-up, or a call."""
    words = arena.words
    heap = words[at + s.HEAP_AT]
    next_ps = min(until_ps, now_ps + LONGEST_WAIT_PS)
    if words[heap + COUNT] > 0:
        next_ps = min(next_ps, first_time_ps(words, heap))
    left_ps = max(next_ps - now_ps, 0)
    scratch = words[live + v.SCRATCH_AT]
    words[scratch] = left_ps // PS_PER_S
    words[scratch + 1] = left_ps % PS_PER_S // PS_PER_NS
    poll = address_in(words, words[live + v.POLL_AT])
    # Behind the sockets are the descriptor that wakes the loop and that of the caller.
    await_input(poll, words[live + v.SOCKETS] + 2, address_in(words, scratch), 0)


@inline
def is_called(words: Words, live: int) -> bool:
    """Return whether the last `wait` found that the caller's descriptor has something to read."""
    caller = words[live + v.POLL_AT] + words[live + v.SOCKETS] + 1
    return bool(words[caller] >> v.HAPPENED)


@inline
def turn(arena: Arena, at: int, live: int, rings: Bytes, now_ps: int) -> int:
    """Handle all that is due now; return the reason why no more can be handled, or 0."""
    words = arena.words
    reason = run_due(arena, at, now_ps)
    for number in range(words[live + v.SOCKETS]):
        if reason == 0:
            reason = receive(arena, at, socket_row(words, live, number), rings, now_ps)
    # The frames that came have made events, some of which are due at once.
    if reason == 0:
        reason = run_due(arena, at, now_ps)
    for number in range(words[live + v.SOCKETS]):
        # All packets of a turn leave by one call of the kernel per socket.
        flush(arena, socket_row(words, live, number))
    return reason


@inline
def received(words: Words, live: int) -> int:
    """Return the number of frames that have come so far."""
    total = 0
    for number in range(words[live + v.SOCKETS]):
        total += words[socket_row(words, live, number) + v.RECEIVED]
    return total


@compiled(types.int64(ARENA, types.int64, types.int64, types.uint8[::1], types.int64), nogil=True)
def serve(arena: Arena, at: int, live: int, rings: Bytes, until_ps: int) -> int:
    """Serve the sockets until an agent reports, a thread asks or time is up; return the reason.

    Args:
        arena: All state.
        at: The network's block.
        live: The sockets' block.
        rings: All sockets' receive rings.
        until_ps: End of serving, in the time that began at START_PS of the clock.
    """
    words = arena.words
    completions, scratch = words[at + s.RING_AT], words[live + v.SCRATCH_AT]
    before = -1
    while True:
        now_ps = clock_ps(words, scratch) - words[live + v.START_PS]
        words[live + v.TURN_PS] = now_ps
        reason = turn(arena, at, live, rings, now_ps)
        if reason:
            return reason
        if words[completions] > 0:
            return REPORTED
        if now_ps >= until_ps:
            return UNTIL
        if words[live + v.ASKED]:
            return ASKED
        total = received(words, live)
        # It sleeps only after a turn without frames, as more often come soon after others.
        if total == before:
            wait(arena, at, live, now_ps, until_ps)
            if is_called(words, live):
                return ASKED
        before = total


@compiled(types.int64(ARENA, types.int64), nogil=True)
def now_of(arena: Arena, live: int) -> int:
    """Return the process's time in picoseconds."""
    words = arena.words
    return clock_ps(words, words[live + v.SCRATCH_AT]) - words[live + v.START_PS]
