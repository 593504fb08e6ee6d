"""The blocks of a worker's tensors, dealt to slots in turn, and the block that each slot has."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import inline
from ringleaf.hosts.agent import READY
from ringleaf.ina.flight import (
    OUT_OF_TURN,
    has_waiting,
    push_first,
)
from ringleaf.ina.switchml.keeping import repeats
from ringleaf.ina.switchml.state import (
    ELEMENTS,
    EXPONENT,
    FIXED,
    IDLE,
    NEXT_SLOT,
    POSITION,
    ROUND,
    SLOT_WORDS,
    SLOTS,
    TENSOR,
    TREES,
    SwitchMLWorker,
)
from ringleaf.ina.switchml.wire import (
    BLOCK_MASK,
)
from ringleaf.ina.tensors import (
    BLOCKS,
    COUNT,
    DTYPE,
    FIRST,
    FLOAT32,
    POSTED,
    end_tensor,
    lay_out,
    tensor_row,
)


@inline
def begin_round(
    arena: Arena, worker: SwitchMLWorker, slot: int, position: int, exponent: int
) -> None:
    """Queue the slot's packet for `position`, a block of this largest exponent."""
    row = slot * SLOT_WORDS
    worker.slots[row + POSITION] = position
    worker.slots[row + EXPONENT] = exponent
    if not repeats(arena, worker, slot):  # else it comes after the round that is repeated
        push_first(worker.flight, slot)


@inline
def block_number(worker: SwitchMLWorker, slot: int) -> int:
    """Return the number on the wire of the block that the slot has in flight."""
    # All workers count rounds alike, so the number means the same block to all. It wraps with the
    # field's 32 bits.
    return (worker.slots[slot * SLOT_WORDS + ROUND] * worker.state[SLOTS] + slot) & BLOCK_MASK


@inline
def tree_of(worker: SwitchMLWorker, slot: int) -> int:
    """Return the tree that a slot's packets take."""
    return int(slot % worker.state[TREES])


@inline
def row_of(worker: SwitchMLWorker, slot: int) -> int:
    """Return the row of the slot's tensor."""
    return int(tensor_row(worker.slots[slot * SLOT_WORDS + TENSOR]))


@inline
def next_tensor(arena: Arena, worker: SwitchMLWorker, slot: int) -> None:
    """Let an idle slot begin with the next tensor that has a block for it, if there is one."""
    position = first_block(worker, slot)
    if position != IDLE:
        state = worker.state
        is_float = worker.tensors.rows[row_of(worker, slot) + DTYPE] == FLOAT32
        # Floats need a round before the first block, in which workers agree on its exponent: their
        # position begins one round early, below 0.
        before = state[SLOTS] if is_float and state[FIXED] == 0 else 0
        begin_round(arena, worker, slot, position - before, state[FIXED])


@inline
def first_block(worker: SwitchMLWorker, slot: int) -> int:
    """Let an idle slot go on to the next tensor with a block for it; return that, or IDLE."""
    tensors, row = worker.tensors, slot * SLOT_WORDS
    worker.slots[row + POSITION] = IDLE
    while worker.slots[row + TENSOR] < tensors.state[POSTED]:
        tensor = row_of(worker, slot)
        # Blocks are dealt in turn from FIRST on. A tensor with fewer blocks than there are slots
        # has none for some of them, which go on to the next tensor.
        position = (slot - tensors.rows[tensor + FIRST]) % worker.state[SLOTS]
        if position < tensors.rows[tensor + BLOCKS]:
            return int(position)
        worker.slots[row + TENSOR] += 1
    return IDLE


@inline
def deal_blocks(worker: SwitchMLWorker, row: int) -> int:
    """Deal a new tensor's blocks to slots; return the slot of the first. `end_dealing` follows."""
    state = worker.state
    blocks = (worker.tensors.rows[row + COUNT] + state[ELEMENTS] - 1) // state[ELEMENTS]
    first = state[NEXT_SLOT]
    lay_out(worker.tensors, row, first, blocks, blocks)
    # If each tensor began at slot 0, small ones would queue up at the first slots while the others
    # were idle.
    state[NEXT_SLOT] = (first + blocks) % state[SLOTS]
    worker.flight.state[OUT_OF_TURN] = worker.tensors.state[POSTED] > 1  # slots may be busy, or not
    return int(first)


@inline
def end_dealing(arena: Arena, at: int, worker: SwitchMLWorker, row: int, now_ps: int) -> None:
    """Take note that idle slots have begun with a new tensor; an empty one is done at once."""
    worker.flight.state[OUT_OF_TURN] = 0
    end_tensor(arena, at, worker.tensors, row, now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)


@inline
def block_start(worker: SwitchMLWorker, position: int) -> int:
    """Return the bytes from the start of a tensor to a block."""
    return 4 * position * worker.state[ELEMENTS]


@inline
def block_end(worker: SwitchMLWorker, tensor: int, position: int) -> int:
    """Return the bytes from the start of a tensor to a block's end; the last may be shorter."""
    return 4 * min((position + 1) * worker.state[ELEMENTS], worker.tensors.rows[tensor + COUNT])
