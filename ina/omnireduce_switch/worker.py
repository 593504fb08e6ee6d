"""A rank's side of OmniReduce in switches: SwitchML's worker, which leaves blocks of zeros out.

Block k of a tensor lies in slot (first + k) mod slots, as in SwitchML. A slot goes from one block
to the least one that any worker has next in it, which the result names. The worker's own next block
that is not zero is looked for once, when the round of the one before begins, and kept for the
rounds between. All workers answer in every round, with values or without (the paper's algorithm 2),
so slots, rounds and versions are SwitchML's, and losses are repaired as there.

Source:
    Fei, Ho, Sahu, Canini and Sapio, "Efficient sparse collective communication and its
    application to accelerate distributed deep learning", SIGCOMM '21, section 3 and
    appendix A.
"""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Bytes, Store
from ringleaf.core.compiled import handler, inline
from ringleaf.core.headers import get32, put32
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.views import window
from ringleaf.hosts.agent import AGENT_WORDS, READY
from ringleaf.ina.flight import has_waiting, pop_slot
from ringleaf.ina.omnireduce.values import is_zero
from ringleaf.ina.omnireduce_switch.wire import NEXT_AT, NONE, VALUES_AT
from ringleaf.ina.switchml.blocks import (
    begin_round,
    block_end,
    block_start,
    deal_blocks,
    end_dealing,
    first_block,
    row_of,
)
from ringleaf.ina.switchml.keeping import repeat_packet, repeats
from ringleaf.ina.switchml.scaling import max_exponent
from ringleaf.ina.switchml.state import (
    EXTRAS_AT,
    IDLE,
    LANES,
    POSITION,
    ROUND,
    SLOT_WORDS,
    SLOTS,
    TEMPLATE_BYTES,
    TEMPLATES_AT,
    TENSOR,
    SwitchMLWorker,
    open_worker,
)
from ringleaf.ina.switchml.updates import (
    awaited_slot,
    read_lanes,
    write_head,
    write_lanes,
)
from ringleaf.ina.switchml.wire import (
    EXPONENT_AT,
)
from ringleaf.ina.switchml.worker import (
    end_answer,
    end_repeat,
    fire_timer,
    has_packet,
    note_arrival,
    note_sending,
)
from ringleaf.ina.tensors import (
    BLOCKS,
    DTYPE,
    FLOAT32,
    LEFT,
    SOURCE_AT,
    end_tensor,
)

__all__ = ["begin_tensor", "fire_timer", "make_extras", "open_worker", "receive", "transmit"]


# A slot's words, besides SwitchML's.
NEXT = 0  # the worker's first block behind the round's that is not zero, or NONE
PRESENT = 1  # 1: the round's block is not zero
EXTRA_WORDS = 2


def make_extras(store: Store, at: int) -> None:
    """Give the worker at `at` its slots' words."""
    own = at + AGENT_WORDS
    extras_at = store.allocate("words", EXTRA_WORDS * int(store.arena.words[own + SLOTS]))
    store.arena.words[own + EXTRAS_AT] = extras_at


@inline
def extras_of(worker: SwitchMLWorker, slot: int) -> int:
    """Return the offset in arena.words of the slot's words."""
    return int(worker.state[EXTRAS_AT] + slot * EXTRA_WORDS)


@inline
def next_block(arena: Arena, worker: SwitchMLWorker, slot: int, position: int) -> int:
    """Return the slot's first block from this one on that is not zero, or NONE."""
    rows, tensor = worker.tensors.rows, row_of(worker, slot)
    source = rows[tensor + SOURCE_AT]
    while position < rows[tensor + BLOCKS]:
        start, end = block_start(worker, position), block_end(worker, tensor, position)
        if not is_zero(arena.memory, source + start, source + end):
            return int(position)
        position += worker.state[SLOTS]
    return NONE


@inline
def next_tensor(arena: Arena, worker: SwitchMLWorker, slot: int) -> None:
    """Let an idle slot begin with the next tensor that has a block for it, if there is one."""
    position = first_block(worker, slot)
    if position != IDLE:
        extras = extras_of(worker, slot)
        arena.words[extras + NEXT] = next_block(arena, worker, slot, position)
        arena.words[extras + PRESENT] = 0
        begin_round(arena, worker, slot, position - worker.state[SLOTS], 0)


@handler
def begin_tensor(arena: Arena, at: int, row: int, now_ps: int) -> int:
    """Deal a new tensor's blocks to slots; an empty one is done at once."""
    worker = open_worker(arena, at)
    slots, first = worker.state[SLOTS], deal_blocks(worker, row)
    rows = worker.tensors.rows
    rows[row + LEFT] = min(rows[row + BLOCKS], slots)  # slots, not blocks, have an end
    for i in range(slots):
        slot = (first + i) % slots
        if worker.slots[slot * SLOT_WORDS + POSITION] == IDLE:
            next_tensor(arena, worker, slot)
    end_dealing(arena, at, worker, row, now_ps)
    return 0


@inline
def next_exponent(arena: Arena, worker: SwitchMLWorker, slot: int, position: int) -> int:
    """Return the largest exponent in the slot's block at `position`; 0 for NONE and integers."""
    rows, tensor = worker.tensors.rows, row_of(worker, slot)
    if rows[tensor + DTYPE] != FLOAT32 or position == NONE:
        return 0
    source = rows[tensor + SOURCE_AT]
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    return max_exponent(window(arena.memory, source + start, end - start).view(np.float32))


@inline
def make_update(arena: Arena, worker: SwitchMLWorker, slot: int) -> int:
    """Return the packet of the slot's round."""
    if repeats(arena, worker, slot):
        return repeat_packet(arena, worker, slot)
    state, extras = worker.state, extras_of(worker, slot)
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    template = state[TEMPLATES_AT] + arena.words[extras + PRESENT] * TEMPLATE_BYTES
    write_head(arena, worker, slot, head, template)
    put32(head, NEXT_AT, arena.words[extras + NEXT])
    head[EXPONENT_AT] = next_exponent(arena, worker, slot, arena.words[extras + NEXT])
    end = VALUES_AT
    if arena.words[extras + PRESENT]:
        end += 4 * state[LANES]
        write_lanes(arena, worker, slot, head[VALUES_AT:end])
    view.row[HEAD_LEN] = end
    return packet


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the slot that has waited longest."""
    worker = open_worker(arena, at)
    packet = -1
    while packet < 0 and has_waiting(worker.flight):
        slot = pop_slot(worker.flight)
        if has_packet(arena, worker, slot):
            packet = make_update(arena, worker, slot)
            note_sending(arena, at, worker, slot, packet, now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)
    return packet


@inline
def is_next(worker: SwitchMLWorker, slot: int, position: int) -> bool:
    """Return whether a slot can go on with this block: it is one of its tensor's, or NONE."""
    before = worker.slots[slot * SLOT_WORDS + POSITION]
    blocks = worker.tensors.rows[row_of(worker, slot) + BLOCKS]
    is_ahead = before < position < blocks
    return bool(position == NONE or (is_ahead and (position - before) % worker.state[SLOTS] == 0))


@inline
def take_result(
    arena: Arena, at: int, worker: SwitchMLWorker, slot: int, head: Bytes, now_ps: int
) -> None:
    """Keep a result's values, and go on with the block that it names, or with the next tensor."""
    row, tensor = slot * SLOT_WORDS, row_of(worker, slot)
    extras = extras_of(worker, slot)
    position = get32(head, NEXT_AT)
    if worker.slots[row + POSITION] >= 0:
        read_lanes(arena, worker, slot, head[VALUES_AT : VALUES_AT + 4 * worker.state[LANES]])
    worker.slots[row + ROUND] += 1
    if position != NONE:
        arena.words[extras + PRESENT] = arena.words[extras + NEXT] == position
        if arena.words[extras + PRESENT]:
            after = position + worker.state[SLOTS]
            arena.words[extras + NEXT] = next_block(arena, worker, slot, after)
        begin_round(arena, worker, slot, position, int(head[EXPONENT_AT]))
    else:
        worker.slots[row + TENSOR] += 1
        worker.tensors.rows[tensor + LEFT] -= 1
        next_tensor(arena, worker, slot)
    end_tensor(arena, at, worker.tensors, tensor, now_ps)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    size = view.row[HEAD_LEN] - (VALUES_AT - NEXT_AT)  # as SwitchML's packet would have it
    slot = awaited_slot(arena, worker, view.head, size)
    if slot < 0 or end_repeat(arena, at, worker, slot, now_ps):
        return 0
    if is_next(worker, slot, get32(view.head, NEXT_AT)):
        note_arrival(arena, at, worker, slot, now_ps)
        take_result(arena, at, worker, slot, view.head, now_ps)
        end_answer(arena, at, worker, now_ps)
    return 0
