"""A worker of ATP: an agent that streams tensors through aggregators to parameter servers.

The tensors of a job follow one another without a gap, and their blocks (64 or 256 elements, as
many as a packet has lanes) are numbered through all of them. Block s goes to parameter server
s mod servers, and names the aggregator of position s mod window. Its result may propose another
aggregator for the block that has this position next; all workers have the result before they send
that block, so all name the same one.

When three packets that were sent later have their results, or after a timeout from the measured
round trip (RFC 6298), a probe follows a packet: a gradient without values of any worker, marked as
sent again, which takes along the aggregators' values of the block. If the packet has not come
before the probe, or with it, it has been lost, and the server requests it. So nothing is sent
again if nothing is lost, and late packets only wait for other workers or in a queue.

A window may allow fewer blocks to take aggregators than to be sent (A2TP). The rest are marked as
sent again from the first, so that switches pass them on, with a sum that others have begun.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import copy_items, handler, inline, signed
from ringleaf.core.headers import (
    ECN_MARKED,
    ECN_MASK,
    IP_TOS_AT,
    get16,
    put16,
    put32,
    write_ip_checksum,
    write_priority,
)
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import swap_items, window
from ringleaf.hosts.agent import AGENT_WORDS, PROGRESS, READY, RETRANSMISSIONS, TIMER_AT_PS
from ringleaf.ina.atp.scaling import copy_integers, quantise
from ringleaf.ina.atp.shares import advance, allow, note_marks, write_echoes
from ringleaf.ina.atp.state import (
    AGGREGATOR,
    BASE,
    CONTROL,
    END,
    IS_ALONE,
    IS_RAW,
    IS_SHARED,
    JOB,
    LANES,
    MARKED,
    NEXT,
    POSITION_WORDS,
    RESULTS,
    RESUMED_PS,
    SEQUENCE,
    SERVERS,
    TEMPLATES_AT,
    TENSOR,
    WINDOW,
    AtpWorker,
    open_worker,
)
from ringleaf.ina.atp.window import end_round, move_base, send_more, settle
from ringleaf.ina.atp.wire import (
    AGGREGATOR_AT,
    CONGESTED,
    INTEGERS,
    JOB_AT,
    MESSAGE_AT,
    PARAMETER,
    PROPOSAL_AT,
    RAW,
    REQUEST,
    RESEND,
    SEQUENCE_AT,
    SEQUENCE_MASK,
    SIZE_AT,
    SIZE_MASK,
    SIZE_NONE,
    VALUES_AT,
    get_sequence,
    put_workers,
)
from ringleaf.ina.congestion import ON_LOSS, tell_window
from ringleaf.ina.flight import (
    ATTEMPTS,
    LEVEL,
    SLOT_WORDS,
    STRAYS,
    back_off,
    deadline_ps,
    end_backoff,
    end_question,
    has_waiting,
    is_probe,
    link_slot,
    note_answer,
    pop_slot,
    push_again,
    push_lost,
    queue_overdue,
    queue_passed,
    take_sample,
    unlink_slot,
    wait_anew,
)
from ringleaf.ina.leases import note_written, source_at, target_at
from ringleaf.ina.tensors import (
    COUNT,
    DTYPE,
    FIRST,
    INT32,
    LEFT,
    PRIORITY,
    end_tensor,
    lay_out,
)


@handler
def begin_tensor(arena: Arena, at: int, row: int, now_ps: int) -> int:
    """Put a new tensor's blocks behind the others; an empty one is done at once."""
    worker = open_worker(arena, at)
    state = worker.state
    blocks = (worker.tensors.rows[row + COUNT] + state[LANES] - 1) // state[LANES]
    lay_out(worker.tensors, row, state[END], blocks, blocks)
    state[END] += blocks
    end_tensor(arena, at, worker.tensors, row, now_ps)
    if state[IS_SHARED]:
        allow(worker)
    send_more(worker)
    arena.words[at + READY] = has_waiting(worker.flight)
    return 0


@inline
def elements_before(worker: AtpWorker, position: int) -> int:
    """Return how many elements of its tensor lie before a position's block."""
    row = position * POSITION_WORDS
    first = worker.tensors.rows[worker.rows[row + TENSOR] + FIRST]
    return int((worker.rows[row + SEQUENCE] - first) * worker.state[LANES])


@inline
def elements_of(worker: AtpWorker, position: int) -> int:
    """Return how many elements a position's block has; fewer than lanes if it is the last one."""
    count = worker.tensors.rows[worker.rows[position * POSITION_WORDS + TENSOR] + COUNT]
    return min(worker.state[LANES], count - elements_before(worker, position))


@inline
def write_lanes(arena: Arena, worker: AtpWorker, position: int, lanes: Bytes) -> None:
    """Write a position's block into a packet, with zeros behind its end; note if it must go raw."""
    row = position * POSITION_WORDS
    tensor, tensors = worker.rows[row + TENSOR], worker.tensors.rows
    count = elements_of(worker, position)
    start = source_at(arena, worker.tensors, tensor, 4 * elements_before(worker, position))
    # Switches add int32. A block whose values do not fit goes raw to the server, and so does each
    # resend of it.
    if not worker.rows[row + IS_RAW]:
        block = window(arena.memory, start, 4 * count)
        scratch = worker.scratch.view(np.int32)
        if tensors[tensor + DTYPE] == INT32:
            fits = copy_integers(block.view(np.int32), scratch)
        else:
            fits = quantise(block.view(np.float32), scratch)
        worker.rows[row + IS_RAW] = not fits
    if worker.rows[row + IS_RAW]:
        swap_items(lanes, 0, arena.memory, start, count)
    else:
        swap_items(lanes, 0, worker.scratch, 0, count)
    # A packet's memory is that of an earlier packet, and switches add all lanes.
    for i in range(4 * count, 4 * worker.state[LANES]):
        lanes[i] = 0


@inline
def make_gradient(arena: Arena, worker: AtpWorker, position: int, priority: int) -> int:
    """Return the packet of a position's block; without values if it is a probe."""
    state = worker.state
    row = position * POSITION_WORDS
    sequence, tensor = worker.rows[row + SEQUENCE], worker.rows[row + TENSOR]
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    template = state[TEMPLATES_AT] + VALUES_AT * (sequence % state[SERVERS])
    copy_items(head, 0, arena.bytes, template, VALUES_AT)
    end = VALUES_AT + 4 * state[LANES]
    if is_probe(worker.flight, position):
        # A probe names no workers, and so adds nothing. In a switch it collects the sum of its
        # block's aggregator, and takes that along to the server.
        put_workers(head, 0)
        for i in range(VALUES_AT, end):
            head[i] = 0
    else:
        write_lanes(arena, worker, position, head[VALUES_AT:end])
    # Switches begin no sum with a packet that is marked as sent again, as its first sending may be
    # in one already.
    if worker.flight.slots[position * SLOT_WORDS + ATTEMPTS] > 0 or worker.rows[row + IS_ALONE]:
        head[MESSAGE_AT] |= RESEND
    if worker.rows[row + IS_RAW]:
        head[MESSAGE_AT] |= RAW
    if worker.tensors.rows[tensor + DTYPE] == INT32:
        head[SIZE_AT] |= INTEGERS
    if priority != 0:
        write_priority(head, priority)
        write_ip_checksum(head)
    if state[IS_SHARED]:
        write_echoes(worker, head)
    put32(head, SEQUENCE_AT, sequence & SEQUENCE_MASK)
    put16(head, AGGREGATOR_AT, worker.rows[row + AGGREGATOR])
    view.row[HEAD_LEN] = end
    return packet


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the position that has waited longest."""
    worker = open_worker(arena, at)
    packet = -1
    while packet < 0 and has_waiting(worker.flight):
        position = pop_slot(worker.flight)
        row = position * POSITION_WORDS
        if worker.rows[row + SEQUENCE] < 0:
            continue  # the result came before the retransmission was sent
        slot = position * SLOT_WORDS
        server = worker.rows[row + SEQUENCE] % worker.state[SERVERS]
        priority = worker.tensors.rows[worker.rows[row + TENSOR] + PRIORITY]
        if is_probe(worker.flight, position):
            priority = worker.flight.slots[slot + LEVEL]  # it must not overtake the packet
        elif worker.flight.slots[slot + ATTEMPTS] > 0:
            arena.words[at + RETRANSMISSIONS] += 1
        packet = make_gradient(arena, worker, position, priority)
        link_slot(worker.flight, position, server, priority, now_ps)
        arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    arena.words[at + READY] = has_waiting(worker.flight)
    return packet


@inline
def awaited_position(worker: AtpWorker, head: Bytes, size: int) -> int:
    """Return the position that waits for a packet; -1 if none does, as for a duplicate."""
    state = worker.state
    kind = head[MESSAGE_AT] >> 4
    if size < VALUES_AT or head[JOB_AT] != state[JOB] or kind not in (PARAMETER, REQUEST):
        return -1
    if head[SIZE_AT] & SIZE_MASK != SIZE_NONE and size < VALUES_AT + 4 * state[LANES]:
        return -1
    # A sequence number is 32 bits on the wire and whole here. The difference to BASE is right
    # modulo 2^32; whether the position really waits for this block is compared below.
    ahead = (get_sequence(head) - state[BASE]) & SEQUENCE_MASK
    position = (state[BASE] + ahead) & (state[WINDOW] - 1)
    waits = worker.rows[position * POSITION_WORDS + SEQUENCE] == state[BASE] + ahead
    return position if waits else -1


@inline
def send_raw(worker: AtpWorker, position: int, now_ps: int) -> None:
    """Send a block as it is: its sum has overflowed, or another worker's values do not fit."""
    row = position * POSITION_WORDS
    if not worker.rows[row + IS_RAW]:
        worker.rows[row + IS_RAW] = 1
        push_lost(worker.flight, position, now_ps)


@inline
def keep_values(arena: Arena, worker: AtpWorker, position: int, head: Bytes) -> None:
    """Write a position's sums to the tensor's target."""
    tensor, rows = worker.rows[position * POSITION_WORDS + TENSOR], worker.tensors.rows
    start, count = 4 * elements_before(worker, position), elements_of(worker, position)
    target = target_at(arena, worker.tensors, tensor, start)
    swap_items(arena.memory, target, head, VALUES_AT, count)
    note_written(arena, worker.tensors, tensor, start, 4 * count)
    rows[tensor + LEFT] -= 1


@inline
def take_result(
    arena: Arena, at: int, worker: AtpWorker, position: int, head: Bytes, now_ps: int
) -> None:
    """Keep a result's values, and draw conclusions about other packets."""
    state = worker.state
    keep_values(arena, worker, position, head)
    if state[RESUMED_PS] == FOREVER_PS:
        state[RESUMED_PS] = now_ps
    if state[IS_SHARED]:
        note_marks(worker, position, head)
    else:
        is_marked = head[IP_TOS_AT] & ECN_MASK == ECN_MARKED
        state[RESULTS] += 1
        if head[MESSAGE_AT] & CONGESTED or is_marked:
            state[MARKED] += 1
    unlink_slot(worker.flight, position)
    was_lost = bool(head[MESSAGE_AT] & RESEND)
    # A result that some worker's resend has brought about took longer than a round trip.
    if not was_lost:
        take_sample(worker.flight, position, now_ps)
    end_backoff(worker.flight)
    end_question(worker.flight, position, was_lost, now_ps)
    note_answer(worker.flight, position, now_ps)
    settle(worker, position, signed(get16(head, PROPOSAL_AT)))
    if state[IS_SHARED]:
        advance(arena, at, worker, now_ps)
    else:
        move_base(worker)
        end_round(arena, at, worker, now_ps)
    queue_passed(worker.flight, now_ps)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result, a request, or a question for raw values."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    head = view.head
    position = awaited_position(worker, head, view.row[HEAD_LEN])
    if position >= 0:
        if head[MESSAGE_AT] >> 4 == REQUEST:
            # The server tells by the same request whether it adds raw values by now.
            worker.rows[position * POSITION_WORDS + IS_RAW] |= (head[MESSAGE_AT] & RAW) // RAW
            push_lost(worker.flight, position, now_ps)
            tell_window(arena, at + AGENT_WORDS + CONTROL, ON_LOSS, 0, now_ps)
        elif head[SIZE_AT] & SIZE_MASK == SIZE_NONE:
            send_raw(worker, position, now_ps)
        else:
            arena.words[at + PROGRESS] += 1
            tensor = worker.rows[position * POSITION_WORDS + TENSOR]
            take_result(arena, at, worker, position, head, now_ps)
            end_tensor(arena, at, worker.tensors, tensor, now_ps)
            send_more(worker)
        arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
        arena.words[at + READY] = has_waiting(worker.flight)
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue overdue packets."""
    worker = open_worker(arena, at)
    if queue_overdue(worker.flight, now_ps):
        back_off(worker.flight, now_ps)
        tell_window(arena, at + AGENT_WORDS + CONTROL, ON_LOSS, 1, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    arena.words[at + READY] = has_waiting(worker.flight)
    return 0


@handler
def wait_for_results(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Wait for results anew, as if all blocks had been sent now: servers repeat what was lost."""
    worker = open_worker(arena, at)
    state = worker.state
    state[RESUMED_PS] = FOREVER_PS if state[BASE] < state[NEXT] else now_ps
    wait_anew(worker.flight, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    return 0


@handler
def ask_for(arena: Arena, at: int, position: int, now_ps: int) -> int:
    """Queue a probe for a position's block; the timer, which is due at once, has it sent."""
    flight = open_worker(arena, at).flight
    # Its answer says nothing of packets that were sent before, whose results are repeated.
    flight.slots[position * SLOT_WORDS + STRAYS] = 1
    push_again(flight, position)
    arena.words[at + TIMER_AT_PS] = now_ps
    return 0
