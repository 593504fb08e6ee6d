"""Have the processor fetch what a worker will need for a result, before the result's event.

Hundreds of workers take turns, so each finds its slots and its tensor outside of caches. The loop
knows the next packet while it handles one, and asks for what this packet will touch. That changes
times of the run only, never its results.
"""

from __future__ import annotations

from ringleaf.core.arena import LINE_BYTES, Arena
from ringleaf.core.compiled import inline
from ringleaf.core.headers import get16
from ringleaf.core.packets import HEAD_LEN, open_packet
from ringleaf.core.views import prefetch
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.hosts.fifo import fifo_first
from ringleaf.ina.flight import SLOT_WORDS as FLIGHT_SLOT_WORDS
from ringleaf.ina.flight import has_waiting
from ringleaf.ina.leases import is_there, source_at
from ringleaf.ina.switchml.blocks import block_end, block_start, row_of
from ringleaf.ina.switchml.state import (
    POSITION,
    SLOT_WORDS,
    SLOTS,
    SwitchMLWorker,
    open_worker,
)
from ringleaf.ina.switchml.wire import MAX_SLOTS, POOL_INDEX_AT, VALUES_AT
from ringleaf.ina.tensors import BLOCKS

SLOTS_AHEAD = 2
"""Results come in the order of slots, and a result touches the next slot, too, as its own slot
leaves the list of those in flight. So the rows fetched are of the slot behind that one."""


@inline
def fetch_for_result(arena: Arena, at: int, packet: int) -> None:
    """Fetch the room for a result's values, what its slot sends next, and rows of a later slot."""
    view = open_packet(arena, packet)
    if view.row[HEAD_LEN] < VALUES_AT:
        return
    slot = get16(view.head, POOL_INDEX_AT) & (MAX_SLOTS - 1)
    if slot < arena.words[at + AGENT_WORDS + SLOTS]:
        worker = open_worker(arena, at)
        fetch_slot(worker, (slot + SLOTS_AHEAD) % worker.state[SLOTS])
        tensor, position = row_of(worker, slot), worker.slots[slot * SLOT_WORDS + POSITION]
        fetch_block(arena, worker, tensor, position)
        if not has_waiting(worker.flight):  # it will send at once
            fetch_blocks(arena, worker, tensor, position + worker.state[SLOTS])


@inline
def fetch_next(arena: Arena, worker: SwitchMLWorker) -> None:
    """Fetch the slot that sends next, its block, and the one whose exponent goes with it."""
    if has_waiting(worker.flight):
        slot = fifo_first(worker.flight.fifo)
        fetch_slot(worker, slot)
        tensor, position = row_of(worker, slot), worker.slots[slot * SLOT_WORDS + POSITION]
        fetch_blocks(arena, worker, tensor, position)


@inline
def fetch_blocks(arena: Arena, worker: SwitchMLWorker, tensor: int, position: int) -> None:
    """Fetch the block that a slot sends, and the one after it, whose exponent goes with it."""
    fetch_block(arena, worker, tensor, position)
    fetch_block(arena, worker, tensor, position + worker.state[SLOTS])


@inline
def fetch_slot(worker: SwitchMLWorker, slot: int) -> None:
    """Fetch a slot's row, and its row of the flight, which is longer than a cache line."""
    row = slot * FLIGHT_SLOT_WORDS
    prefetch(worker.flight.slots, row)
    prefetch(worker.flight.slots, row + FLIGHT_SLOT_WORDS - 1)
    prefetch(worker.slots, slot * SLOT_WORDS)


@inline
def fetch_block(arena: Arena, worker: SwitchMLWorker, tensor: int, position: int) -> None:
    """Fetch a tensor's block, if it has one at this position, and memory for it."""
    if position < 0 or position >= worker.tensors.rows[tensor + BLOCKS]:
        return
    start, end = block_start(worker, position), block_end(worker, tensor, position)
    if is_there(arena, worker.tensors, tensor, start):
        source = source_at(arena, worker.tensors, tensor, start)
        for place in range(source, source + end - start, LINE_BYTES):
            prefetch(arena.memory, place)
