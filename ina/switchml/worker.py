"""A host's side of SwitchML: an agent that streams tensors through the switches.

A tensor's blocks (64 or 256 elements, as many as a packet has lanes) are dealt to slots in turn,
beginning where those of the tensor before end: a slot goes on to its next tensor without waiting
for others. It has one packet in flight, and the result of one releases the next, so the workers
keep in step (self-clocking). A slot's rounds alternate between two versions of its
state in the switches, through all tensors of the job: a switch's state of one round is
overwritten in the round after next, which a worker begins only when it has the next round's
result, to which every worker contributed after it had this round's.

A packet without result is sent again when three packets sent later have theirs, or after a
timeout from the measured round trip (`ringleaf.ina.flight`).
"""

from __future__ import annotations

import numpy as np

from ringleaf.arena import Arena, Bytes
from ringleaf.compiled import copy_items, handler, inline
from ringleaf.headers import (
    get16,
    get32,
    put16,
    put32,
    write_ip_checksum,
    write_priority,
)
from ringleaf.hosts.agent import PROGRESS, READY, RETRANSMISSIONS, TIMER_AT_PS
from ringleaf.ina.flight import (
    ATTEMPTS,
    OUT_OF_TURN,
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
from ringleaf.ina.flight import SLOT_WORDS as FLIGHT_SLOT_WORDS
from ringleaf.ina.leases import note_written, source_at, target_at
from ringleaf.ina.switchml.scaling import (
    dequantise,
    fill_nan,
    max_exponent,
    pack,
    quantise,
    read_signs,
    shift_of,
    unpack,
    write_signs,
)
from ringleaf.ina.switchml.state import (
    BITS,
    ELEMENTS,
    EXPONENT,
    FIXED,
    IDLE,
    JOB,
    LANES,
    NEXT_SLOT,
    POSITION,
    ROUND,
    SLOT_WORDS,
    SLOTS,
    TEMPLATE_BYTES,
    TEMPLATES_AT,
    TENSOR,
    TREES,
    Worker,
    open_worker,
)
from ringleaf.ina.switchml.wire import (
    BLOCK_AT,
    BLOCK_MASK,
    EXPONENT_AT,
    JOB_AT,
    MAX_SLOTS,
    MESSAGE_AT,
    POOL_INDEX_AT,
    RESULT,
    SIZE_NONE,
    SPECIAL,
    TREE_AT,
    VALUES_AT,
    VERSION_SHIFT,
)
from ringleaf.ina.tensors import (
    BLOCKS,
    COUNT,
    DTYPE,
    FIRST,
    FLOAT32,
    LEFT,
    POSTED,
    PRIORITY,
    end_tensor,
    lay_out,
    tensor_row,
)
from ringleaf.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.views import window


@inline
def begin_round(worker: Worker, slot: int, position: int, exponent: int) -> None:
    """Queue the slot's packet for `position`, a block of this largest exponent."""
    row = slot * SLOT_WORDS
    worker.slots[row + POSITION] = position
    worker.slots[row + EXPONENT] = exponent
    push_first(worker.flight, slot)


@inline
def block_number(worker: Worker, slot: int) -> int:
    """Return the number on the wire of the block that the slot has in flight."""
    return (worker.slots[slot * SLOT_WORDS + ROUND] * worker.state[SLOTS] + slot) & BLOCK_MASK


@inline
def tree_of(worker: Worker, slot: int) -> int:
    """Return the tree that a slot's packets take."""
    return int(slot % worker.state[TREES])


@inline
def row_of(worker: Worker, slot: int) -> int:
    """Return the row of the slot's tensor."""
    return int(tensor_row(worker.slots[slot * SLOT_WORDS + TENSOR]))


@inline
def next_tensor(worker: Worker, slot: int) -> None:
    """Let an idle slot begin with the next tensor that has a block for it, if there is one."""
    position = first_block(worker, slot)
    if position != IDLE:
        state = worker.state
        is_float = worker.tensors.rows[row_of(worker, slot) + DTYPE] == FLOAT32
        before = state[SLOTS] if is_float and state[FIXED] == 0 else 0
        begin_round(worker, slot, position - before, state[FIXED])


@inline
def first_block(worker: Worker, slot: int) -> int:
    """Let an idle slot go on to the next tensor with a block for it; return that, or IDLE."""
    tensors, row = worker.tensors, slot * SLOT_WORDS
    worker.slots[row + POSITION] = IDLE
    while worker.slots[row + TENSOR] < tensors.state[POSTED]:
        tensor = row_of(worker, slot)
        position = (slot - tensors.rows[tensor + FIRST]) % worker.state[SLOTS]
        if position < tensors.rows[tensor + BLOCKS]:
            return int(position)
        worker.slots[row + TENSOR] += 1
    return IDLE


@inline
def deal_blocks(worker: Worker, row: int) -> int:
    """Deal a new tensor's blocks to slots; return the slot of the first. `end_dealing` follows."""
    state = worker.state
    blocks = (worker.tensors.rows[row + COUNT] + state[ELEMENTS] - 1) // state[ELEMENTS]
    first = state[NEXT_SLOT]
    lay_out(worker.tensors, row, first, blocks, blocks)
    state[NEXT_SLOT] = (first + blocks) % state[SLOTS]
    worker.flight.state[OUT_OF_TURN] = worker.tensors.state[POSTED] > 1  # slots may be busy, or not
    return int(first)


@inline
def end_dealing(arena: Arena, at: int, worker: Worker, row: int, now_ps: int) -> None:
    """Take note that idle slots have begun with a new tensor; an empty one is done at once."""
    worker.flight.state[OUT_OF_TURN] = 0
    end_tensor(arena, at, worker.tensors, row, now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)


@handler
def begin_tensor(arena: Arena, at: int, row: int, now_ps: int) -> int:
    """Deal a new tensor's blocks to slots; an empty one is done at once."""
    worker = open_worker(arena, at)
    slots, first = worker.state[SLOTS], deal_blocks(worker, row)
    for i in range(slots):
        slot = (first + i) % slots
        if worker.slots[slot * SLOT_WORDS + POSITION] == IDLE:
            next_tensor(worker, slot)
    end_dealing(arena, at, worker, row, now_ps)
    return 0


@inline
def block_start(worker: Worker, position: int) -> int:
    """Return the bytes from the start of a tensor to a block."""
    return 4 * position * worker.state[ELEMENTS]


@inline
def block_end(worker: Worker, tensor: int, position: int) -> int:
    """Return the bytes from the start of a tensor to a block's end; the last may be shorter."""
    return 4 * min((position + 1) * worker.state[ELEMENTS], worker.tensors.rows[tensor + COUNT])


@inline
def own_exponent(arena: Arena, worker: Worker, tensor: int, position: int) -> int:
    """Return the exponent of this worker's block at `position`; 0 where there is none."""
    rows = worker.tensors.rows
    if worker.state[FIXED] != 0:
        return int(worker.state[FIXED])
    if rows[tensor + DTYPE] != FLOAT32 or position >= rows[tensor + BLOCKS]:
        return 0
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    source = source_at(arena, worker.tensors, tensor, start)
    return max_exponent(window(arena.memory, source, end - start).view(np.float32))


@inline
def write_lanes(arena: Arena, worker: Worker, slot: int, lanes: Bytes) -> None:
    """Write the slot's block into a packet, with zeros behind its end."""
    state = worker.state
    row, tensor = slot * SLOT_WORDS, row_of(worker, slot)
    position, exponent = worker.slots[row + POSITION], worker.slots[row + EXPONENT]
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    source = source_at(arena, worker.tensors, tensor, start)
    block = window(arena.memory, source, end - start)
    size = block.size
    if exponent == SPECIAL:
        size = 0
    elif state[ELEMENTS] != state[LANES]:
        size = write_signs(block.view(np.float32), lanes)
    elif worker.tensors.rows[tensor + DTYPE] == FLOAT32:
        quantise(block.view(np.float32), lanes, shift_of(exponent, state[BITS]))
    else:
        pack(block.view(np.int32), lanes)
    for i in range(size, 4 * state[LANES]):
        lanes[i] = 0


@inline
def read_lanes(arena: Arena, worker: Worker, slot: int, lanes: Bytes) -> None:
    """Write the result of the slot's block to the tensor's target."""
    state = worker.state
    row, tensor = slot * SLOT_WORDS, row_of(worker, slot)
    position, exponent = worker.slots[row + POSITION], worker.slots[row + EXPONENT]
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    target = target_at(arena, worker.tensors, tensor, start)
    block = window(arena.memory, target, end - start)
    if exponent == SPECIAL:
        fill_nan(block.view(np.float32))
    elif state[ELEMENTS] != state[LANES]:
        read_signs(lanes, block.view(np.float32))
    elif worker.tensors.rows[tensor + DTYPE] == FLOAT32:
        dequantise(lanes, block.view(np.float32), shift_of(exponent, state[BITS]))
    else:
        unpack(lanes, block.view(np.int32))
    note_written(arena, worker.tensors, tensor, start, end - start)


@inline
def write_head(arena: Arena, worker: Worker, slot: int, head: Bytes, template: int) -> None:
    """Write the head of a slot's update, as far as all systems made from SwitchML have it."""
    version = worker.slots[slot * SLOT_WORDS + ROUND] & 1
    priority = worker.tensors.rows[row_of(worker, slot) + PRIORITY]
    copy_items(head, 0, arena.bytes, template, VALUES_AT)
    if priority != 0:
        write_priority(head, priority)
        write_ip_checksum(head)
    put32(head, BLOCK_AT, block_number(worker, slot))
    put16(head, POOL_INDEX_AT, version << VERSION_SHIFT | slot)


@inline
def make_update(arena: Arena, worker: Worker, slot: int) -> int:
    """Return the packet of the slot's round."""
    state = worker.state
    tensor, position = row_of(worker, slot), worker.slots[slot * SLOT_WORDS + POSITION]
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    template = state[TEMPLATES_AT] + (TEMPLATE_BYTES if position >= 0 else 0)
    write_head(arena, worker, slot, head, template)
    head[TREE_AT] = tree_of(worker, slot)
    head[EXPONENT_AT] = own_exponent(arena, worker, tensor, position + state[SLOTS])
    end = VALUES_AT
    if position >= 0:
        end += 4 * state[LANES]
        write_lanes(arena, worker, slot, head[VALUES_AT:end])
    view.row[HEAD_LEN] = end
    return packet


@inline
def send_slot(arena: Arena, at: int, worker: Worker, slot: int, now_ps: int) -> int:
    """Return the slot's packet; -1 if its result came before the retransmission was sent."""
    if worker.slots[slot * SLOT_WORDS + POSITION] == IDLE:
        return -1
    packet = make_update(arena, worker, slot)
    note_sending(arena, at, worker, slot, now_ps)
    return int(packet)


@inline
def note_sending(arena: Arena, at: int, worker: Worker, slot: int, now_ps: int) -> None:
    """Count a packet of the slot as on the line, and set the timer."""
    if worker.flight.slots[slot * FLIGHT_SLOT_WORDS + ATTEMPTS] > 0:
        arena.words[at + RETRANSMISSIONS] += 1
    priority = worker.tensors.rows[row_of(worker, slot) + PRIORITY]
    link_slot(worker.flight, slot, tree_of(worker, slot), priority, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the slot that has waited longest."""
    worker = open_worker(arena, at)
    packet = -1
    while packet < 0 and has_waiting(worker.flight):
        packet = send_slot(arena, at, worker, pop_slot(worker.flight), now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)
    return packet


@inline
def awaited_slot(worker: Worker, head: Bytes, size: int) -> int:
    """Return the slot that awaits a packet, the whole result of its round; -1 if none does.

    None awaits a duplicate: the switches also answer retransmissions.
    """
    state = worker.state
    if size < VALUES_AT or head[JOB_AT] != state[JOB] or head[MESSAGE_AT] >> 4 != RESULT:
        return -1
    pool_index = get16(head, POOL_INDEX_AT)
    slot = pool_index & (MAX_SLOTS - 1)
    if slot >= state[SLOTS]:
        return -1
    position = worker.slots[slot * SLOT_WORDS + POSITION]
    if position == IDLE or get32(head, BLOCK_AT) != block_number(worker, slot):
        return -1
    is_whole = size >= VALUES_AT + 4 * state[LANES]
    is_right = is_whole if position >= 0 else head[MESSAGE_AT] & 7 == SIZE_NONE
    return int(slot) if is_right else -1


@inline
def take_result(arena: Arena, at: int, worker: Worker, slot: int, head: Bytes, now_ps: int) -> None:
    """Keep a result's values, and let the slot send its next block, if any."""
    if worker.slots[slot * SLOT_WORDS + POSITION] >= 0:
        read_lanes(arena, worker, slot, head[VALUES_AT : VALUES_AT + 4 * worker.state[LANES]])
    move_on(arena, at, worker, slot, head, now_ps)


@inline
def move_on(arena: Arena, at: int, worker: Worker, slot: int, head: Bytes, now_ps: int) -> None:
    """Let a slot that has its result's values send its next block, if any."""
    state, tensors = worker.state, worker.tensors
    row, tensor = slot * SLOT_WORDS, row_of(worker, slot)
    position = worker.slots[row + POSITION]
    if position >= 0:
        tensors.rows[tensor + LEFT] -= 1
    worker.slots[row + ROUND] += 1
    if position + state[SLOTS] < tensors.rows[tensor + BLOCKS]:
        begin_round(worker, slot, position + state[SLOTS], int(head[EXPONENT_AT]))
    else:
        worker.slots[row + TENSOR] += 1
        next_tensor(worker, slot)
    end_tensor(arena, at, tensors, tensor, now_ps)


@inline
def take_answer(arena: Arena, at: int, worker: Worker, slot: int, head: Bytes, now_ps: int) -> None:
    """Take the result that a slot awaits, and draw conclusions about other packets."""
    note_arrival(arena, at, worker, slot, now_ps)
    take_result(arena, at, worker, slot, head, now_ps)
    end_answer(arena, at, worker)


@inline
def note_arrival(arena: Arena, at: int, worker: Worker, slot: int, now_ps: int) -> None:
    """Draw conclusions from the arrival of the result that a slot awaits."""
    arena.words[at + PROGRESS] += 1
    unlink_slot(worker.flight, slot)
    if worker.slots[slot * SLOT_WORDS + POSITION] >= 0:  # an exponent alone is much faster
        take_sample(worker.flight, slot, now_ps)
    end_backoff(worker.flight)
    note_answer(worker.flight, slot, now_ps)


@inline
def end_answer(arena: Arena, at: int, worker: Worker) -> None:
    """Queue packets that must be lost by now, after a result was taken."""
    queue_passed(worker.flight)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    arena.words[at + READY] = has_waiting(worker.flight)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    slot = awaited_slot(worker, view.head, view.row[HEAD_LEN])
    if slot >= 0:
        take_answer(arena, at, worker, slot, view.head, now_ps)
    return 0


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue overdue packets."""
    worker = open_worker(arena, at)
    if queue_overdue(worker.flight, now_ps):
        back_off(worker.flight, now_ps)
    arena.words[at + TIMER_AT_PS] = deadline_ps(worker.flight)
    arena.words[at + READY] = has_waiting(worker.flight)
    return 0
