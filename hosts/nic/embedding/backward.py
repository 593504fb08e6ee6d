"""The backward exchange: gradients to the rows' owners, then news of rows that others cache.

A row's owner subtracts its gradients (a learning rate of 1). When all gradients have come, it tells
each rank which of the rows that this one caches have changed, by a directory of who caches what.
The ranks tell it, along with their gradients, what they cache no longer.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline, signed
from ringleaf.core.views import int64_at, uint32_at
from ringleaf.hosts.nic.agent import finish, put_off, send_to, spend
from ringleaf.hosts.nic.cache import find, remove
from ringleaf.hosts.nic.embedding.forward import FIRST, OWN, SECOND, expect_task
from ringleaf.hosts.nic.embedding.sizes import UPDATE
from ringleaf.hosts.nic.embedding.state import (
    BAGS,
    CAPACITY,
    CHANGED,
    COHERENCE,
    COHERENCE_BYTES,
    DIM,
    END,
    FIRST_LEFT,
    GONE,
    GRADIENT_BYTES,
    LOOKUPS_AT,
    NOTICES,
    PER_BAG,
    POOLS,
    RANK,
    RANKS,
    ROUND,
    ROW_MASK,
    SECOND_LEFT,
    SHARERS_AT,
    VECTORS_AT,
    Lists,
    Peers,
    cache_of,
    first_at,
    lists_of,
    open_exchange,
    peers_of,
    second_at,
)
from ringleaf.hosts.nic.embedding.vectors import (
    copy_vector,
    own_row_at,
    reach_row,
    subtract_vector,
)
from ringleaf.hosts.nic.state import AHEAD, SIZE_BYTES, TAG, TARGET_AT


@inline
def write_number(arena: Arena, at: int, value: int) -> None:
    """Write a word of 32 bits."""
    uint32_at(arena.memory, at, 1)[0] = value


@inline
def read_number(arena: Arena, at: int) -> int:
    """Return a word of 32 bits."""
    return signed(uint32_at(arena.memory, at, 1)[0])


@inline
def change_row(arena: Arena, n: Words, lists: Lists, row: int, gradient_at: int) -> None:
    """Apply a gradient to a row of the rank's own."""
    place = row // n[RANKS]
    subtract_vector(arena, n, own_row_at(n, row), gradient_at)
    if lists.changed_in[place] != n[ROUND]:
        lists.changed_in[place] = n[ROUND]
        lists.changed[n[CHANGED]] = row
        n[CHANGED] += 1


@inline
def write_gradients(
    arena: Arena, n: Words, peers: Peers, rows: Words, bag: int, gradient_at: int
) -> None:
    """Write a bag's rows of other ranks to their messages, with gradients."""
    first, ranks = bag * n[PER_BAG], n[RANKS]
    for place in range(first, first + n[PER_BAG]):
        peers.last[rows[place] % ranks] = place
    for place in range(first, first + n[PER_BAG]):
        owner = rows[place] % ranks
        if owner == n[RANK]:
            continue
        here = first_at(n, owner, 1) + peers.words[owner]
        if n[POOLS] and peers.last[owner] != place:
            write_number(arena, here, rows[place])
            peers.words[owner] += 4
        else:
            write_number(arena, here, rows[place] | END)
            copy_vector(arena, n, here + 4, gradient_at)
            peers.words[owner] += 4 + 4 * n[DIM]


@inline
def begin_backward(arena: Arena, at: int, now_ps: int) -> None:
    """Send the gradients of bags, (bags, dim), which the task's memory has."""
    n = open_exchange(arena, at).numbers
    peers, lists, cache = peers_of(arena, n), lists_of(arena, n), cache_of(arena, n)
    ranks, rank = n[RANKS], n[RANK]
    rows = int64_at(arena.memory, n[LOOKUPS_AT], n[BAGS] * n[PER_BAG])
    n[ROUND] += 1
    n[CHANGED] = 0
    for peer in range(ranks):
        peers.words[peer] = 0
    own_ps = 0
    for bag in range(n[BAGS]):
        gradient_at = arena.words[at + TARGET_AT] + bag * 4 * n[DIM]
        write_gradients(arena, n, peers, rows, bag, gradient_at)
        for place in range(bag * n[PER_BAG], (bag + 1) * n[PER_BAG]):
            if rows[place] % ranks == rank:
                own_ps += reach_row(arena, n, rows[place])
                change_row(arena, n, lists, rows[place], gradient_at)
    for peer in range(ranks):
        n[GRADIENT_BYTES] += peers.words[peer]
    for number in range(n[NOTICES]):
        row = lists.notices[number]
        if find(cache, row) < 0:  # else it has come back meanwhile
            owner = row % ranks
            write_number(arena, first_at(n, owner, 1) + peers.words[owner], row | GONE)
            peers.words[owner] += 4
            n[COHERENCE_BYTES] += 4
    n[FIRST_LEFT] = ranks
    n[SECOND_LEFT] = ranks if n[CAPACITY] > 0 else 1
    put_off(arena, at, spend(arena, at, own_ps, now_ps), OWN, 0)
    for step in range(1, ranks):
        peer = (rank + step) % ranks
        size = peers.words[peer]
        send_to(arena, at, peer, first_at(n, peer, 1), size, 4 * peer + FIRST, now_ps)


@inline
def time_of_gradients(arena: Arena, at: int, n: Words) -> int:
    """Return the time that it takes to reach the rows of gradients that have come."""
    here = first_at(n, arena.words[at + TAG] >> 2, 0)
    end = here + arena.words[at + SIZE_BYTES]
    time_ps = 0
    while here < end:
        word = read_number(arena, here)
        here += 4
        if word & GONE == 0:
            time_ps += reach_row(arena, n, word & ROW_MASK)
        if word & END:
            here += 4 * n[DIM]
    return time_ps


@inline
def apply_gradients(arena: Arena, n: Words, peer: int, size: int) -> None:
    """Apply the gradients of a message, and note what its sender caches no longer."""
    lists = lists_of(arena, n)
    here = group = first_at(n, peer, 0)
    end = here + size
    while here < end:
        word = read_number(arena, here)
        here += 4
        if word & GONE:
            place = (word & ROW_MASK) // n[RANKS]
            arena.memory[n[SHARERS_AT] + place * n[RANKS] + peer] = 0
        elif word & END:
            while group < here:
                row = read_number(arena, group) & ROW_MASK
                change_row(arena, n, lists, row, here)
                group += 4
            here += 4 * n[DIM]
            group = here


@inline
def tell_changes(arena: Arena, at: int, n: Words, peer: int, now_ps: int) -> None:
    """Tell a peer which of the rows that it caches have changed."""
    lists = lists_of(arena, n)
    here = start = second_at(n, peer, 1)
    for number in range(n[CHANGED]):
        row = lists.changed[number]
        sharer = n[SHARERS_AT] + row // n[RANKS] * n[RANKS] + peer
        if arena.memory[sharer] == 0:
            continue
        write_number(arena, here, row)
        here += 4
        if n[COHERENCE] == UPDATE:
            copy_vector(arena, n, here, own_row_at(n, row))
            here += 4 * n[DIM]
        else:
            arena.memory[sharer] = 0
    n[COHERENCE_BYTES] += here - start
    send_to(arena, at, peer, start, here - start, 4 * peer + SECOND, now_ps)


@inline
def hear_changes(arena: Arena, n: Words, peer: int, size: int) -> None:
    """Update, or give up, cached rows that have changed."""
    cache = cache_of(arena, n)
    here = second_at(n, peer, 0)
    end = here + size
    while here < end:
        row = read_number(arena, here)
        here += 4
        if n[COHERENCE] == UPDATE:
            copy_vector(arena, n, n[VECTORS_AT] + find(cache, row) * 4 * n[DIM], here)
            here += 4 * n[DIM]
        else:
            remove(cache, row)


@inline
def handle_backward(arena: Arena, at: int, n: Words, now_ps: int) -> None:
    """Go on after a message, or after the rank's own rows."""
    words = arena.words
    kind, peer, size = words[at + TAG] & 3, words[at + TAG] >> 2, words[at + SIZE_BYTES]
    if kind == SECOND:
        hear_changes(arena, n, peer, size)
        n[SECOND_LEFT] -= 1
    else:
        if kind == FIRST:
            apply_gradients(arena, n, peer, size)
        n[FIRST_LEFT] -= 1
        if n[FIRST_LEFT] == 0:
            n[SECOND_LEFT] -= 1
            if n[CAPACITY] > 0:
                for step in range(1, n[RANKS]):
                    tell_changes(arena, at, n, (n[RANK] + step) % n[RANKS], now_ps)
    if n[SECOND_LEFT] == 0:
        expect_task(arena, at, n, 1)
        arena.words[at + AHEAD] = 1
        finish(arena, at, now_ps)
