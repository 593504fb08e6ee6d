"""A worker's window: the blocks that may be sent, narrowed by congestion."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import inline
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp.state import (
    AGGREGATOR,
    ALLOWED,
    ANSWERED,
    BASE,
    CONTROL,
    CURRENT,
    END,
    IS_RAW,
    MARKED,
    NEXT,
    POSITION_WORDS,
    RESULTS,
    ROUND_END,
    SEQUENCE,
    TENSOR,
    WINDOW,
    AtpWorker,
)
from ringleaf.ina.atp.wire import NO_PROPOSAL
from ringleaf.ina.congestion import ON_ROUND, tell_window
from ringleaf.ina.flight import push_first
from ringleaf.ina.tensors import BLOCKS, FIRST, tensor_row


@inline
def tensor_of_next(worker: AtpWorker) -> int:
    """Return the row of the tensor that holds the next block to send; there must be one."""
    state, rows = worker.state, worker.tensors.rows
    row = tensor_row(state[CURRENT])
    while state[NEXT] >= rows[row + FIRST] + rows[row + BLOCKS]:
        state[CURRENT] += 1
        row = tensor_row(state[CURRENT])
    return int(row)


@inline
def send_more(worker: AtpWorker) -> None:
    """Queue the blocks that the window has room for."""
    state = worker.state
    while state[NEXT] < min(state[END], state[BASE] + state[ALLOWED]):
        tensor = tensor_of_next(worker)
        position = state[NEXT] & (state[WINDOW] - 1)
        row = position * POSITION_WORDS
        worker.rows[row + SEQUENCE] = state[NEXT]
        worker.rows[row + IS_RAW] = 0
        worker.rows[row + TENSOR] = tensor
        push_first(worker.flight, position)
        state[NEXT] += 1


@inline
def end_round(arena: Arena, at: int, worker: AtpWorker, now_ps: int) -> None:
    """Have the window changed, once per round trip."""
    state = worker.state
    # ROUND_END was the next block to be sent when this round began. Its result, and all before, are
    # the answers to one window, which takes a round trip.
    if state[BASE] < state[ROUND_END]:
        return
    tell_window(arena, at + AGENT_WORDS + CONTROL, ON_ROUND, state[RESULTS], now_ps)
    state[MARKED] = state[RESULTS] = 0
    state[ROUND_END] = state[NEXT]


@inline
def settle(worker: AtpWorker, position: int, proposal: int) -> None:
    """Note that a block has its result."""
    rows = worker.rows
    row = position * POSITION_WORDS
    rows[row + SEQUENCE] = ANSWERED
    if proposal != NO_PROPOSAL:
        rows[row + AGGREGATOR] = proposal


@inline
def move_base(worker: AtpWorker) -> None:
    """Move the window's base past all blocks that have their results."""
    state, rows = worker.state, worker.rows
    while state[BASE] < state[NEXT]:
        base = (state[BASE] & (state[WINDOW] - 1)) * POSITION_WORDS
        # Results may overtake one another, but a position is free again only in order: the window
        # is one range of numbers.
        if rows[base + SEQUENCE] != ANSWERED:
            break
        state[BASE] += 1
