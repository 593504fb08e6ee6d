"""Room for more packets or events, made when the loop returns NEEDS_ROOM."""

from __future__ import annotations

from collections.abc import Sequence

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.heap import CAPACITY, COUNT, LAST_OWN, OWN, grow_heap, renumber
from ringleaf.core.packets import (
    OUTBOX_ROWS,
    POOL_SIZE,
    VECTORS,
    deal_packets,
    free_packets,
    free_vectors,
    grow_packets,
    grow_vectors,
    has_few,
)

EVENTS_AT_ONCE = 4 * OUTBOX_ROWS  # that one event may lead to


@inline
def lacks_room_for_mail(words: Words, at: int) -> bool:
    """Return whether a region's heap may be too small for what others leave in two windows."""
    heap, team = words[at + s.HEAP_AT], words[at + s.TEAM]
    if team == 0:
        return False
    most = 2 * (words[team] - 1) * s.BOX_ROWS + EVENTS_AT_ONCE
    return words[heap + COUNT] + most > words[heap + CAPACITY]


def make_room(store: Store, *networks: int) -> None:
    """Make room for more packets and events in all regions, as far as they are few."""
    least = 2 * OUTBOX_ROWS
    if any(has_few(arena, least) for arena in store.arenas):
        enough = 2 * least * len(store.arenas) if len(store.arenas) > 1 else least
        if free_packets(store) < enough:
            grow_packets(store, 2 * int(store.arena.words[POOL_SIZE]))
        if free_vectors(store) < enough:
            grow_vectors(store, 2 * int(store.arena.words[VECTORS]))
        deal_packets(store)
    _make_room_for_events(store, networks)


def _make_room_for_events(store: Store, networks: Sequence[int]) -> None:
    for network in networks:
        heap = int(store.arena.words[network + s.HEAP_AT])
        words = store.arena.words
        while words[heap + COUNT] + EVENTS_AT_ONCE > words[heap + CAPACITY] or lacks_room_for_mail(
            words, network
        ):
            grow_heap(store, heap, 2 * int(words[heap + CAPACITY]))
            words = store.arena.words
        if words[heap + OWN] > LAST_OWN:
            renumber(words, heap)
