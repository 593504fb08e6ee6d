"""The forward exchange: look-ups to the rows' owners, then vectors back, and sums of bags.

Two all-to-alls, one after the other: an owner answers when all ranks' look-ups have come.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline
from ringleaf.core.views import int64_at, uint32_at
from ringleaf.hosts.nic.agent import expect, finish, put_off, send_to, spend
from ringleaf.hosts.nic.cache import Cache, admits, insert, look_up
from ringleaf.hosts.nic.embedding.state import (
    BAGS,
    CAPACITY,
    DIM,
    END,
    EXTRAS,
    FIRST_LEFT,
    FIRST_STRIDE,
    HITS,
    INDEX_BYTES,
    KEPT,
    LOCAL,
    LOOKUPS_AT,
    NOTICES,
    PER_BAG,
    POOLS,
    RANK,
    RANKS,
    REMOTE,
    ROW_MASK,
    SECOND_LEFT,
    SECOND_STRIDE,
    SHARERS_AT,
    VECTOR_BYTES,
    VECTORS_AT,
    Lists,
    Peers,
    cache_of,
    first_at,
    lists_of,
    open_exchange,
    peers_of,
    pending_at,
    second_at,
)
from ringleaf.hosts.nic.embedding.vectors import (
    add_vector,
    clear_vector,
    copy_vector,
    own_row_at,
    reach_row,
)
from ringleaf.hosts.nic.state import AHEAD, SIZE_BYTES, TAG, TARGET_AT

FIRST, SECOND, OWN = range(3)
"""The kinds of a task's messages; the tag of one is its kind and 4 times the peer. OWN stands for
the rank's own rows, which are no message."""


@inline
def expect_task(arena: Arena, at: int, n: Words, seconds: int) -> None:
    """Expect the messages of a task, and second ones if there are `seconds`, unless it is done."""
    if arena.words[at + AHEAD] == 0:
        for step in range(1, n[RANKS]):
            peer = (n[RANK] + step) % n[RANKS]
            expect(arena, at, peer, first_at(n, peer, 0), n[FIRST_STRIDE], 4 * peer + FIRST)
            if seconds > 0:
                expect(arena, at, peer, second_at(n, peer, 0), n[SECOND_STRIDE], 4 * peer + SECOND)
    arena.words[at + AHEAD] = 0


@inline
def write_word(arena: Arena, n: Words, peers: Peers, owner: int, word: int) -> None:
    """Write a word of the look-ups for an owner; one with END asks for a vector."""
    words = uint32_at(arena.memory, first_at(n, owner, 1), n[FIRST_STRIDE] >> 2)
    words[peers.words[owner]] = word
    peers.words[owner] += 1


@inline
def next_vector_at(n: Words, peers: Peers, owner: int) -> int:
    """Return the address that the next vector of an owner will come to."""
    peers.vectors[owner] += 1
    return second_at(n, owner, 0) + (peers.vectors[owner] - 1) * 4 * n[DIM]


@inline
def look_up_remote(
    arena: Arena, n: Words, peers: Peers, lists: Lists, cache: Cache, place: int, row: int
) -> None:
    """Look a row up that another rank has, in the cache or by a message."""
    n[REMOTE] += 1
    owner = row % n[RANKS]
    is_kept = False
    if n[CAPACITY] > 0:
        slot = look_up(cache, row)
        if slot >= 0:
            n[HITS] += 1
            pending = int64_at(arena.memory, pending_at(n, slot), 1)[0]
            kept_at = n[VECTORS_AT] + slot * 4 * n[DIM]
            lists.sources[place] = pending if pending > 0 else kept_at
            return
        is_kept = admits(cache, row)
    if n[POOLS] and not is_kept:
        lists.pooled[place] = 1
        return
    write_word(arena, n, peers, owner, row | END | (KEPT if is_kept else 0))
    lists.sources[place] = next_vector_at(n, peers, owner)
    if is_kept:
        gone = insert(cache, row)
        if gone >= 0:
            lists.notices[n[NOTICES]] = gone
            n[NOTICES] += 1
        slot = cache.slot_of[row] - 1
        int64_at(arena.memory, pending_at(n, slot), 1)[0] = lists.sources[place]


@inline
def pool_bag(arena: Arena, n: Words, peers: Peers, lists: Lists, rows: Words, bag: int) -> None:
    """Ask for the sums of those rows of a bag that are not to be had one by one."""
    first = bag * n[PER_BAG]
    for place in range(first, first + n[PER_BAG]):
        if lists.pooled[place]:
            peers.last[rows[place] % n[RANKS]] = place
    for place in range(first, first + n[PER_BAG]):
        if not lists.pooled[place]:
            continue
        owner = rows[place] % n[RANKS]
        is_last = peers.last[owner] == place
        write_word(arena, n, peers, owner, rows[place] | (END if is_last else 0))
        if is_last:
            lists.extra_bags[n[EXTRAS]] = bag
            lists.extra_sources[n[EXTRAS]] = next_vector_at(n, peers, owner)
            n[EXTRAS] += 1


@inline
def begin_forward(arena: Arena, at: int, now_ps: int) -> None:
    """Look up a batch, and send what the rank must ask others for."""
    n = open_exchange(arena, at).numbers
    peers, lists, cache = peers_of(arena, n), lists_of(arena, n), cache_of(arena, n)
    ranks, rank = n[RANKS], n[RANK]
    rows = int64_at(arena.memory, n[LOOKUPS_AT], n[BAGS] * n[PER_BAG])
    n[EXTRAS] = n[NOTICES] = 0
    for peer in range(ranks):
        peers.words[peer] = peers.vectors[peer] = 0
    own_ps = 0
    for bag in range(n[BAGS]):
        for place in range(bag * n[PER_BAG], (bag + 1) * n[PER_BAG]):
            lists.sources[place] = lists.pooled[place] = 0
            row = rows[place]
            if row % ranks == rank:
                n[LOCAL] += 1
                own_ps += reach_row(arena, n, row)
                lists.sources[place] = own_row_at(n, row)
            else:
                look_up_remote(arena, n, peers, lists, cache, place, row)
        if n[POOLS]:
            pool_bag(arena, n, peers, lists, rows, bag)
    n[FIRST_LEFT], n[SECOND_LEFT] = ranks - 1, ranks
    put_off(arena, at, spend(arena, at, own_ps, now_ps), OWN, 0)
    for step in range(1, ranks):
        peer = (rank + step) % ranks
        size = 4 * peers.words[peer]
        n[INDEX_BYTES] += size
        send_to(arena, at, peer, first_at(n, peer, 1), size, 4 * peer + FIRST, now_ps)


@inline
def time_of_lookups(arena: Arena, at: int, n: Words) -> int:
    """Return the time that it takes to reach the rows of look-ups that have come."""
    count = arena.words[at + SIZE_BYTES] >> 2
    words = uint32_at(arena.memory, first_at(n, arena.words[at + TAG] >> 2, 0), count)
    time_ps = 0
    for place in range(count):
        time_ps += reach_row(arena, n, words[place] & ROW_MASK)
    return time_ps


@inline
def answer(arena: Arena, at: int, n: Words, peer: int, size: int, now_ps: int) -> None:
    """Send a peer the vectors that it asks for."""
    words = uint32_at(arena.memory, first_at(n, peer, 0), size >> 2)
    target = start = second_at(n, peer, 1)
    is_new = True
    for place in range(size >> 2):
        row = words[place] & ROW_MASK
        if is_new:
            copy_vector(arena, n, target, own_row_at(n, row))
        else:
            add_vector(arena, n, target, own_row_at(n, row))
        is_new = words[place] & END > 0
        if is_new:
            target += 4 * n[DIM]
        if words[place] & KEPT:
            arena.memory[n[SHARERS_AT] + row // n[RANKS] * n[RANKS] + peer] = 1
    n[VECTOR_BYTES] += target - start
    send_to(arena, at, peer, start, target - start, 4 * peer + SECOND, now_ps)


@inline
def handle_forward(arena: Arena, at: int, n: Words, now_ps: int) -> None:
    """Go on after a message, or after the rank's own rows."""
    kind, peer = arena.words[at + TAG] & 3, arena.words[at + TAG] >> 2
    if kind == FIRST:
        peers = peers_of(arena, n)
        peers.sizes[peer] = arena.words[at + SIZE_BYTES]
        n[FIRST_LEFT] -= 1
        if n[FIRST_LEFT] == 0:
            for step in range(1, n[RANKS]):
                other = (n[RANK] + step) % n[RANKS]
                answer(arena, at, n, other, peers.sizes[other], now_ps)
        return
    n[SECOND_LEFT] -= 1
    if n[SECOND_LEFT] == 0:
        gather(arena, n, arena.words[at + TARGET_AT])
        expect_task(arena, at, n, n[CAPACITY])
        arena.words[at + AHEAD] = 1
        finish(arena, at, now_ps)


@inline
def gather(arena: Arena, n: Words, target: int) -> None:
    """Add up the vectors of all bags, then put those that are to be kept into the cache."""
    lists = lists_of(arena, n)
    for bag in range(n[BAGS]):
        into = target + bag * 4 * n[DIM]
        clear_vector(arena, n, into)
        for place in range(bag * n[PER_BAG], (bag + 1) * n[PER_BAG]):
            if lists.sources[place] > 0:
                add_vector(arena, n, into, lists.sources[place])
    for extra in range(n[EXTRAS]):
        into = target + lists.extra_bags[extra] * 4 * n[DIM]
        add_vector(arena, n, into, lists.extra_sources[extra])
    pending = int64_at(arena.memory, pending_at(n, 0), n[CAPACITY])
    for slot in range(n[CAPACITY]):
        if pending[slot] > 0:
            copy_vector(arena, n, n[VECTORS_AT] + slot * 4 * n[DIM], pending[slot])
            pending[slot] = 0
