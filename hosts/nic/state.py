"""The state of a NIC agent: words of the arena, and those of its kernel in registered memory.

A NIC agent has an rc agent of its own, which carries its messages on a UDP port of their own, and
a kernel: a handler that is told of messages, and that posts others. Its kernel's state lies in
registered memory, as integers of 64 bits: live, hosts are processes that share this memory alone,
and caches must outlast a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringleaf.core.arena import Store
from ringleaf.core.compiled import address_of
from ringleaf.hosts.agent import AGENT_WORDS, COMPLETIONS_AT, make_agent, make_ring

UDP_PORT = 4792
"""The port of NICs' messages: the one after RoCEv2's, a choice."""

RING_ROWS = 1 << 13  # reports of an rc agent between two looks at them

# The agent's own words.
RC_AT = AGENT_WORDS  # its rc agent
KERNEL = AGENT_WORDS + 1  # address of the kernel
STATE_AT = AGENT_WORDS + 2  # of the kernel's state, in registered memory
LATENCY_PS = AGENT_WORDS + 3  # from a message's arrival to the kernel: 0 on a NIC
BUSY_PS = AGENT_WORDS + 4  # when the kernel has computed what it has
TASK = AGENT_WORDS + 5  # tag of the task under way
TARGET_AT = AGENT_WORDS + 6  # memory of the task: the rank's tensor
TAG = AGENT_WORDS + 7  # of the message that the kernel is told of
SIZE_BYTES = AGENT_WORDS + 8  # likewise
QPS_AT = AGENT_WORDS + 9  # queue pair of each peer, by rank
CALENDAR_AT = AGENT_WORDS + 10  # rows of messages that wait, a ring
CALENDAR_FIRST = AGENT_WORDS + 11
CALENDAR_COUNT = AGENT_WORDS + 12
CALENDAR_ROOM = AGENT_WORDS + 13
FINISHED = AGENT_WORDS + 14  # tasks so far
AHEAD = AGENT_WORDS + 15  # 1: the next task's messages are expected already
WAITS = AGENT_WORDS + 16  # 1: the task that was given has not begun
OWN_WORDS = 17

# A row of the calendar: messages are handled in the order of their arrival.
ROW_WORDS = 3  # due_ps, tag, bytes

# The events that a kernel is told of; TAG and SIZE_BYTES belong to the last three.
PREPARE = 4  # a task has been given: expect its messages
BEGIN = 0  # the task begins
ARRIVED = 1  # a message is here: the kernel returns the time that it will compute for it
HANDLE = 2  # that time is over
SENT = 3  # a message that was posted is acknowledged

DONE = 1  # the report of an agent; b: the task's tag


class NicPlace(NamedTuple):
    """The place of a NIC: its host's index, its rc agent, and a queue pair for each rank's NIC."""

    host: int
    rc: int
    qps: list[int]  # by rank; its own is -1


def make_nic(
    store: Store,
    place: NicPlace,
    kernel: Callable[..., int],
    *,
    ring: int,
    state_at: int,
    latency_ps: int,
    room: int,
) -> int:
    """Return the offset of a NIC agent.

    Args:
        store: The store that holds it.
        place: Its host and its transport, whose reports go to the NIC from now on.
        kernel: The handler of its kernel: `kernel(arena, agent, event, now_ps)`.
        ring: The completion ring that it reports tasks to.
        state_at: Address of its kernel's state in registered memory.
        latency_ps: Time from a message's arrival to the kernel.
        room: The most messages that wait for the kernel at a time.
    """
    at = make_agent(store, OWN_WORDS, host=place.host, ring=ring, udp_ports=(UDP_PORT, UDP_PORT))
    reports = make_ring(store, RING_ROWS)
    calendar_at = store.allocate("words", room * ROW_WORDS)
    qps_at = store.allocate("words", len(place.qps))
    words = store.arena.words
    words[qps_at : qps_at + len(place.qps)] = place.qps
    words[place.rc + COMPLETIONS_AT] = reports
    words[at + RC_AT], words[at + KERNEL] = place.rc, address_of(kernel)
    words[at + STATE_AT], words[at + LATENCY_PS] = state_at, latency_ps
    words[at + QPS_AT] = qps_at
    words[at + CALENDAR_AT], words[at + CALENDAR_ROOM] = calendar_at, room
    return at
