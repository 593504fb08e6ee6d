"""The compiled driver of executors: passes requests and reports between them and hosts' agents.

Reports of an instant are all taken before the requests that follow from them are posted. Where a
message takes time of its host's processor (`overhead`), it waits for that in a calendar.
"""

from __future__ import annotations

from collections.abc import Callable

import ringleaf.hosts.executor.layout as x
from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import address_of, call_back, call_handler, handler, inline
from ringleaf.core.heap import COUNT, first_time_ps, pop_event, push_event
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import COMPLETION_WORDS, HOST_FREE_PS, RING_HEADER
from ringleaf.hosts.executor import parts, walk
from ringleaf.hosts.plan import RECEIVE, SEND, SUM
from ringleaf.hosts.rc.landing import ASKED
from ringleaf.hosts.rc.receiver import post_receive
from ringleaf.hosts.rc.sender import post_send
from ringleaf.hosts.rc.state import LEFT, OVERRUN

# The driver's block.
RING_AT = 0  # completion ring of all agents
WAKE = 1  # address of the handler by which the network serves an agent that was given something
NETWORK_AT = 2  # its block
OVERHEAD_PS = 3  # time of a host's processor for each message
CALENDAR_AT = 4  # a heap of parts that processors complete; 0: there is no overhead
FIRST_CONCERNED = 5  # executors whose requests are to be posted
LAST_CONCERNED = 6
FIRST_DONE = 7  # operations that are done
LAST_DONE = 8
NOW_PS = 9  # time of the last report
FAILED = 10  # a callback has raised an exception
OVERLONG = 11  # the part whose message was too long; 0: none
JOURNAL_AT = 12  # block of a journal; 0: nothing is noted
REPORTS = 13  # taken so far
DRIVE = 14  # address of `drive`
ALARM = 15  # callback: a host wanted to be called
WANTED = 16  # a callback wants Python to look at the network at the end of the window
WOKEN = 17  # agents to wake, MOST_WOKEN of them
MOST_WOKEN = 4  # one for messages, and one for sums; there is room for more
DRIVER_WORDS = WOKEN + MOST_WOKEN

# A journal.
NOTES_AT = 0  # rows of NOTE_WORDS
NOTES = 1
MOST_NOTES = 2
LEFT_OUT = 3
POSTED_AT = 4  # by message, when its sender gave it to its agent
JOURNAL_WORDS = 5
NOTE_WORDS = 6  # kind, node, peer, message, start_ps, end_ps

DISPATCH = 0  # what `drive` does, if it is not to begin with an executor
ACT = -1

POST = 1  # in a calendar's event, beside the part: it is to be posted; else it has come
AT_HOST = 1 << 31  # likewise, beside a host's number: it wanted to be called

# What is heard of a node, beside its executor.
DONE = 0
HAS_LEFT = 1


@inline
def is_pending(words: Words, at: int) -> bool:
    """Return whether there are reports, or executors, to look at."""
    return bool(words[words[at + RING_AT]] > 0 or words[at + FIRST_CONCERNED])


@inline
def is_noteworthy(words: Words, at: int) -> bool:
    """Return whether Python must look: an operation is done, or something has failed."""
    return bool(
        words[at + FIRST_DONE] or words[at + FAILED] or words[at + OVERLONG] or words[at + WANTED]
    )


@inline
def due_ps(words: Words, at: int) -> int:
    """Return the time at which a processor next completes something."""
    calendar = words[at + CALENDAR_AT]
    if calendar == 0 or words[calendar + COUNT] == 0:
        return FOREVER_PS
    return first_time_ps(words, calendar)


@inline
def engage(words: Words, at: int, part: int, event: int, now_ps: int) -> None:
    """Queue a message on its host's processor, behind those it has already."""
    agent = words[parts.executor_of(words, part) + x.AGENT]
    done_ps = max(now_ps, words[agent + HOST_FREE_PS]) + words[at + OVERHEAD_PS]
    words[agent + HOST_FREE_PS] = done_ps
    assert event < AT_HOST
    push_event(words, words[at + CALENDAR_AT], done_ps, event, 0)


@inline
def tell(arena: Arena, at: int, part: int, size_bytes: int, now_ps: int) -> None:
    """Pass a report on to its executor."""
    words = arena.words
    executor, kind = parts.executor_of(words, part), parts.kind_of(words, part)
    if words[at + JOURNAL_AT]:
        note(words, words[at + JOURNAL_AT], part, now_ps)
    if kind == SEND:
        walk.sent(arena, part)
    elif kind == RECEIVE:
        walk.received(arena, part, size_bytes)
    else:
        walk.summed(arena, part)
    if kind != SEND or words[executor + x.WRITES] == 0:
        words[executor + x.FINISH_PS] = now_ps  # it has its result when the last write is there
    concern(words, at, executor, now_ps)


@inline
def concern(words: Words, at: int, executor: int, now_ps: int) -> None:
    """Have an executor's requests posted, after those of others that are already to be."""
    words[at + FAILED] |= words[words[executor + x.OPERATION] + x.FAILED]
    words[executor + x.NOW_PS] = now_ps
    if words[executor + x.FINISH_PS] < 0:
        words[executor + x.FINISH_PS] = now_ps
    if words[executor + x.IS_CONCERNED]:
        return
    words[executor + x.IS_CONCERNED] = 1
    words[executor + x.NEXT_CONCERNED] = 0
    if words[at + FIRST_CONCERNED]:
        words[words[at + LAST_CONCERNED] + x.NEXT_CONCERNED] = executor
    else:
        words[at + FIRST_CONCERNED] = executor
    words[at + LAST_CONCERNED] = executor


@inline
def post_all(arena: Arena, at: int) -> int:
    """Post the requests of all executors concerned; return what `wake` returns, if not 0."""
    words = arena.words
    pause = 0
    while pause == 0 and words[at + FIRST_CONCERNED]:
        executor = words[at + FIRST_CONCERNED]
        words[at + FIRST_CONCERNED] = words[executor + x.NEXT_CONCERNED]
        words[executor + x.IS_CONCERNED] = 0
        now_ps = words[executor + x.NOW_PS]
        part = walk.take_request(words, executor)
        while part:
            if words[at + OVERHEAD_PS] and parts.kind_of(words, part) != RECEIVE:
                engage(words, at, part, 2 * part + POST, now_ps)
            else:
                post(arena, at, part, now_ps)
            part = walk.take_request(words, executor)
        pause = wake_all(arena, at, now_ps)
        end_if_done(words, at, executor)
    return pause


@inline
def hear(words: Words, at: int, executor: int, what: int) -> None:
    """Tell Python at once of a node, if somebody wants to know."""
    callback = words[words[executor + x.OPERATION] + x.HEAR]
    if callback:
        heed(words, at, call_back(callback, 2 * executor + what))


@inline
def heed(words: Words, at: int, answer: int) -> None:
    """Note what Python answers: it has failed, or wants to look when the window has ended."""
    if answer < 0:
        words[at + FAILED] = 1
    elif answer > 0:
        words[at + WANTED] = 1


@inline
def end_if_done(words: Words, at: int, executor: int) -> None:
    """Note that a node, and maybe its operation, is done."""
    if words[executor + x.LEFT] > 0 or not words[executor + x.IS_UNDER_WAY]:
        return
    words[executor + x.IS_UNDER_WAY] = 0
    hear(words, at, executor, DONE)
    operation = words[executor + x.OPERATION]
    words[operation + x.LEFT_NODES] -= 1
    if words[operation + x.LEFT_NODES] == 0:
        if words[at + FIRST_DONE]:
            words[words[at + LAST_DONE] + x.NEXT_DONE] = operation
        else:
            words[at + FIRST_DONE] = operation
        words[at + LAST_DONE] = operation


@inline
def post(arena: Arena, at: int, part: int, now_ps: int) -> None:
    """Give one request to the agent it is for."""
    words = arena.words
    executor, stream = parts.executor_of(words, part), words[part + x.STREAM]
    kind = words[stream + x.KIND]
    agent, size = words[executor + x.AGENT], words[part + x.SIZE_BYTES]
    address = parts.address_of(words, part)
    if kind == SUM:
        words[part + x.HELD] = now_ps + 1
        agent = call_back(words[words[executor + x.OPERATION] + x.AGGREGATE], part)
        if agent < 0:
            words[at + FAILED] = 1
    elif kind == SEND:
        if words[at + JOURNAL_AT]:
            note_posted(words, words[at + JOURNAL_AT], part, now_ps)
        assert post_send(arena, agent, words[stream + x.QP], address, size, part, now_ps)
    else:
        how = walk.landing_of(words, part)
        if how == ASKED:
            address = walk.claim_of(words, part)
        assert post_receive(arena, agent, words[stream + x.QP], address, size, part, how)
    here = at + WOKEN
    while words[here] not in (0, agent):
        here += 1
        assert here < at + WOKEN + MOST_WOKEN
    words[here] = agent


@inline
def wake_all(arena: Arena, at: int, now_ps: int) -> int:
    """Have the network serve the agents that were given something; return if it needs a pause."""
    words = arena.words
    pause = 0
    for number in range(MOST_WOKEN):
        agent = words[at + WOKEN + number]
        if agent > 0:
            network = words[at + NETWORK_AT]
            pause = max(pause, call_handler(words[at + WAKE], arena, network, agent, now_ps))
        words[at + WOKEN + number] = 0
    return pause


@inline
def note_posted(words: Words, journal: int, part: int, now_ps: int) -> None:
    """Note that a node's agent has been given a message to send, if there is room for its ends."""
    if words[journal + NOTES] < words[journal + MOST_NOTES]:
        words[words[journal + POSTED_AT] + words[part + x.MESSAGE]] = now_ps


@inline
def note(words: Words, journal: int, part: int, now_ps: int) -> None:
    """Note that a part is done: a message acknowledged, a message or a sum there."""
    if words[journal + NOTES] == words[journal + MOST_NOTES]:
        words[journal + LEFT_OUT] += 1
        return
    stream = words[part + x.STREAM]
    kind = words[stream + x.KIND]
    message = words[part + x.MESSAGE]
    start_ps = words[part + x.HELD] - 1
    if kind != SUM:
        start_ps = words[words[journal + POSTED_AT] + message]
    row = words[journal + NOTES_AT] + words[journal + NOTES] * NOTE_WORDS
    words[journal + NOTES] += 1
    words[row] = kind
    words[row + 1] = words[words[stream + x.OWNER] + x.NODE]
    words[row + 2] = -1 if kind == SUM else words[stream + x.PEER]
    words[row + 3] = message
    words[row + 4] = start_ps
    words[row + 5] = now_ps


@inline
def dispatch(arena: Arena, at: int) -> int:
    """Take all reports, and post all requests; return 0 if that is done.

    Else it returns the number with which the network's `wake` asked for a pause: call it again
    then. Python must look at the driver if `is_noteworthy`.
    """
    words = arena.words
    ring = words[at + RING_AT]
    for number in range(words[ring]):
        report = ring + RING_HEADER + number * COMPLETION_WORDS
        part, now_ps = words[report + 3], words[report + 4]
        words[at + NOW_PS] = now_ps
        kind = parts.kind_of(words, part)
        if kind != SUM and words[report + 1] == OVERRUN:
            words[at + OVERLONG] = part
        elif kind == SEND and words[report + 1] == LEFT:
            executor = parts.executor_of(words, part)
            words[executor + x.NOW_PS] = now_ps
            hear(words, at, executor, HAS_LEFT)
        elif words[at + OVERHEAD_PS] and kind != SEND:
            words[part + x.SIZE_BYTES] = words[report + 5]
            engage(words, at, part, 2 * part, now_ps)
        else:
            tell(arena, at, part, words[report + 5], now_ps)
    words[at + REPORTS] += words[ring]
    words[ring] = 0
    return post_all(arena, at)


@inline
def act(arena: Arena, at: int) -> int:
    """Go on with what processors have completed by the first time that is due; as `dispatch`."""
    words = arena.words
    calendar = words[at + CALENDAR_AT]
    now_ps = first_time_ps(words, calendar)
    words[at + NOW_PS] = now_ps
    pause = 0
    while pause == 0 and due_ps(words, at) <= now_ps:
        event = pop_event(words, calendar)
        part = event >> 1
        if event & AT_HOST:
            heed(words, at, call_back(words[at + ALARM], event ^ AT_HOST))
            pause = post_all(arena, at)
        elif event & POST:
            post(arena, at, part, now_ps)
            pause = wake_all(arena, at, now_ps)
        else:
            tell(arena, at, part, words[part + x.SIZE_BYTES], now_ps)
            pause = post_all(arena, at)
    return pause


@inline
def begin(arena: Arena, at: int, executor: int, now_ps: int) -> None:
    """Start an executor; `dispatch` posts its requests."""
    words = arena.words
    words[executor + x.FINISH_PS] = now_ps
    walk.start(arena, executor)
    if words[executor + x.LEFT] > 0:
        words[executor + x.IS_UNDER_WAY] = 1
        words[words[executor + x.OPERATION] + x.LEFT_NODES] += 1
    concern(words, at, executor, now_ps)


@handler
def drive(arena: Arena, at: int, what: int, now_ps: int) -> int:
    """Do a driver's work: `dispatch`; `act`; or, as `what` is an executor, `begin`.

    It is called by its address, as it would be compiled again as a part of each caller.
    """
    if what == DISPATCH:
        return dispatch(arena, at)
    if what == ACT:
        return act(arena, at)
    begin(arena, at, what, now_ps)
    return 0


def set_wake(words: Words, at: int, wake: Callable[..., int]) -> None:
    """Have a handler `wake(arena, network, agent, now_ps)` serve agents from now on.

    It returns 0, or a number if it needs a pause before another agent.
    """
    words[at + WAKE], words[at + DRIVE] = address_of(wake), address_of(drive)
