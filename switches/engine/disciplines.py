"""Choose the class of a port's queues to serve next, as `ringleaf/core/disciplines.py` explains."""

from __future__ import annotations

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import address_of, call_handler, inline
from ringleaf.core.disciplines import (
    CALLED,
    CLASSES,
    DISCIPLINES,
    DRR,
    OWN_DISCIPLINES,
    STRICT,
    WRR,
    parse_discipline,
)
from ringleaf.core.packets import free_packet
from ringleaf.switches.engine.queues import (
    CHOOSER,
    CREDIT,
    DEFICITS,
    DISCIPLINE,
    LENGTHS,
    NUMBER,
    PACKETS,
    TURN,
    WEIGHTS,
    first_bytes,
    make_queues,
    take,
)

QUANTUM_BYTES = 4608  # of weight 1: a packet of 4 KiB with all its headers


def make_port_queues(store: Store, capacity_bytes: int, discipline: str) -> int:
    """Return the offset of a port's empty queues, served as `discipline` says.

    Raises:
        ConfigError: If `discipline` can't be read.
    """
    chosen = parse_discipline(discipline)
    at = make_queues(store, capacity_bytes)
    words = store.arena.words
    words[at + DISCIPLINE] = chosen.code
    words[at + WEIGHTS : at + WEIGHTS + CLASSES] = chosen.weights
    if chosen.code == CALLED:
        words[at + CHOOSER] = address_of(DISCIPLINES[chosen.name].choose)
        words[at + NUMBER] = list(DISCIPLINES).index(chosen.name)
    return at


def discipline_of(words: Words, at: int) -> str:
    """Return the queues' discipline, as text."""
    if words[at + DISCIPLINE] == CALLED:
        name = list(DISCIPLINES)[words[at + NUMBER]]
    else:
        name = next(
            name for name, code in OWN_DISCIPLINES.items() if code == words[at + DISCIPLINE]
        )
    weights: list[int] = words[at + WEIGHTS : at + WEIGHTS + CLASSES].tolist()
    return name if name == "strict" else f"{name}:{','.join(map(str, weights))}"


@inline
def highest(words: Words, at: int) -> int:
    """Return the highest occupied class; there must be one."""
    level = CLASSES - 1
    while words[at + LENGTHS + level] == 0:
        level -= 1
    return level


@inline
def next_turn(words: Words, at: int) -> int:
    """Give the turn to the next occupied class, downwards and around; return it."""
    level = words[at + TURN]
    for _ in range(CLASSES):
        level = (level - 1) % CLASSES
        if words[at + LENGTHS + level] > 0:
            break
    words[at + TURN] = level
    return level


@inline
def choose_wrr(words: Words, at: int) -> int:
    """Return the class whose turn it is; a turn is as many packets as the class's weight."""
    level = words[at + TURN]
    if words[at + LENGTHS + level] == 0 or words[at + CREDIT] == 0:
        level = next_turn(words, at)
        words[at + CREDIT] = words[at + WEIGHTS + level]
    words[at + CREDIT] -= 1
    return level


@inline
def choose_drr(words: Words, at: int) -> int:
    """Return the class whose deficit covers its first packet, and take the packet's bytes off it.

    A turn adds the class's weight times QUANTUM_BYTES to its deficit.
    """
    level = words[at + TURN]
    while words[at + LENGTHS + level] == 0 or (
        first_bytes(words, at, level) > words[at + DEFICITS + level]
    ):
        level = next_turn(words, at)
        words[at + DEFICITS + level] += words[at + WEIGHTS + level] * QUANTUM_BYTES
    words[at + DEFICITS + level] -= first_bytes(words, at, level)
    if words[at + LENGTHS + level] == 1:
        words[at + DEFICITS + level] = 0  # a class that becomes empty keeps no deficit
    return level


@inline
def choose_called(arena: Arena, at: int, now_ps: int) -> int:
    """Return the class that another package's discipline chooses, if it has a packet."""
    words = arena.words
    level = call_handler(words[at + CHOOSER], arena, at, 0, now_ps)
    if level < 0 or level >= CLASSES or words[at + LENGTHS + level] == 0:
        return highest(words, at)
    return level


@inline
def pop(arena: Arena, at: int, now_ps: int) -> int:
    """Remove and return the packet that is served next; -1 when there is none."""
    words = arena.words
    if words[at + PACKETS] == 0:
        return -1
    if words[at + DISCIPLINE] == STRICT:
        level = highest(words, at)
    elif words[at + DISCIPLINE] == WRR:
        level = choose_wrr(words, at)
    elif words[at + DISCIPLINE] == DRR:
        level = choose_drr(words, at)
    else:
        level = choose_called(arena, at, now_ps)
    return take(words, at, level)


def free_all(arena: Arena, at: int) -> None:
    """Free all packets in the queues, for callers that are not compiled."""
    words = arena.words
    is_called = words[at + DISCIPLINE] == CALLED  # only compiled code can call it
    while words[at + PACKETS] > 0:
        packet = take(words, at, highest(words, at)) if is_called else pop(arena, at, 0)
        free_packet(arena, packet)
