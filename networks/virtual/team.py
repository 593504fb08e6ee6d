"""A team of threads that share the work of the event loop: each has a region of the network.

A region is nodes with all that belongs to them. It has a network block of its own (`state`), with a
heap, counters and a driver. A packet to another region takes the delay of a link at least, and
threads' windows of time are no longer than that: what a region sends in a window arrives after it.
So threads handle a window each for itself, meet, take the mail that others have left for them, and
agree on the next one. Windows lie on a grid of virtual time; those without events are left out.

The order of events of one time at one node does not depend on regions (`heap`, `lines.deliver`),
and events at different nodes do not touch one another. So results are the same for any team.

Source:
    Fujimoto, "Parallel discrete event simulation", CACM 33(10), 1990: conservative synchronisation.
"""

from __future__ import annotations

import ringleaf.networks.virtual.state as s
from ringleaf.core import native_types as types
from ringleaf.core.arena import Arena, Words
from ringleaf.core.atomic import add_atomically, load_atomically, sleep_while, wake_sleepers
from ringleaf.core.compiled import compiled, inline
from ringleaf.core.native_types import ARENA
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.endpoints.driver import NOW_PS, due_ps, is_noteworthy, is_pending
from ringleaf.networks.virtual.lines import join_line
from ringleaf.networks.virtual.loop import EMPTY, NEEDS_ROOM, REPORTED, UNTIL, next_time_ps, run
from ringleaf.networks.virtual.room import lacks_room_for_mail

ABORTED = 6  # a reason to return: another thread has failed

# A team's block; lines of the cache that several threads write are apart.
REGIONS = 0
GRID_PS = 1  # width of a window
BLOCKS_AT = 2  # the regions' network blocks
MET = 8  # how often a thread has come to a meeting
IS_ABORTED = 16
SLEEPERS = 17  # threads that sleep until all have come
SLOTS_AT = 24  # of each half and region: NEXT_PS, REASON
SLOT_WORDS = 8
NEXT_PS = 0
REASON = 1

_PATIENCE = 1 << 15  # looks for the others, before sleep


def team_words(regions: int) -> int:
    """Return the words of a team's block."""
    return SLOTS_AT + 2 * regions * SLOT_WORDS


@inline
def block_of(words: Words, team: int, region: int) -> int:
    """Return the network block of a region, which its thread alone works on."""
    return words[words[team + BLOCKS_AT] + region]


@inline
def next_ps(words: Words, at: int) -> int:
    """Return the time at which a region next has something to do, or leaves something to do."""
    time_ps = min(next_time_ps(words, words[at + s.HEAP_AT]), words[at + s.MAIL_PS])
    driver = words[at + s.DRIVER]
    if driver:
        time_ps = min(time_ps, due_ps(words, driver))
        if is_pending(words, driver):
            time_ps = min(time_ps, words[driver + NOW_PS])
    return time_ps


@inline
def announce(words: Words, at: int, reason: int) -> None:
    """Tell the others when this region goes on, and why it has stopped, if it has."""
    team, half = words[at + s.TEAM], words[at + s.HALF]
    # Each half has slots of its own: others may still read those of the window before.
    slot = team + SLOTS_AT + (half * words[team + REGIONS] + words[at + s.REGION]) * SLOT_WORDS
    words[slot + NEXT_PS] = next_ps(words, at)
    words[slot + REASON] = reason


@inline
def meet(words: Words, at: int) -> bool:
    """Wait until all have come here; return whether all have, as one may have failed."""
    team = words[at + s.TEAM]
    words[at + s.MEETINGS] += 1
    target = words[at + s.MEETINGS] * words[team + REGIONS]
    met = add_atomically(words, team + MET, 1) + 1
    if met == target:
        if load_atomically(words, team + SLEEPERS):
            wake_sleepers(words, team + MET)
        return True
    looks = 0
    while met < target:
        if load_atomically(words, team + IS_ABORTED):
            return False
        looks += 1
        # Windows are short, so most waits are over before a call of the kernel would be.
        if looks > _PATIENCE:
            add_atomically(
                words, team + SLEEPERS, 1
            )  # whoever comes last sees it, or this the last
            met = load_atomically(words, team + MET)
            if met < target:
                sleep_while(words, team + MET, met)
            add_atomically(words, team + SLEEPERS, -1)
        met = load_atomically(words, team + MET)
    return True


@inline
def take_mail(words: Words, at: int, half: int) -> None:
    """Take the packets that other regions have left for this one in a half of their boxes."""
    team = words[at + s.TEAM]
    for region in range(words[team + REGIONS]):
        if region == words[at + s.REGION]:
            continue
        box = s.box_of(words, block_of(words, team, region), words[at + s.REGION], half)
        for row in range(box + s.BOX_HEADER, box + s.BOX_HEADER + 2 * words[box], 2):
            join_line(words, at, words[row], words[row + 1])
        words[box] = 0


@inline
def agree(words: Words, at: int, half: int, until_ps: int) -> int:
    """Return the end of the next window; or, if there is none, minus the reason to return."""
    team = words[at + s.TEAM]
    first_ps, reason = FOREVER_PS, 0
    for region in range(words[team + REGIONS]):
        slot = team + SLOTS_AT + (half * words[team + REGIONS] + region) * SLOT_WORDS
        first_ps = min(first_ps, words[slot + NEXT_PS])
        reason = max(reason, words[slot + REASON])
    if reason:
        return -reason
    if first_ps == FOREVER_PS:
        return -EMPTY
    if first_ps > until_ps:
        return -UNTIL
    grid_ps = words[team + GRID_PS]
    # A window ends before its end, and events at `until_ps` are still to be handled.
    return min((first_ps // grid_ps + 1) * grid_ps, until_ps + 1)


@inline
def run_window(arena: Arena, at: int, end_ps: int) -> int:
    """Handle a region's events before `end_ps`; return why Python is needed after it, or 0."""
    if lacks_room_for_mail(arena.words, at):
        return NEEDS_ROOM
    reason = REPORTED
    while reason == REPORTED:  # others do not know of it before the window's end
        reason = run(arena, at, end_ps - 1)
    if reason != UNTIL and reason != EMPTY:
        return reason
    driver = arena.words[at + s.DRIVER]
    return REPORTED if driver and is_noteworthy(arena.words, driver) else 0


@inline
def start_window(words: Words, at: int, half: int, until_ps: int) -> int:
    """Take mail, and return what `agree` does; `half` is that of the window that is over."""
    end_ps = agree(words, at, half, until_ps)
    take_mail(words, at, half)
    # The halves alternate: a region that is ahead already leaves mail of the next window, while
    # this one takes that of the last.
    words[at + s.HALF] = 1 - half
    words[at + s.MAIL_PS] = FOREVER_PS
    return end_ps


@compiled(types.int64(ARENA, types.int64, types.int64), nogil=True, rare=True)
def run_region(arena: Arena, at: int, until_ps: int) -> int:
    """Handle a region's events, together with the other threads of the team.

    All of them return at the same time, and for the same reason: the greatest of `loop`'s.
    """
    words = arena.words
    reason = 0
    while True:
        half = words[at + s.HALF]
        announce(words, at, reason)
        if not meet(words, at):
            return ABORTED
        end_ps = start_window(words, at, half, until_ps)
        if end_ps < 0:
            return -end_ps
        reason = run_window(arena, at, end_ps)
