"""Room for more packets or events, made when the loop returns NEEDS_ROOM."""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.arena import Store
from ringleaf.heap import CAPACITY, grow_heap
from ringleaf.packets import OUTBOX_ROWS, POOL_FREE, POOL_SIZE, grow_pool


def make_room(store: Store, network: int) -> None:
    """Make room for more packets, if they are few, and for more events."""
    words = store.arena.words
    if words[POOL_FREE] < 2 * OUTBOX_ROWS:
        grow_pool(store, 2 * int(words[POOL_SIZE]))
    heap_at = int(store.arena.words[network + s.HEAP_AT])
    grow_heap(store, heap_at, 2 * int(store.arena.words[heap_at + CAPACITY]))
