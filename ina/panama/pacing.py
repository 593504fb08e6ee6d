"""The congestion windows of a PANAMA worker, one for each tree.

A slot that has a new packet waits until its tree has room: fewer packets without result than the
window. Slots go in the order of their blocks in the stream of tensors, which is the same on all
workers, and the earliest of all that have no result may always go. So two workers never wait for
one another: the earliest block that any of them lacks is sent by all.

Workers have different windows, as marks on the way down differ. A packet that is ready to be sent
after one of a later block goes before it on a worker where that one still waits, and behind it on
another. So nothing can be concluded from its place among the answers (`flight.STRAYS`).

A round trip is over when as many results have come as packets were without one at its start.
"""

from __future__ import annotations

from typing import NamedTuple

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.units import FOREVER_PS
from ringleaf.core.views import window
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.congestion import (
    CONTROL_WORDS,
    GROWTH_BYTES,
    MARKED,
    ON_ROUND,
    RESULTS,
    WINDOW,
    Window,
    begin_window,
    tell_window,
)
from ringleaf.ina.flight import SLOT_WORDS as FLIGHT_SLOT_WORDS
from ringleaf.ina.flight import STRAYS, push_slot
from ringleaf.ina.switchml.state import (
    EXTRAS_AT,
    IDLE,
    LANES,
    POSITION,
    SLOT_WORDS,
    SLOTS,
    TENSOR,
    TREES,
    SwitchMLWorker,
)
from ringleaf.ina.switchml.wire import VALUES_AT

# A tree's words; its window's block comes first.
IN_FLIGHT = CONTROL_WORDS  # packets without result
HELD = CONTROL_WORDS + 1  # slots that wait for room
LEFT = CONTROL_WORDS + 2  # results until the round trip is over
LATEST_READY = CONTROL_WORDS + 3  # the place of the latest block that has been ready to be sent
TREE_WORDS = CONTROL_WORDS + 4

# States of a slot.
FREE = 0  # it has no packet, or one that was not looked at yet
WAITS = 1  # for room
ADMITTED = 2

LATEST = FOREVER_PS  # a place in the stream behind all blocks
TENSOR_SHIFT = 40  # blocks of one tensor are fewer than 2 to this, and tensors than 2 to the rest


class WorkerWindows(NamedTuple):
    """A worker's windows; two-dimensional arrays are flat."""

    at: int  # offset of the trees' words in arena.words
    trees: Words  # (trees, TREE_WORDS)
    slots: Words  # (slots,): the state of each


def make_paces(store: Store, at: int, chosen: Window) -> None:
    """Give the worker at `at` a window for each tree, as large as the tree has slots."""
    state = store.arena.words[at + AGENT_WORDS :]
    trees, slots = int(state[TREES]), int(state[SLOTS])
    growth = max(1, GROWTH_BYTES // (VALUES_AT + 4 * int(state[LANES])))
    paces_at = store.allocate("words", trees * TREE_WORDS + slots)
    store.arena.words[at + AGENT_WORDS + EXTRAS_AT] = paces_at
    for tree in range(trees):
        row = store.arena.words[paces_at + tree * TREE_WORDS :][:TREE_WORDS]
        begin_window(row[:CONTROL_WORDS], chosen, most=slots // trees, growth=growth)
        row[LEFT] = row[WINDOW]


@inline
def open_paces(arena: Arena, worker: SwitchMLWorker) -> WorkerWindows:
    """Return the windows of a worker's trees, whose words begin at the worker's EXTRAS_AT."""
    state = worker.state
    at, size = state[EXTRAS_AT], state[TREES] * TREE_WORDS
    return WorkerWindows(
        at, window(arena.words, at, size), window(arena.words, at + size, state[SLOTS])
    )


@inline
def place_of(worker: SwitchMLWorker, slot: int) -> int:
    """Return the place of a slot's block in the stream of tensors; LATEST if it has none."""
    row = slot * SLOT_WORDS
    position = worker.slots[row + POSITION]
    if position == IDLE:
        return LATEST
    return int((worker.slots[row + TENSOR] << TENSOR_SHIFT) + position + worker.state[SLOTS])


@inline
def earliest(worker: SwitchMLWorker, paces: WorkerWindows, tree: int, state: int) -> int:
    """Return a tree's slot in a state whose block is the earliest; -1 if there is none."""
    first, place = -1, LATEST
    for slot in range(tree, worker.state[SLOTS], worker.state[TREES]):
        if paces.slots[slot] == state and place_of(worker, slot) < place:
            first, place = slot, place_of(worker, slot)
    return first


@inline
def has_room(worker: SwitchMLWorker, paces: WorkerWindows, tree: int, slot: int) -> bool:
    """Return whether a slot, the earliest that waits, may go."""
    row = tree * TREE_WORDS
    if paces.trees[row + IN_FLIGHT] < paces.trees[row + WINDOW]:
        return True
    first = earliest(worker, paces, tree, ADMITTED)
    return first < 0 or place_of(worker, slot) < place_of(worker, first)


@inline
def admit(worker: SwitchMLWorker, paces: WorkerWindows, tree: int) -> None:
    """Queue the slots of a tree that it has room for."""
    row = tree * TREE_WORDS
    while paces.trees[row + HELD] > 0:
        slot = earliest(worker, paces, tree, WAITS)
        if slot < 0 or not has_room(worker, paces, tree, slot):
            break
        paces.trees[row + HELD] -= 1
        paces.trees[row + IN_FLIGHT] += 1
        paces.slots[slot] = ADMITTED
        push_slot(worker.flight, slot)


@inline
def hold(worker: SwitchMLWorker, paces: WorkerWindows, slot: int) -> None:
    """Have a slot's new packet wait for room."""
    tree = slot % worker.state[TREES]
    row, place = tree * TREE_WORDS, place_of(worker, slot)
    paces.slots[slot] = WAITS
    paces.trees[row + HELD] += 1
    if place < paces.trees[row + LATEST_READY]:
        worker.flight.slots[slot * FLIGHT_SLOT_WORDS + STRAYS] = 1
    paces.trees[row + LATEST_READY] = max(place, paces.trees[row + LATEST_READY])
    admit(worker, paces, tree)


@inline
def note_result(
    arena: Arena, worker: SwitchMLWorker, paces: WorkerWindows, slot: int, marked: bool, now_ps: int
) -> None:
    """Count a slot's result, and have the window changed if a round trip is over."""
    row = slot % worker.state[TREES] * TREE_WORDS
    trees = paces.trees
    paces.slots[slot] = FREE
    trees[row + IN_FLIGHT] -= 1
    trees[row + RESULTS] += 1
    trees[row + MARKED] += marked
    trees[row + LEFT] -= 1
    if trees[row + LEFT] <= 0:
        tell_window(arena, paces.at + row, ON_ROUND, trees[row + RESULTS], now_ps)
        trees[row + MARKED] = trees[row + RESULTS] = 0
        trees[row + LEFT] = max(trees[row + IN_FLIGHT], 1)


@inline
def empty(worker: SwitchMLWorker, paces: WorkerWindows) -> None:
    """Note that nothing is in flight, nor waits for room; windows stay as they are."""
    for slot in range(worker.state[SLOTS]):
        paces.slots[slot] = FREE
    for tree in range(worker.state[TREES]):
        paces.trees[tree * TREE_WORDS + IN_FLIGHT] = 0
        paces.trees[tree * TREE_WORDS + HELD] = 0
