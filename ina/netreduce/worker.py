"""A host's side of NetReduce: tensors in messages, over two queue pairs of a ring.

A worker sends its tensors to the next host of the ring, in messages of up to half a window, over
a reliable connection as any other; and gets as much from the host before it, but the switches have
put the sums there. A message whose sum has come, and which the next host has acknowledged, is a
credit for another one.

Loss, order and duplicates are the transport's (`ringleaf.hosts.rc`): acknowledgements, probes and
go-back-N, of which the switches know nothing but that a packet may come again.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import call_handler, handler, inline
from ringleaf.core.views import swap_items, window
from ringleaf.hosts.agent import (
    COMPLETION_WORDS,
    PROGRESS,
    READY,
    REFUSALS,
    RETRANSMISSIONS,
    RING_HEADER,
    TIMER_AT_PS,
)
from ringleaf.hosts.rc import COPY
from ringleaf.hosts.rc import RECEIVED as HAS_COME
from ringleaf.hosts.rc import SENT as HAS_GONE
from ringleaf.hosts.rc.receiver import post_receive
from ringleaf.hosts.rc.sender import post_send
from ringleaf.hosts.rc.state import MIN_TIMEOUT_PS, TIMEOUT_PS, UNANSWERED, open_qp
from ringleaf.ina.netreduce.state import (
    CREDITS,
    CURRENT,
    LANES,
    MESSAGE_WORDS,
    OFFSET,
    PACKETS,
    POSTED,
    RC,
    RC_FIRE,
    RC_RECEIVE,
    RC_TRANSMIT,
    RECEIVED,
    RECEIVES_AT,
    REPORTS,
    SENDS_AT,
    SENT,
    NetReduceWorker,
    open_worker,
)
from ringleaf.ina.netreduce.values import read_floats, write_floats
from ringleaf.ina.netreduce.wire import FROM_PREVIOUS, TO_NEXT
from ringleaf.ina.tensors import (
    COUNT,
    DTYPE,
    FLOAT32,
    LEFT,
    SOURCE_AT,
    TARGET_AT,
    end_tensor,
    lay_out,
    tensor_row,
)
from ringleaf.ina.tensors import POSTED as TENSORS_POSTED

MOST_UNANSWERED = 2
"""Probes without answer after which the timeout is not doubled any more."""


@inline
def has_next(worker: NetReduceWorker) -> bool:
    """Return whether there is an element to send, and go on to its tensor."""
    state, tensors = worker.state, worker.tensors
    while state[CURRENT] < tensors.state[TENSORS_POSTED]:
        if state[OFFSET] < tensors.rows[tensor_row(state[CURRENT]) + COUNT]:
            return True
        state[CURRENT] += 1
        state[OFFSET] = 0
    return False


@inline
def buffer_bytes(worker: NetReduceWorker) -> int:
    """Return the bytes of the largest message, which each buffer has room for."""
    return int(4 * worker.state[PACKETS] * worker.state[LANES])


@inline
def fill(
    arena: Arena, worker: NetReduceWorker, tensor: int, first: int, count: int, buffer: int
) -> int:
    """Write elements to a buffer, with zeros to the end of the last packet; return the bytes."""
    lanes, rows = worker.state[LANES], worker.tensors.rows
    size = 4 * ((count + lanes - 1) // lanes * lanes)
    start = rows[tensor + SOURCE_AT] + 4 * first
    if rows[tensor + DTYPE] == FLOAT32:
        source = window(arena.memory, start, 4 * count).view(np.float32)
        write_floats(source, window(arena.memory, buffer, size))
    else:
        swap_items(arena.memory, buffer, arena.memory, start, count)
    for i in range(buffer + 4 * count, buffer + size):
        arena.memory[i] = 0
    return int(size)


@inline
def post_messages(arena: Arena, worker: NetReduceWorker, now_ps: int) -> None:
    """Send messages as long as there are credits."""
    state = worker.state
    while state[POSTED] < min(state[SENT], state[RECEIVED]) + CREDITS and has_next(worker):
        tensor = tensor_row(state[CURRENT])
        first, place = state[OFFSET], state[POSTED] % CREDITS
        left = worker.tensors.rows[tensor + COUNT] - first
        count = min(left, state[PACKETS] * state[LANES])
        outgoing = state[SENDS_AT] + place * buffer_bytes(worker)
        incoming = state[RECEIVES_AT] + place * buffer_bytes(worker)
        size = fill(arena, worker, tensor, first, count, outgoing)
        worker.messages[place * MESSAGE_WORDS] = tensor
        worker.messages[place * MESSAGE_WORDS + 1] = first
        worker.messages[place * MESSAGE_WORDS + 2] = count
        post_receive(arena, state[RC], FROM_PREVIOUS, incoming, size, place, COPY)
        post_send(arena, state[RC], TO_NEXT, outgoing, size, place, now_ps)
        state[POSTED] += 1
        state[OFFSET] += count


@inline
def keep_sums(arena: Arena, at: int, worker: NetReduceWorker, place: int, now_ps: int) -> None:
    """Write a message's sums to its tensor's target."""
    rows = worker.tensors.rows
    tensor = worker.messages[place * MESSAGE_WORDS]
    first = worker.messages[place * MESSAGE_WORDS + 1]
    count = worker.messages[place * MESSAGE_WORDS + 2]
    buffer = worker.state[RECEIVES_AT] + place * buffer_bytes(worker)
    start = rows[tensor + TARGET_AT] + 4 * first
    if rows[tensor + DTYPE] == FLOAT32:
        target = window(arena.memory, start, 4 * count).view(np.float32)
        read_floats(window(arena.memory, buffer, buffer_bytes(worker)), target)
    else:
        swap_items(arena.memory, start, arena.memory, buffer, count)
    rows[tensor + LEFT] -= 1
    end_tensor(arena, at, worker.tensors, tensor, now_ps)


@inline
def keep_timeout(arena: Arena, block: int) -> None:
    """Keep the timeout as it was at first, as a card's is (InfiniBand's Local ACK Timeout).

    A packet is acknowledged once all workers' packets have come. So if the round trip counted, each
    worker's timeout would grow with the others', without end where many packets are lost.
    """
    state = open_qp(arena, block, TO_NEXT).state
    state[TIMEOUT_PS] = 2 * arena.words[block + MIN_TIMEOUT_PS]
    state[UNANSWERED] = min(state[UNANSWERED], MOST_UNANSWERED)


@inline
def follow(arena: Arena, at: int, worker: NetReduceWorker, now_ps: int) -> None:
    """Take the rc agent's reports, send what they allow, and show the NIC the rc agent's words."""
    words, state = arena.words, worker.state
    ring = state[REPORTS]
    for i in range(words[ring]):
        row = ring + RING_HEADER + i * COMPLETION_WORDS
        if words[row + 1] == HAS_COME:
            keep_sums(arena, at, worker, words[row + 3], now_ps)
            state[RECEIVED] += 1
        elif words[row + 1] == HAS_GONE:
            state[SENT] += 1
    words[ring] = 0
    post_messages(arena, worker, now_ps)
    block = state[RC]
    keep_timeout(arena, block)
    words[at + READY], words[at + TIMER_AT_PS] = words[block + READY], words[block + TIMER_AT_PS]
    words[at + PROGRESS] = words[block + PROGRESS]
    words[at + RETRANSMISSIONS] = words[block + RETRANSMISSIONS]
    words[at + REFUSALS] = words[block + REFUSALS]


@handler
def begin_tensor(arena: Arena, at: int, row: int, now_ps: int) -> int:
    """Put a new tensor's messages behind the others; an empty one is done at once."""
    worker = open_worker(arena, at)
    full = worker.state[PACKETS] * worker.state[LANES]
    messages = (worker.tensors.rows[row + COUNT] + full - 1) // full
    lay_out(worker.tensors, row, 0, messages, messages)
    end_tensor(arena, at, worker.tensors, row, now_ps)
    follow(arena, at, worker, now_ps)
    return 0


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the next packet of the queue pairs."""
    worker = open_worker(arena, at)
    packet = call_handler(worker.state[RC_TRANSMIT], arena, worker.state[RC], 0, now_ps)
    follow(arena, at, worker, now_ps)
    return int(packet)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Give a packet to the queue pairs."""
    worker = open_worker(arena, at)
    call_handler(worker.state[RC_RECEIVE], arena, worker.state[RC], packet, now_ps)
    follow(arena, at, worker, now_ps)
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Let the queue pairs' deadlines expire."""
    worker = open_worker(arena, at)
    call_handler(worker.state[RC_FIRE], arena, worker.state[RC], 0, now_ps)
    follow(arena, at, worker, now_ps)
    return 0
