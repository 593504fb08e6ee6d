"""A host's side of sums of ternary gradients: SwitchML's agent, with elements of two bits."""

from __future__ import annotations

import numpy as np

from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import handler, inline
from ringleaf.core.headers import get32, put32
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.views import window
from ringleaf.hosts.agent import AGENT_WORDS, READY
from ringleaf.ina.flight import has_waiting, pop_slot
from ringleaf.ina.switchml.blocks import (
    block_end,
    block_start,
    row_of,
)
from ringleaf.ina.switchml.keeping import repeat_packet, repeats
from ringleaf.ina.switchml.state import (
    EXTRAS_AT,
    POSITION,
    SLOT_WORDS,
    TEMPLATE_BYTES,
    TEMPLATES_AT,
    SwitchMLWorker,
    open_worker,
)
from ringleaf.ina.switchml.updates import (
    awaited_slot,
    write_head,
)
from ringleaf.ina.switchml.wire import MESSAGE_AT
from ringleaf.ina.switchml.worker import (
    begin_tensor,
    end_answer,
    end_repeat,
    fire_timer,
    has_packet,
    move_on,
    note_arrival,
    note_sending,
)
from ringleaf.ina.tensors import SOURCE_AT, TARGET_AT
from ringleaf.ina.tern.values import read_sums, scale_bits, write_levels
from ringleaf.ina.tern.wire import (
    PLANE_BYTES,
    PLANES,
    SCALE_AT,
    SUM_SIZE,
    VALUES_AT,
)

__all__ = ["begin_tensor", "fire_timer", "make_extras", "receive", "transmit"]

END = VALUES_AT + 2 * PLANE_BYTES
SUM_END = VALUES_AT + PLANES * PLANE_BYTES


def make_extras(store: Store, at: int, workers: int) -> None:
    """Tell the worker at `at` how many workers there are."""
    store.arena.words[at + AGENT_WORDS + EXTRAS_AT] = workers


@inline
def block_size(worker: SwitchMLWorker, slot: int) -> tuple[int, int]:
    """Return a slot's block: its first byte in the tensor, and the number of bytes."""
    tensor, position = row_of(worker, slot), worker.slots[slot * SLOT_WORDS + POSITION]
    start = block_start(worker, position)
    return start, block_end(worker, tensor, position) - start


@inline
def make_update(arena: Arena, worker: SwitchMLWorker, slot: int) -> int:
    """Return the packet of the slot's round."""
    if repeats(arena, worker, slot):
        return repeat_packet(arena, worker, slot)
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    head = view.head
    write_head(arena, worker, slot, head, worker.state[TEMPLATES_AT] + TEMPLATE_BYTES)
    start, size = block_size(worker, slot)
    source = worker.tensors.rows[row_of(worker, slot) + SOURCE_AT]
    values = window(arena.memory, source + start, size).view(np.float32)
    put32(head, SCALE_AT, scale_bits(values))
    write_levels(values, window(head, VALUES_AT, END - VALUES_AT))
    view.row[HEAD_LEN] = END
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


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    head = view.head
    if view.row[HEAD_LEN] < SUM_END or head[MESSAGE_AT] & 7 != SUM_SIZE:
        return 0
    slot = awaited_slot(arena, worker, head, SUM_END)
    if slot >= 0 and not end_repeat(arena, at, worker, slot, now_ps):
        note_arrival(arena, at, worker, slot, now_ps)
        start, size = block_size(worker, slot)
        target = worker.tensors.rows[row_of(worker, slot) + TARGET_AT]
        values = window(arena.memory, target + start, size).view(np.float32)
        scale = np.uint32(get32(head, SCALE_AT)).view(np.float32)
        planes = window(head, VALUES_AT, SUM_END - VALUES_AT)
        read_sums(planes, values, worker.state[EXTRAS_AT], np.float64(scale))
        move_on(arena, at, worker, slot, head, now_ps)
        end_answer(arena, at, worker, now_ps)
    return 0
