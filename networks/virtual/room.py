"""Room for more packets or events, made when the loop returns NEEDS_ROOM."""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.arena import Store
from ringleaf.heap import CAPACITY, COUNT, LAST_SEQUENCE, SEQUENCE, grow_heap, renumber
from ringleaf.packets import OUTBOX_ROWS, POOL_FREE, POOL_SIZE, grow_pool

EVENTS_AT_ONCE = 4 * OUTBOX_ROWS  # that one event may lead to


def make_room(store: Store, network: int) -> None:
    """Make room for more packets and events, as far as they are few."""
    words = store.arena.words
    if words[POOL_FREE] < 2 * OUTBOX_ROWS:
        grow_pool(store, 2 * int(words[POOL_SIZE]))
    heap_at = int(store.arena.words[network + s.HEAP_AT])
    words = store.arena.words
    if words[heap_at + COUNT] + EVENTS_AT_ONCE > words[heap_at + CAPACITY]:
        grow_heap(store, heap_at, 2 * int(words[heap_at + CAPACITY]))
    if store.arena.words[heap_at + SEQUENCE] > LAST_SEQUENCE:
        renumber(store.arena.words, heap_at)
