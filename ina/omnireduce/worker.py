"""A rank's side of OmniReduce: an agent that streams blocks that are not zero to aggregators.

Block k of a tensor lies in column k mod (slots x columns), at the position of the
quotient; columns are dealt to slots, a few neighbouring ones each, beginning where those of the
tensor before end, and a slot goes on to its next tensor without waiting for others. So a
slot's packet holds neighbouring blocks if there are some, and slots get equal parts of a tensor
whose non-zero elements lie together. A slot has one packet in flight, and the result of one
round releases the next.

Rounds are counted through all tensors of the job. As they are, and as an aggregator waits for all
workers in every round, packets may be lost, repeated or late (the paper's algorithm 2).
The memory that a packet in flight refers to is overwritten only when its result has come; by then
the aggregator looks at no more than the head of a copy of it.

A packet without result is sent again when three packets sent later, to the same aggregator, have
theirs, or after a timeout from the measured round trip (`ringleaf.ina.flight`).

Source:
    Fei, Ho, Sahu, Canini and Sapio, "Efficient sparse collective communication and its
    application to accelerate distributed deep learning", SIGCOMM '21, section 3 and
    appendix A.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import copy_items, handler, inline
from ringleaf.core.headers import (
    IP_LENGTH_AT,
    IP_TOS_AT,
    UDP_LENGTH_AT,
    UDP_PAYLOAD_AT,
    get16,
    get32,
    put16,
    put32,
    write_ip_checksum,
)
from ringleaf.core.packets import (
    HEAD_LEN,
    PAYLOAD_AT,
    PAYLOAD_LEN,
    Packet,
    allocate_packet,
    open_packet,
)
from ringleaf.hosts.agent import PROGRESS, READY, RETRANSMISSIONS, TIMER_AT_PS
from ringleaf.ina.flight import (
    ATTEMPTS,
    OUT_OF_TURN,
    SLOT_WORDS,
    back_off,
    deadline_ps,
    end_backoff,
    has_waiting,
    link_slot,
    note_answer,
    pop_slot,
    push_first,
    queue_overdue,
    queue_passed,
    take_sample,
    unlink_slot,
)
from ringleaf.ina.omnireduce.state import (
    AGGREGATORS,
    COLUMNS,
    IS_BUSY,
    JOB,
    NEXT_SLOT,
    NEXTS,
    POSITIONS,
    PRESENT,
    RANK,
    ROUND,
    ROW_WORDS,
    SLOTS,
    STAGING_AT,
    TEMPLATE_BYTES,
    TEMPLATES_AT,
    TENSOR,
    OmniReduceWorker,
    open_worker,
)
from ringleaf.ina.omnireduce.values import bytes_from, clear, copy_values, is_zero
from ringleaf.ina.omnireduce.wire import (
    BLOCK,
    BLOCK_BYTES,
    COLUMNS_AT,
    JOB_AT,
    MESSAGE_AT,
    NEXT_AT,
    NONE,
    PRESENT_AT,
    RESULT,
    ROUND_AT,
    ROUND_MASK,
    SLOT_AT,
    UPDATE,
    WORKER_AT,
    count_bits,
    values_at,
)
from ringleaf.ina.tensors import (
    BLOCKS,
    COUNT,
    DTYPE,
    FIRST,
    LEFT,
    POSTED,
    PRIORITY,
    SOURCE_AT,
    TARGET_AT,
    end_tensor,
    lay_out,
    tensor_row,
)


@inline
def row_of(worker: OmniReduceWorker, slot: int) -> int:
    """Return the row of the slot's tensor."""
    return int(tensor_row(worker.rows[slot * ROW_WORDS + TENSOR]))


@inline
def block_of(worker: OmniReduceWorker, slot: int, column: int, position: int) -> int:
    """Return the number of the block at a position, whether the tensor has so many or not."""
    state = worker.state
    place = (slot - worker.tensors.rows[row_of(worker, slot) + FIRST]) % state[SLOTS]
    return int((position * state[SLOTS] + place) * state[COLUMNS] + column)


@inline
def block_range(worker: OmniReduceWorker, slot: int, column: int, position: int) -> tuple[int, int]:
    """Return the bytes from the start of the slot's tensor to a block, and to the block's end."""
    first = block_of(worker, slot, column, position) * BLOCK
    return 4 * first, 4 * min(first + BLOCK, worker.tensors.rows[row_of(worker, slot) + COUNT])


@inline
def next_position(
    arena: Arena, worker: OmniReduceWorker, slot: int, column: int, position: int
) -> int:
    """Return the column's first position from this one on whose block is not zero, or NONE."""
    rows, tensor = worker.tensors.rows, row_of(worker, slot)
    source = rows[tensor + SOURCE_AT]
    while block_of(worker, slot, column, position) < rows[tensor + BLOCKS]:
        start, end = block_range(worker, slot, column, position)
        if not is_zero(arena.memory, source + start, source + end):
            return position
        position += 1
    return NONE


@inline
def stage_block(
    arena: Arena, worker: OmniReduceWorker, slot: int, column: int, position: int, target: int
) -> None:
    """Copy a block to the memory that the packet refers to, with zeros behind its end."""
    start, end = block_range(worker, slot, column, position)
    source = worker.tensors.rows[row_of(worker, slot) + SOURCE_AT]
    copy_items(arena.memory, target, arena.memory, source + start, end - start)
    clear(arena.memory, target + end - start, target + BLOCK_BYTES)


@inline
def begin_round(arena: Arena, worker: OmniReduceWorker, slot: int) -> None:
    """Gather the worker's blocks at the slot's positions, and queue them for sending."""
    row = slot * ROW_WORDS
    rows = worker.rows
    columns = worker.state[COLUMNS]
    target = worker.state[STAGING_AT] + slot * columns * BLOCK_BYTES
    rows[row + PRESENT] = 0
    for column in range(columns):
        position = rows[row + POSITIONS + column]
        if position != NONE and rows[row + NEXTS + column] == position:
            stage_block(arena, worker, slot, column, position, target)
            target += BLOCK_BYTES
            rows[row + PRESENT] |= 1 << column
            after = next_position(arena, worker, slot, column, position + 1)
            rows[row + NEXTS + column] = after
    push_first(worker.flight, slot)


@inline
def begin_slot(arena: Arena, worker: OmniReduceWorker, slot: int) -> None:
    """Put the slot's columns at the start of its tensor."""
    row, blocks = slot * ROW_WORDS, worker.tensors.rows[row_of(worker, slot) + BLOCKS]
    rows = worker.rows
    for column in range(worker.state[COLUMNS]):
        exists = block_of(worker, slot, column, 0) < blocks
        rows[row + POSITIONS + column] = 0 if exists else NONE
        rows[row + NEXTS + column] = next_position(arena, worker, slot, column, 0)
    rows[row + IS_BUSY] = 1
    begin_round(arena, worker, slot)


@inline
def next_tensor(arena: Arena, worker: OmniReduceWorker, slot: int) -> None:
    """Let an idle slot begin with the next tensor that has a block for it, if there is one."""
    row, tensors = slot * ROW_WORDS, worker.tensors
    while not worker.rows[row + IS_BUSY] and worker.rows[row + TENSOR] < tensors.state[POSTED]:
        if block_of(worker, slot, 0, 0) < tensors.rows[row_of(worker, slot) + BLOCKS]:
            begin_slot(arena, worker, slot)
        else:
            worker.rows[row + TENSOR] += 1


@handler
def begin_tensor(arena: Arena, at: int, row: int, now_ps: int) -> int:
    """Deal a new tensor's columns to slots; an empty one is done at once."""
    worker = open_worker(arena, at)
    state = worker.state
    blocks = (worker.tensors.rows[row + COUNT] + BLOCK - 1) // BLOCK
    slots = min(state[SLOTS], (blocks + state[COLUMNS] - 1) // state[COLUMNS])
    first = state[NEXT_SLOT]
    lay_out(worker.tensors, row, first, blocks, slots)
    state[NEXT_SLOT] = (first + slots) % state[SLOTS]
    worker.flight.state[OUT_OF_TURN] = worker.tensors.state[POSTED] > 1  # slots may be busy, or not
    for i in range(state[SLOTS]):
        slot = (first + i) % state[SLOTS]
        if not worker.rows[slot * ROW_WORDS + IS_BUSY]:
            next_tensor(arena, worker, slot)
    worker.flight.state[OUT_OF_TURN] = 0
    end_tensor(arena, at, worker.tensors, row, now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)
    return 0


@inline
def make_update(arena: Arena, worker: OmniReduceWorker, slot: int) -> int:
    """Return the packet of the slot's round."""
    state = worker.state
    row = slot * ROW_WORDS
    columns, present = state[COLUMNS], worker.rows[row + PRESENT]
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    end = values_at(columns)
    template = state[TEMPLATES_AT] + slot % state[AGGREGATORS] * TEMPLATE_BYTES
    copy_items(head, 0, arena.bytes, template, end)
    tensor, rows = row_of(worker, slot), worker.tensors.rows
    head[MESSAGE_AT] = UPDATE << 4 | rows[tensor + DTYPE]
    head[IP_TOS_AT] |= rows[tensor + PRIORITY] << 5
    head[PRESENT_AT] = present
    put16(head, SLOT_AT, slot)
    put32(head, ROUND_AT, worker.rows[row + ROUND] & ROUND_MASK)
    for column in range(columns):
        put32(head, NEXT_AT + 4 * column, worker.rows[row + NEXTS + column])
    refer(view, end, state[STAGING_AT] + slot * columns * BLOCK_BYTES, present)
    return packet


@inline
def refer(view: Packet, end: int, blocks_at: int, present: int) -> None:
    """End a packet's head, and make the blocks in memory its payload."""
    size = count_bits(present) * BLOCK_BYTES
    view.row[HEAD_LEN] = end
    view.row[PAYLOAD_AT], view.row[PAYLOAD_LEN] = blocks_at, size
    udp_bytes = end - UDP_PAYLOAD_AT + size
    put16(view.head, IP_LENGTH_AT, 28 + udp_bytes)
    put16(view.head, UDP_LENGTH_AT, 8 + udp_bytes)
    write_ip_checksum(view.head)


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the slot that has waited longest."""
    worker = open_worker(arena, at)
    flight = worker.flight
    packet = -1
    while packet < 0 and has_waiting(flight):
        slot = pop_slot(flight)
        if not worker.rows[slot * ROW_WORDS + IS_BUSY]:
            continue  # the result came before the retransmission was sent
        packet = make_update(arena, worker, slot)
        if flight.slots[slot * SLOT_WORDS + ATTEMPTS] > 0:
            arena.words[at + RETRANSMISSIONS] += 1
        priority = worker.tensors.rows[row_of(worker, slot) + PRIORITY]
        link_slot(flight, slot, slot % worker.state[AGGREGATORS], priority, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(flight)
    arena.words[at + READY] = has_waiting(flight)
    return packet


@inline
def is_awaited(worker: OmniReduceWorker, view: Packet) -> bool:
    """Return whether a packet is the result of a round that is under way, and whole."""
    state = worker.state
    head = view.head
    columns = state[COLUMNS]
    first = values_at(columns)
    if view.row[HEAD_LEN] < first or head[COLUMNS_AT] != columns:
        return False
    slot = get16(head, SLOT_AT)
    if head[MESSAGE_AT] >> 4 != RESULT or head[JOB_AT] != state[JOB] or slot >= state[SLOTS]:
        return False
    row = slot * ROW_WORDS
    return bool(
        worker.rows[row + IS_BUSY]
        and get32(head, ROUND_AT) == worker.rows[row + ROUND] & ROUND_MASK
        and get16(head, WORKER_AT) == state[RANK]
        and bytes_from(view, first) >= count_bits(int(head[PRESENT_AT])) * BLOCK_BYTES
    )


@inline
def take_sums(arena: Arena, worker: OmniReduceWorker, slot: int, view: Packet) -> bool:
    """Write the sums that a result holds; return whether it names further positions."""
    row = slot * ROW_WORDS
    rows, columns = worker.rows, worker.state[COLUMNS]
    first, target = values_at(columns), worker.tensors.rows[row_of(worker, slot) + TARGET_AT]
    offset = 0
    is_busy = 0
    for column in range(columns):
        if int(view.head[PRESENT_AT]) >> column & 1:
            start, end = block_range(worker, slot, column, rows[row + POSITIONS + column])
            copy_values(arena, view, first, offset, target + start, end - start)
            offset += BLOCK_BYTES
        position = get32(view.head, NEXT_AT + 4 * column)
        rows[row + POSITIONS + column] = position
        is_busy |= position != NONE
    return bool(is_busy)


@inline
def take_result(
    arena: Arena, at: int, worker: OmniReduceWorker, slot: int, view: Packet, now_ps: int
) -> None:
    """Take a round's sums, and go on with the tensor, or with the next one."""
    row, tensor = slot * ROW_WORDS, row_of(worker, slot)
    is_busy = take_sums(arena, worker, slot, view)
    worker.rows[row + ROUND] += 1
    if is_busy:
        begin_round(arena, worker, slot)
    else:
        worker.rows[row + IS_BUSY] = 0
        worker.rows[row + TENSOR] += 1
        worker.tensors.rows[tensor + LEFT] -= 1
        next_tensor(arena, worker, slot)
        end_tensor(arena, at, worker.tensors, tensor, now_ps)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    flight = worker.flight
    if is_awaited(worker, view):
        slot = get16(view.head, SLOT_AT)
        arena.words[at + PROGRESS] += 1
        unlink_slot(flight, slot)
        take_sample(flight, slot, now_ps)
        end_backoff(flight)
        note_answer(flight, slot, now_ps)
        take_result(arena, at, worker, slot, view, now_ps)
        queue_passed(flight, now_ps)
        arena.words[at + TIMER_AT_PS] = deadline_ps(flight)
        arena.words[at + READY] = has_waiting(flight)
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue overdue packets."""
    flight = open_worker(arena, at).flight
    if queue_overdue(flight, now_ps):
        arena.words[at + READY] = 1
        back_off(flight, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(flight)
    return 0
