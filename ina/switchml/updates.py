"""Packets of a worker's slots: updates are written, and results found and read."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import copy_items, inline
from ringleaf.core.headers import (
    get16,
    get32,
    put16,
    put32,
    write_ip_checksum,
    write_priority,
)
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.views import window
from ringleaf.ina.leases import note_written, source_at, target_at
from ringleaf.ina.switchml.blocks import (
    block_end,
    block_number,
    block_start,
    row_of,
    tree_of,
)
from ringleaf.ina.switchml.keeping import repeat_packet, repeats
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
    POSITION,
    ROUND,
    SLOT_WORDS,
    SLOTS,
    TEMPLATE_BYTES,
    TEMPLATES_AT,
    SwitchMLWorker,
)
from ringleaf.ina.switchml.wire import (
    BLOCK_AT,
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
    DTYPE,
    FLOAT32,
    PRIORITY,
)


@inline
def own_exponent(arena: Arena, worker: SwitchMLWorker, tensor: int, position: int) -> int:
    """Return the exponent of this worker's block at `position`; 0 where there is none."""
    rows = worker.tensors.rows
    # Fixed-point jobs (SHARP) have one exponent for all blocks, and need no round to agree on it.
    if worker.state[FIXED] != 0:
        return int(worker.state[FIXED])
    if rows[tensor + DTYPE] != FLOAT32 or position >= rows[tensor + BLOCKS]:
        return 0
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    source = source_at(arena, worker.tensors, tensor, start)
    return max_exponent(window(arena.memory, source, end - start).view(np.float32))


@inline
def write_lanes(arena: Arena, worker: SwitchMLWorker, slot: int, lanes: Bytes) -> None:
    """Write the slot's block into a packet, with zeros behind its end."""
    state = worker.state
    row, tensor = slot * SLOT_WORDS, row_of(worker, slot)
    position, exponent = worker.slots[row + POSITION], worker.slots[row + EXPONENT]
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    source = source_at(arena, worker.tensors, tensor, start)
    block = window(arena.memory, source, end - start)
    size = block.size
    # Some worker has an infinity or a NaN in this block, which no sum of integers can stand for.
    # All send zeros, and all write NaN, so the ranks' results stay equal.
    if exponent == SPECIAL:
        size = 0
    elif state[ELEMENTS] != state[LANES]:
        size = write_signs(block.view(np.float32), lanes)
    elif worker.tensors.rows[tensor + DTYPE] == FLOAT32:
        quantise(block.view(np.float32), lanes, shift_of(exponent, state[BITS]))
    else:
        pack(block.view(np.int32), lanes)
    # A packet's memory is that of an earlier packet. Switches add every lane, so lanes without an
    # element must be zeros.
    for i in range(size, 4 * state[LANES]):
        lanes[i] = 0


@inline
def read_lanes(arena: Arena, worker: SwitchMLWorker, slot: int, lanes: Bytes) -> None:
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
def write_head(arena: Arena, worker: SwitchMLWorker, slot: int, head: Bytes, template: int) -> None:
    """Write the head of a slot's update, as far as all systems made from SwitchML have it."""
    version = worker.slots[slot * SLOT_WORDS + ROUND] & 1
    priority = worker.tensors.rows[row_of(worker, slot) + PRIORITY]
    copy_items(head, 0, arena.bytes, template, VALUES_AT)
    # The template has class selector 0 with its checksum, which suits all packets without flow
    # scheduling.
    if priority != 0:
        write_priority(head, priority)
        write_ip_checksum(head)
    put32(head, BLOCK_AT, block_number(worker, slot))
    put16(head, POOL_INDEX_AT, version << VERSION_SHIFT | slot)


@inline
def make_update(arena: Arena, worker: SwitchMLWorker, slot: int) -> int:
    """Return the packet of the slot's round."""
    if repeats(arena, worker, slot):
        return repeat_packet(arena, worker, slot)
    state = worker.state
    tensor, position = row_of(worker, slot), worker.slots[slot * SLOT_WORDS + POSITION]
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    # Lengths and checksums of packets with and without values differ, so each kind has a template.
    template = state[TEMPLATES_AT] + (TEMPLATE_BYTES if position >= 0 else 0)
    write_head(arena, worker, slot, head, template)
    head[TREE_AT] = tree_of(worker, slot)
    # A block must be scaled by an exponent that all workers know before they send it. So each
    # packet takes along that of the slot's next block, one round ahead.
    head[EXPONENT_AT] = own_exponent(arena, worker, tensor, position + state[SLOTS])
    end = VALUES_AT
    if position >= 0:
        end += 4 * state[LANES]
        write_lanes(arena, worker, slot, head[VALUES_AT:end])
    view.row[HEAD_LEN] = end
    return packet


@inline
def awaited_slot(arena: Arena, worker: SwitchMLWorker, head: Bytes, size: int) -> int:
    """Return the slot that awaits a packet, the whole result of its round; -1 if none does.

    None awaits a duplicate: the switches also answer retransmissions.
    """
    state = worker.state
    if size < VALUES_AT or head[JOB_AT] != state[JOB] or head[MESSAGE_AT] >> 4 != RESULT:
        return -1
    pool_index = get16(head, POOL_INDEX_AT)
    slot = pool_index & (MAX_SLOTS - 1)
    # Numbers of a packet are checked before they index memory: anybody may send to this port.
    if slot >= state[SLOTS]:
        return -1
    if get32(head, BLOCK_AT) != block_number(worker, slot):
        return -1
    if repeats(arena, worker, slot):  # whatever its values are, it has them
        return int(slot)
    position = worker.slots[slot * SLOT_WORDS + POSITION]
    if position == IDLE:
        return -1
    is_whole = size >= VALUES_AT + 4 * state[LANES]
    # A truncated packet must not end the round, nor a packet with values one that has none.
    is_right = is_whole if position >= 0 else head[MESSAGE_AT] & 7 == SIZE_NONE
    return int(slot) if is_right else -1
