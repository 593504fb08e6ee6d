"""Queues some of whose classes are paused."""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import inline
from ringleaf.core.disciplines import CLASSES
from ringleaf.networks.virtual.pfc.layout import HIDDEN, PAUSED
from ringleaf.switches.engine.disciplines import pop
from ringleaf.switches.engine.queues import LENGTHS, PACKETS


@inline
def eligible(words: Words, queues: int, paused: int) -> int:
    """Return the number of packets in queues whose classes are not paused."""
    count = words[queues + PACKETS]
    if paused:
        for level in range(CLASSES):
            if paused >> level & 1:
                count -= words[queues + LENGTHS + level]
    return count


@inline
def pop_eligible(arena: Arena, mine: int, queues: int, now_ps: int) -> int:
    """Remove and return the packet that is served next, of which there must be one.

    Paused classes look empty to the discipline, whichever it is.
    """
    words = arena.words
    paused = words[mine + PAUSED]
    if paused == 0:
        return pop(arena, queues, now_ps)
    for level in range(CLASSES):
        if paused >> level & 1:
            words[mine + HIDDEN + level] = words[queues + LENGTHS + level]
            words[queues + LENGTHS + level] = 0
    packet = pop(arena, queues, now_ps)
    for level in range(CLASSES):
        if paused >> level & 1:
            words[queues + LENGTHS + level] = words[mine + HIDDEN + level]
    return packet
