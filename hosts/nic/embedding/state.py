"""The state of a rank's embedding exchange, in registered memory.

A message is a row of words of 32 bits: rows of the table, with flags in their highest bits. Rows
are in groups, of which the last one has END: of a group, one vector travels, the sum of its rows
forward, the gradient of each of its rows backward.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import int64_at
from ringleaf.hosts.nic.cache import COUNT, Cache, clear_cache, open_cache
from ringleaf.hosts.nic.embedding.sizes import NUMBERS, ExchangeSizes
from ringleaf.hosts.nic.state import STATE_AT

END = 1 << 31  # the last row of a group
KEPT = 1 << 30  # forward: the NIC that asks will cache the row
GONE = 1 << 29  # backward: the NIC has the row no longer in its cache; no vector belongs to it
ROW_MASK = GONE - 1

# Numbers at the start of the state.
(
    RANK, RANKS, ROWS, DIM, BAGS, PER_BAG, POOLS, COHERENCE, CAPACITY, LOCAL_CAPACITY, ROW_PS,
    PHASE, TABLE_AT, LOOKUPS_AT, VECTORS_AT, CACHE_AT, LOCAL_AT, ARRAYS_AT, SHARERS_AT, BUFFERS_AT,
    FIRST_STRIDE, SECOND_STRIDE, FIRST_LEFT, SECOND_LEFT, READS, EXTRAS, NOTICES, CHANGED,
    REMOTE, LOCAL, HITS, LOCAL_HITS, INDEX_BYTES, VECTOR_BYTES, GRADIENT_BYTES, COHERENCE_BYTES,
    ROUND,
) = range(37)  # fmt: skip

COUNTERS = {
    "remote": REMOTE,
    "local": LOCAL,
    "hits": HITS,
    "reads": READS,
    "local_hits": LOCAL_HITS,
    "index_bytes": INDEX_BYTES,
    "vector_bytes": VECTOR_BYTES,
    "gradient_bytes": GRADIENT_BYTES,
    "coherence_bytes": COHERENCE_BYTES,
}
"""Counters since the start, by name: look-ups of rows of other ranks, and of the rank's own; those
of the former that the cache had; times that a row of its own was reached, and those that the NIC's
memory had; and bytes of messages that the rank has sent."""


class ExchangeState(NamedTuple):
    """An exchange: its numbers. Compiled code returns an array only in a tuple."""

    numbers: Words  # (NUMBERS,)


class Peers(NamedTuple):
    """Numbers by rank, (ranks,) each, within a task."""

    words: Words  # words written to the first message so far
    vectors: Words  # vectors that the second message brings, or that the first one has
    sizes: Words  # bytes of the first message that has come
    last: Words  # the place of the last word of the bag at hand


class Lists(NamedTuple):
    """Lists by look-up, and by row of the rank's own."""

    sources: Words  # (lookups,) address of each look-up's vector; 0: it is in a sum
    extra_bags: Words  # (lookups,) bags of the sums that come
    extra_sources: Words  # (lookups,) their addresses
    pooled: Words  # (lookups,) whether a look-up is to be in a sum
    notices: Words  # (lookups,) rows that the cache has given up
    changed: Words  # (own rows,) rows that have changed in this round
    changed_in: Words  # (own rows,) the last round in which each has


@inline
def open_exchange(arena: Arena, at: int) -> ExchangeState:
    """Return an agent's exchange."""
    return ExchangeState(int64_at(arena.memory, arena.words[at + STATE_AT], NUMBERS))


@inline
def peers_of(arena: Arena, n: Words) -> Peers:
    """Return the numbers by rank, which begin at ARRAYS_AT in registered memory."""
    at, ranks = n[ARRAYS_AT], n[RANKS]
    return Peers(
        int64_at(arena.memory, at, ranks),
        int64_at(arena.memory, at + 8 * ranks, ranks),
        int64_at(arena.memory, at + 16 * ranks, ranks),
        int64_at(arena.memory, at + 24 * ranks, ranks),
    )


@inline
def lists_of(arena: Arena, n: Words) -> Lists:
    """Return the lists by look-up and by own row, which follow the four of `Peers` in memory."""
    count = n[BAGS] * n[PER_BAG]
    own = (n[ROWS] + n[RANKS] - 1) // n[RANKS]
    at = n[ARRAYS_AT] + 32 * n[RANKS]
    rows = at + 40 * count
    return Lists(
        int64_at(arena.memory, at, count),
        int64_at(arena.memory, at + 8 * count, count),
        int64_at(arena.memory, at + 16 * count, count),
        int64_at(arena.memory, at + 24 * count, count),
        int64_at(arena.memory, at + 32 * count, count),
        int64_at(arena.memory, rows, own),
        int64_at(arena.memory, rows + 8 * own, own),
    )


@inline
def cache_of(arena: Arena, n: Words) -> Cache:
    """Return the NIC's cache of other ranks' rows."""
    return open_cache(arena, n[CACHE_AT], n[ROWS], n[CAPACITY])


@inline
def local_cache_of(arena: Arena, n: Words) -> Cache:
    """Return the NIC's cache of the rank's own rows, every RANKS-th of the table."""
    own = (n[ROWS] + n[RANKS] - 1) // n[RANKS]
    return open_cache(arena, n[LOCAL_AT], own, n[LOCAL_CAPACITY])


@inline
def pending_at(n: Words, slot: int) -> int:
    """Return the place of the address to which a slot's vector will come; 0 there: it is here."""
    return n[VECTORS_AT] + n[CAPACITY] * 4 * n[DIM] + 8 * slot


@inline
def first_at(n: Words, peer: int, is_out: int) -> int:
    """Return the buffer of the first message that comes from a peer, or goes there."""
    return n[BUFFERS_AT] + (is_out * n[RANKS] + peer) * n[FIRST_STRIDE]


@inline
def second_at(n: Words, peer: int, is_out: int) -> int:
    """Return the buffer of the second message, likewise."""
    start = n[BUFFERS_AT] + 2 * n[RANKS] * n[FIRST_STRIDE]
    return start + (is_out * n[RANKS] + peer) * n[SECOND_STRIDE]


def make_state(store: Store, sizes: ExchangeSizes, rank: int) -> int:
    """Return the address of a rank's state, in memory that is registered for it."""
    places = [store.register_memory(size) for size in sizes.parts]
    state_at, table_at, lookups_at, vectors_at, cache_at, local_at, sharers_at, buffers_at = places
    arena = store.arena
    n = int64_at(arena.memory, state_at, sizes.parts[0] // 8)
    n[:] = 0
    for place, value in {
        RANK: rank, RANKS: sizes.ranks, ROWS: sizes.rows, DIM: sizes.dim, BAGS: sizes.bags,
        PER_BAG: sizes.per_bag, POOLS: sizes.pools, COHERENCE: sizes.coherence,
        CAPACITY: sizes.cache, LOCAL_CAPACITY: sizes.local_cache, ROW_PS: sizes.row_ps,
        TABLE_AT: table_at, LOOKUPS_AT: lookups_at, VECTORS_AT: vectors_at, CACHE_AT: cache_at,
        LOCAL_AT: local_at, SHARERS_AT: sharers_at, BUFFERS_AT: buffers_at,
        ARRAYS_AT: state_at + 8 * NUMBERS, FIRST_STRIDE: sizes.first_stride,
        SECOND_STRIDE: sizes.second_stride,
    }.items():  # fmt: skip
        n[place] = value
    arena.memory[sharers_at : sharers_at + sizes.own_rows * sizes.ranks] = 0
    int64_at(arena.memory, pending_at(n, 0), sizes.cache)[:] = 0
    clear_cache(arena, cache_at, sizes.rows, sizes.cache, sizes.policy)
    clear_cache(arena, local_at, sizes.own_rows, sizes.local_cache, sizes.policy)
    return state_at


def table_of(arena: Arena, state_at: int) -> npt.NDArray[np.float32]:
    """Return the rows of a rank, (own rows, dim)."""
    n = int64_at(arena.memory, state_at, NUMBERS)
    own = len(range(int(n[RANK]), int(n[ROWS]), int(n[RANKS])))
    size = own * int(n[DIM]) * 4
    rows = arena.memory[int(n[TABLE_AT]) :][:size].view(np.float32)
    return rows.reshape(own, int(n[DIM]))


def lookups_of(arena: Arena, state_at: int) -> npt.NDArray[np.int64]:
    """Return the look-ups of a rank's batch, (bags, per_bag): rows of the table."""
    n = int64_at(arena.memory, state_at, NUMBERS)
    shape = int(n[BAGS]), int(n[PER_BAG])
    return int64_at(arena.memory, int(n[LOOKUPS_AT]), shape[0] * shape[1]).reshape(shape)


def set_phase(arena: Arena, state_at: int, phase: int) -> None:
    """Set what a rank's next task is: FORWARD or BACKWARD, which take turns."""
    int64_at(arena.memory, state_at, NUMBERS)[PHASE] = phase


def counters_of(arena: Arena, state_at: int) -> dict[str, int]:
    """Return a rank's counters, by name."""
    n = int64_at(arena.memory, state_at, NUMBERS)
    return {name: int(n[place]) for name, place in COUNTERS.items()}


def cached_rows(
    arena: Arena, state_at: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the rows that a rank's NIC caches, (cached,), and their vectors, (cached, dim)."""
    n = int64_at(arena.memory, state_at, NUMBERS)
    capacity, dim = int(n[CAPACITY]), int(n[DIM])
    cache = cache_of(arena, n)
    slots = cache.heap[: int(cache.header[COUNT])]
    size = 4 * capacity * dim
    vectors = arena.memory[int(n[VECTORS_AT]) :][:size].view(np.float32).reshape(capacity, dim)
    return cache.row_of[slots], vectors[slots]
