"""Room is made for what is lacking, and for nothing else."""

from __future__ import annotations

import pytest

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.heap import CAPACITY, LAST_OWN, OWN, order_own, push_event
from ringleaf.core.packets import (
    OUTBOX_ROWS,
    POOL_SIZE,
    VECTORS,
    free_packets,
    free_vectors,
    make_pool,
)
from ringleaf.networks.virtual.loop import NEEDS_ROOM, lacks_room
from ringleaf.networks.virtual.room import make_room


def _network(store: Store, packets: int, vectors: int | None = None) -> tuple[int, int]:
    """Return the offsets of a network with so many packets, and of its heap."""
    make_pool(store, size=packets, vectors=vectors, head_bytes=64, field_count=8, lane_count=16)
    at = s.make_network(store, ports=1, nodes=1, agents=1, ring=0, bins=2, seed=1)
    return at, int(store.arena.words[at + s.HEAP_AT])


def test_few_packets_become_more() -> None:
    store = Store()
    at, heap = _network(store, OUTBOX_ROWS)
    capacity = store.arena.words[heap + CAPACITY]
    assert lacks_room(store.arena, at) == NEEDS_ROOM
    make_room(store, at)
    assert lacks_room(store.arena, at) == 0
    words = store.arena.words
    assert free_packets(store) == words[POOL_SIZE] == 2 * OUTBOX_ROWS
    assert words[heap + CAPACITY] == capacity


def test_few_header_vectors_become_more_without_more_packets() -> None:
    store = Store()
    at, _ = _network(store, 4 * OUTBOX_ROWS, vectors=OUTBOX_ROWS)
    assert lacks_room(store.arena, at) == NEEDS_ROOM
    make_room(store, at)
    assert lacks_room(store.arena, at) == 0
    assert free_vectors(store) == store.arena.words[VECTORS] == 2 * OUTBOX_ROWS
    assert free_packets(store) == store.arena.words[POOL_SIZE] == 4 * OUTBOX_ROWS


@pytest.mark.parametrize("vectors", [2 * OUTBOX_ROWS, 3 * OUTBOX_ROWS])
def test_vectors_that_are_enough_do_not_become_more_with_packets(vectors: int) -> None:
    store = Store()
    at, _ = _network(store, OUTBOX_ROWS, vectors=vectors)
    make_room(store, at)
    assert store.arena.words[VECTORS] == vectors
    assert store.arena.words[POOL_SIZE] == 2 * OUTBOX_ROWS


def test_there_is_room_for_what_one_event_may_lead_to() -> None:
    """Each packet in a full outbox arrives, and so does its duplicate; a port falls idle, and a
    timer is armed.
    """
    store = Store()
    at, heap = _network(store, 2 * OUTBOX_ROWS)
    capacity = int(store.arena.words[heap + CAPACITY])
    for number in range(capacity - 4 * OUTBOX_ROWS + 1):
        push_event(store.arena.words, heap, number, number, 0)
    make_room(store, at)
    assert store.arena.words[heap + CAPACITY] == 2 * capacity


def test_a_heap_that_is_nearly_full_grows() -> None:
    store = Store()
    at, heap = _network(store, 2 * OUTBOX_ROWS)
    capacity = int(store.arena.words[heap + CAPACITY])
    for number in range(capacity - OUTBOX_ROWS):
        push_event(store.arena.words, heap, number, number, 0)
    assert lacks_room(store.arena, at) == NEEDS_ROOM
    make_room(store, at)
    assert lacks_room(store.arena, at) == 0
    assert store.arena.words[heap + CAPACITY] == 2 * capacity


def test_numbers_of_events_begin_anew_before_they_run_out() -> None:
    store = Store()
    at, heap = _network(store, 2 * OUTBOX_ROWS)
    store.arena.words[heap + OWN] = LAST_OWN
    push_event(store.arena.words, heap, 5, 1, order_own(store.arena.words, heap))
    assert lacks_room(store.arena, at) == NEEDS_ROOM
    make_room(store, at)
    assert lacks_room(store.arena, at) == 0
    assert store.arena.words[heap + OWN] == 1
