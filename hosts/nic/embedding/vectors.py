"""Sums and copies of vectors in registered memory, and the time that rows of the table take."""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import copy_items, inline
from ringleaf.core.views import float32_at
from ringleaf.hosts.nic.cache import admits, insert, look_up
from ringleaf.hosts.nic.embedding.state import (
    DIM,
    LOCAL_CAPACITY,
    LOCAL_HITS,
    RANKS,
    READS,
    ROW_PS,
    TABLE_AT,
    local_cache_of,
)


@inline
def own_row_at(n: Words, row: int) -> int:
    """Return the address of a row of the rank's own."""
    return n[TABLE_AT] + row // n[RANKS] * 4 * n[DIM]


@inline
def copy_vector(arena: Arena, n: Words, target: int, source: int) -> None:
    """Copy a vector of DIM float32 between two byte addresses in registered memory."""
    copy_items(arena.memory, target, arena.memory, source, 4 * n[DIM])


@inline
def clear_vector(arena: Arena, n: Words, target: int) -> None:
    """Set the vector of DIM float32 at byte `target` to zeros."""
    vector = float32_at(arena.memory, target, n[DIM])
    for i in range(n[DIM]):
        vector[i] = 0


@inline
def add_vector(arena: Arena, n: Words, target: int, source: int) -> None:
    """Add the vector at byte `source` to that at `target`, element by element in float32."""
    into, other = float32_at(arena.memory, target, n[DIM]), float32_at(arena.memory, source, n[DIM])
    for i in range(n[DIM]):
        into[i] += other[i]


@inline
def subtract_vector(arena: Arena, n: Words, target: int, source: int) -> None:
    """Subtract the vector at byte `source` from that at `target`, element by element in float32."""
    into, other = float32_at(arena.memory, target, n[DIM]), float32_at(arena.memory, source, n[DIM])
    for i in range(n[DIM]):
        into[i] -= other[i]


@inline
def reach_row(arena: Arena, n: Words, row: int) -> int:
    """Return the time that a row of the rank's own takes: none, if the NIC's memory has it."""
    n[READS] += 1
    if n[LOCAL_CAPACITY] == 0:
        return n[ROW_PS]
    local = local_cache_of(arena, n)
    place = row // n[RANKS]
    if look_up(local, place) >= 0:
        n[LOCAL_HITS] += 1
        return 0
    if admits(local, place):
        insert(local, place)
    return n[ROW_PS]
