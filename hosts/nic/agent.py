"""The handlers of a NIC agent (`hosts/agent.py`): transport first, then the kernel's work.

A message that has arrived waits for LATENCY_PS: where a host computes in place of its NIC, that is
the time from the NIC's interrupt to the program. Then it is computed, one after the other, for the
time that the kernel says.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import call_handler, handler, inline
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts import rc
from ringleaf.hosts.agent import (
    COMPLETION_WORDS,
    COMPLETIONS_AT,
    CORRUPTED,
    PROGRESS,
    READY,
    REFUSALS,
    RETRANSMISSIONS,
    RING_HEADER,
    TIMER_AT_PS,
    complete,
)
from ringleaf.hosts.nic.state import (
    ARRIVED,
    BEGIN,
    BUSY_PS,
    CALENDAR_AT,
    CALENDAR_COUNT,
    CALENDAR_FIRST,
    CALENDAR_ROOM,
    DONE,
    FINISHED,
    HANDLE,
    KERNEL,
    LATENCY_PS,
    PREPARE,
    QPS_AT,
    RC_AT,
    ROW_WORDS,
    SENT,
    SIZE_BYTES,
    TAG,
    TARGET_AT,
    TASK,
    WAITS,
)


@inline
def send_to(
    arena: Arena, at: int, peer: int, address: int, size_bytes: int, tag: int, now_ps: int
) -> None:
    """Send memory to a rank's NIC; it must not change before SENT."""
    words = arena.words
    qp = words[words[at + QPS_AT] + peer]
    assert rc.post_send(arena, words[at + RC_AT], qp, address, size_bytes, tag, now_ps)


@inline
def expect(arena: Arena, at: int, peer: int, address: int, size_bytes: int, tag: int) -> None:
    """Post memory for the next message of a rank's NIC."""
    words = arena.words
    qp = words[words[at + QPS_AT] + peer]
    assert rc.post_receive(arena, words[at + RC_AT], qp, address, size_bytes, tag, rc.COPY)


@inline
def spend(arena: Arena, at: int, time_ps: int, now_ps: int) -> int:
    """Let the kernel compute for a time, behind all that it has; return when that is over."""
    words = arena.words
    words[at + BUSY_PS] = max(words[at + BUSY_PS], now_ps) + time_ps
    return words[at + BUSY_PS]


@inline
def finish(arena: Arena, at: int, now_ps: int) -> None:
    """Report that the task under way is done."""
    arena.words[at + FINISHED] += 1
    complete(arena, at, DONE, 0, arena.words[at + TASK], now_ps)


@inline
def put_off(arena: Arena, at: int, due_ps: int, tag: int, size_bytes: int) -> None:
    """Have a message handled at a time that is no earlier than those of others that wait."""
    words = arena.words
    room, count = words[at + CALENDAR_ROOM], words[at + CALENDAR_COUNT]
    assert count < room
    place = (words[at + CALENDAR_FIRST] + count) % room
    row = words[at + CALENDAR_AT] + place * ROW_WORDS
    words[row], words[row + 1], words[row + 2] = due_ps, tag, size_bytes
    words[at + CALENDAR_COUNT] = count + 1


@inline
def first_due_ps(arena: Arena, at: int) -> int:
    """Return the time of the first message that waits."""
    words = arena.words
    if words[at + CALENDAR_COUNT] == 0:
        return FOREVER_PS
    return words[words[at + CALENDAR_AT] + words[at + CALENDAR_FIRST] * ROW_WORDS]


@inline
def take_reports(arena: Arena, at: int, now_ps: int) -> None:
    """Take the transport's reports: messages that came wait for their turn."""
    words = arena.words
    ring = words[words[at + RC_AT] + COMPLETIONS_AT]
    kernel = words[at + KERNEL]
    for number in range(words[ring]):
        row = ring + RING_HEADER + number * COMPLETION_WORDS
        assert words[row + 1] != rc.OVERRUN
        words[at + TAG], words[at + SIZE_BYTES] = words[row + 3], words[row + 5]
        if words[row + 1] == rc.SENT:
            call_handler(kernel, arena, at, SENT, now_ps)
            continue
        time_ps = call_handler(kernel, arena, at, ARRIVED, now_ps)
        due_ps = spend(arena, at, time_ps, now_ps + words[at + LATENCY_PS])
        put_off(arena, at, due_ps, words[row + 3], words[row + 5])
    words[ring] = 0


@inline
def go_on(arena: Arena, at: int, now_ps: int) -> None:
    """Take reports, handle all that is due, and tell the host how the transport is."""
    words = arena.words
    take_reports(arena, at, now_ps)
    while first_due_ps(arena, at) <= now_ps:
        row = words[at + CALENDAR_AT] + words[at + CALENDAR_FIRST] * ROW_WORDS
        words[at + TAG], words[at + SIZE_BYTES] = words[row + 1], words[row + 2]
        words[at + CALENDAR_FIRST] = (words[at + CALENDAR_FIRST] + 1) % words[at + CALENDAR_ROOM]
        words[at + CALENDAR_COUNT] -= 1
        call_handler(words[at + KERNEL], arena, at, HANDLE, now_ps)
    transport = words[at + RC_AT]
    words[at + READY] = words[transport + READY]
    words[at + TIMER_AT_PS] = min(words[transport + TIMER_AT_PS], first_due_ps(arena, at))
    words[at + RETRANSMISSIONS] = words[transport + RETRANSMISSIONS]
    words[at + REFUSALS] = words[transport + REFUSALS]
    words[at + CORRUPTED] = words[transport + CORRUPTED]
    words[at + PROGRESS] = words[transport + PROGRESS] + words[at + FINISHED]


@inline
def begin_if_due(arena: Arena, at: int, now_ps: int) -> None:
    """Begin with a task that was given: live, that is when all hosts are ready."""
    if arena.words[at + WAITS]:
        arena.words[at + WAITS] = 0
        call_handler(arena.words[at + KERNEL], arena, at, BEGIN, now_ps)


@handler
def receive(arena: Arena, at: int, packet: int, now_ps: int) -> int:
    """Take a packet."""
    begin_if_due(arena, at, now_ps)
    rc.receive(arena, arena.words[at + RC_AT], packet, now_ps)
    go_on(arena, at, now_ps)
    return 0


@handler
def transmit(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Return the transport's next packet."""
    packet = rc.transmit(arena, arena.words[at + RC_AT], 0, now_ps)
    go_on(arena, at, now_ps)
    return packet


@handler
def fire_timer(arena: Arena, at: int, _packet: int, now_ps: int) -> int:
    """Serve the transport's timer, and the messages that are due."""
    begin_if_due(arena, at, now_ps)
    transport = arena.words[at + RC_AT]
    if arena.words[transport + TIMER_AT_PS] <= now_ps:
        rc.fire_timer(arena, transport, 0, now_ps)
    go_on(arena, at, now_ps)
    return 0


@handler
def give_task(arena: Arena, at: int, target_at: int, now_ps: int) -> int:
    """Give the task whose tag is in TASK, on memory at an address; it begins with the timer."""
    arena.words[at + TARGET_AT] = target_at
    call_handler(arena.words[at + KERNEL], arena, at, PREPARE, now_ps)
    go_on(arena, at, now_ps)
    arena.words[at + WAITS] = 1
    arena.words[at + TIMER_AT_PS] = now_ps
    return 0
