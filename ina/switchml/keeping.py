"""Packets that a worker keeps, so that a round can be repeated on another tree.

A worker that has a round's result may have written it over its own values, and others may lack it.
If switches then lose the result, or no longer are in the job's tree, all workers' values are needed
once more (`rebuilding.py`). So a worker keeps what each slot has sent last, and before that: it is
at most one round ahead of others.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import copy_items, inline
from ringleaf.core.headers import put32
from ringleaf.core.packets import HEAD_LEN, allocate_packet, open_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.switchml.state import KEPT_AT, ROUND, SLOT_WORDS, SLOTS, SwitchMLWorker
from ringleaf.ina.switchml.wire import BLOCK_AT, BLOCK_MASK

# Words of what is kept.
BYTES_AT = 0  # in arena.bytes: packets, two per slot
PACKET_BYTES = 1
RESUMED_PS = 2  # when the first result came from the tree that the job has now
KEPT_WORDS = 3  # then rows of slots

# A slot's words.
REPEATS = 0  # 1: it repeats the round before the one of its block, whose result it has
SIZES = 1  # bytes of the packets of rounds with an even number, and an odd one
SLOT_KEPT_WORDS = 3


def keep_packets(store: Store, at: int, packet_bytes: int) -> None:
    """Have a worker, which has not sent any, keep its packets of at most so many bytes."""
    own = at + AGENT_WORDS
    slots = int(store.arena.words[own + SLOTS])
    kept = store.allocate("words", KEPT_WORDS + slots * SLOT_KEPT_WORDS)
    place = store.allocate("bytes", 2 * slots * packet_bytes)
    words = store.arena.words
    words[own + KEPT_AT] = kept
    words[kept + BYTES_AT], words[kept + PACKET_BYTES] = place, packet_bytes


@inline
def repeats(arena: Arena, worker: SwitchMLWorker, slot: int) -> bool:
    """Return whether a slot repeats a round of which it has the result."""
    kept = worker.state[KEPT_AT]
    return bool(kept != 0 and arena.words[kept + KEPT_WORDS + slot * SLOT_KEPT_WORDS + REPEATS])


@inline
def stop_repeating(arena: Arena, worker: SwitchMLWorker, slot: int) -> None:
    """Note that a slot has repeated its round."""
    arena.words[worker.state[KEPT_AT] + KEPT_WORDS + slot * SLOT_KEPT_WORDS + REPEATS] = 0


@inline
def note_moved(arena: Arena, worker: SwitchMLWorker) -> None:
    """Note that no result has come yet from the tree that the job has now."""
    arena.words[worker.state[KEPT_AT] + RESUMED_PS] = FOREVER_PS


@inline
def note_resumed(arena: Arena, worker: SwitchMLWorker, now_ps: int) -> None:
    """Note a result, the first of which shows that the job goes on."""
    kept = worker.state[KEPT_AT]
    if kept != 0 and arena.words[kept + RESUMED_PS] == FOREVER_PS:
        arena.words[kept + RESUMED_PS] = now_ps


@inline
def keep_packet(arena: Arena, worker: SwitchMLWorker, slot: int, packet: int) -> None:
    """Keep the packet of the slot's round."""
    words, kept = arena.words, worker.state[KEPT_AT]
    if kept == 0:
        return
    view = open_packet(arena, packet)
    place, row = _place(arena, worker, slot)
    words[row] = view.row[HEAD_LEN]
    copy_items(arena.bytes, place, view.head, 0, view.row[HEAD_LEN])


@inline
def repeat_packet(arena: Arena, worker: SwitchMLWorker, slot: int) -> int:
    """Return the packet that the slot has kept, with the number that its round has now."""
    packet = allocate_packet(arena)
    view = open_packet(arena, packet)
    place, row = _place(arena, worker, slot)
    view.row[HEAD_LEN] = arena.words[row]
    copy_items(view.head, 0, arena.bytes, place, arena.words[row])
    number = worker.slots[slot * SLOT_WORDS + ROUND] * worker.state[SLOTS] + slot
    put32(view.head, BLOCK_AT, number & BLOCK_MASK)  # the version is the same
    return packet


@inline
def _place(arena: Arena, worker: SwitchMLWorker, slot: int) -> tuple[int, int]:
    """Return where in arena.bytes the packet of the slot's round is, and where its size is."""
    words, kept = arena.words, worker.state[KEPT_AT]
    version = worker.slots[slot * SLOT_WORDS + ROUND] & 1
    place = words[kept + BYTES_AT] + (2 * slot + version) * words[kept + PACKET_BYTES]
    return place, kept + KEPT_WORDS + slot * SLOT_KEPT_WORDS + SIZES + version
