"""A host's side of PANAMA: SwitchML's worker, whose slots are dealt to trees in turn.

Block i of a tensor goes to the tree after block i - 1's. A result acknowledges its block, and says
by its ECN mark whether any packet of the block met a long queue, on the way up or down. Each tree
has a congestion window (`pacing.py`). Packets, rounds, versions and exponents are as in SwitchML.
Losses are judged for each tree by itself, as trees overtake one another.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import handler
from ringleaf.core.headers import ECN_MARKED, ECN_MASK, IP_TOS_AT
from ringleaf.core.packets import HEAD_LEN, open_packet
from ringleaf.hosts.agent import READY
from ringleaf.ina.flight import ATTEMPTS, has_waiting, pop_slot
from ringleaf.ina.flight import SLOT_WORDS as FLIGHT_SLOT_WORDS
from ringleaf.ina.panama.pacing import ADMITTED, admit, empty, hold, note_result, open_paces
from ringleaf.ina.switchml.blocks import (
    tree_of,
)
from ringleaf.ina.switchml.keeping import repeats
from ringleaf.ina.switchml.state import IDLE, POSITION, SLOT_WORDS, open_worker
from ringleaf.ina.switchml.updates import (
    awaited_slot,
)
from ringleaf.ina.switchml.worker import (
    begin_tensor,
    end_repeat,
    fire_timer,
    queue_all,
    send_slot,
    take_answer,
)

__all__ = ["begin_again", "begin_tensor", "fire_timer", "open_worker", "receive", "transmit"]


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the packet of the slot that has waited longest and need not wait for room.

    Rounds that are repeated, for others' sake, do not wait either, so that nobody waits for them.
    """
    worker = open_worker(arena, at)
    paces = open_paces(arena, worker)
    packet = -1
    while packet < 0 and has_waiting(worker.flight):
        slot = pop_slot(worker.flight)
        is_new = worker.flight.slots[slot * FLIGHT_SLOT_WORDS + ATTEMPTS] == 0
        waits = is_new and paces.slots[slot] != ADMITTED
        if waits and not repeats(arena, worker, slot):
            if worker.slots[slot * SLOT_WORDS + POSITION] != IDLE:
                hold(worker, paces, slot)
        else:
            packet = send_slot(arena, at, worker, slot, now_ps)
    arena.words[at + READY] = has_waiting(worker.flight)
    return packet


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a result."""
    worker = open_worker(arena, at)
    view = open_packet(arena, packet)
    slot = awaited_slot(arena, worker, view.head, view.row[HEAD_LEN])
    if slot >= 0 and not end_repeat(arena, at, worker, slot, now_ps):
        paces = open_paces(arena, worker)
        is_marked = view.head[IP_TOS_AT] & ECN_MASK == ECN_MARKED
        note_result(arena, worker, paces, slot, is_marked, now_ps)
        take_answer(arena, at, worker, slot, view.head, now_ps)
        admit(worker, paces, tree_of(worker, slot))
        arena.words[at + READY] = has_waiting(worker.flight)
    return 0


@handler
def begin_again(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Queue all packets in flight as if none had been sent, and have windows admit them anew."""
    worker = open_worker(arena, at)
    empty(worker, open_paces(arena, worker))
    queue_all(arena, at, worker, now_ps)
    return 0
