"""The interface between a NIC and a protocol on its host: a sans-I/O agent in the arena.

An agent's block of words starts with the columns below. Its three handlers are

    receive(arena, at, packet, now_ps)     take a packet; the caller frees it afterwards
    transmit(arena, at, 0, now_ps)         return a new packet to send, or -1
    fire_timer(arena, at, 0, now_ps)       TIMER_AT_PS has come

It may have a fourth one, which changes nothing:

    fetch_ahead(arena, at, packet, 0)      have the processor fetch what `receive` will need

and after each of them the caller looks at TIMER_AT_PS (when to call `fire_timer`) and at
READY (whether `transmit` may have a packet). The NIC calls `transmit` when its port is
idle, so an agent never queues packets; and agents report to Python with `complete`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ringleaf.core.arena import Arena, Store
from ringleaf.core.compiled import inline
from ringleaf.core.units import FOREVER_PS

TIMER_AT_PS = 0
READY = 1
UDP_PORT_LOW = 2  # the agent gets packets to these UDP ports, both included
UDP_PORT_HIGH = 3
HOST = 4  # index of the host
COMPLETIONS_AT = 5  # the completion ring that this host reports to
RETRANSMISSIONS = 6  # packets sent more than once, for the table
REFUSALS = 7  # refused packets, for which no receive was posted; likewise
PROGRESS = 8  # grows with every success; tells which agents wait in vain
HOST_FREE_PS = 9  # when the host's processor has done the messages it has; of one agent per host
NUMBER = 10  # among all agents of the network
PAUSED = 11  # a bit per class that priority flow control has paused; agents may heed it
CORRUPTED = 12  # packets that were discarded, as their checksum was wrong
REPATHS = 13  # times that a connection took another path, as nothing got through
AGENT_WORDS = 16  # an agent's own words start here

# Completion ring: count, capacity, then rows of COMPLETION_WORDS.
COMPLETION_WORDS = 6
RING_HEADER = 2


class HostProtocol(Protocol):
    """A module with an agent's three handlers."""

    receive: Callable[..., int]
    transmit: Callable[..., int]
    fire_timer: Callable[..., int]


@dataclass(frozen=True, slots=True)
class HostAgent:
    """An agent on a host: the host's index, the agent's handlers and its block.

    `owner` is the number of the group that all of its packets are for, if it has but one.
    """

    host: int
    protocol: HostProtocol
    block: int
    owner: int = 0


class Completion(NamedTuple):
    """One report from compiled code to Python."""

    agent: int  # offset of the agent's block
    kind: int  # an agent's own code
    a: int
    b: int
    time_ps: int
    c: int = 0


def make_ring(store: Store, capacity: int) -> int:
    """Return the offset in `arena.words` of an empty completion ring for `capacity` rows.

    An agent puts the offset in its COMPLETIONS_AT.
    """
    at = store.allocate("words", RING_HEADER + capacity * COMPLETION_WORDS)
    store.arena.words[at + 1] = capacity
    return at


def make_agent(
    store: Store, words: int, *, host: int, ring: int, udp_ports: tuple[int, int]
) -> int:
    """Return the offset of a new agent block with room for `words` words of its own."""
    at = store.allocate("words", AGENT_WORDS + words)
    block = store.arena.words[at : at + AGENT_WORDS]
    block[TIMER_AT_PS] = FOREVER_PS
    block[UDP_PORT_LOW], block[UDP_PORT_HIGH] = udp_ports
    block[HOST] = host
    block[COMPLETIONS_AT] = ring
    return at


@inline
def complete(arena: Arena, at: int, kind: int, a: int, b: int, now_ps: int, c: int = 0) -> None:
    """Report to Python; the driver of the agents drains the ring before it is full."""
    words = arena.words
    ring = words[at + COMPLETIONS_AT]
    count = words[ring]
    assert count < words[ring + 1]
    row = ring + RING_HEADER + count * COMPLETION_WORDS
    words[row] = at
    words[row + 1] = kind
    words[row + 2] = a
    words[row + 3] = b
    words[row + 4] = now_ps
    words[row + 5] = c
    words[ring] = count + 1


def take_completions(arena: Arena, ring: int) -> list[Completion]:
    """Empty the ring and return its completions, oldest first."""
    count = int(arena.words[ring])
    rows = arena.words[ring + RING_HEADER :][: count * COMPLETION_WORDS]
    arena.words[ring] = 0
    return [Completion(*row) for row in rows.reshape(count, COMPLETION_WORDS).tolist()]
