"""A window whose workers agree on the blocks that take aggregators (A2TP).

If one worker let a block's packet take an aggregator, and another one did not, the first one's
values would wait there until a probe came. So workers decide from what all have alike: the marks of
results, in the order of blocks. Rounds are of blocks, too: one ends when all blocks have their
results that the window allowed when it began, whether a worker had as many to send or not. Marks
that a single worker sees are echoed in its gradients, so that they come back in results to all.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Bytes
from ringleaf.core.compiled import inline
from ringleaf.core.headers import ECN_MARKED, ECN_MASK, IP_TOS_AT, put16, write_ip_checksum
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp.state import (
    ALLOWED,
    ANSWERED,
    BASE,
    BASE_PS,
    CONTROL,
    ECHO,
    IS_ALONE,
    IS_LATE,
    LIMIT,
    MARKED,
    MARKS,
    NEXT,
    POSITION_WORDS,
    RESULTS,
    ROUND_END,
    ROUND_PS,
    SEQUENCE,
    SHARE,
    SHARE_END,
    TIMELY,
    WANTED,
    WINDOW,
    AtpWorker,
)
from ringleaf.ina.atp.wire import (
    CONGESTED,
    LATE,
    LATE_GRADIENT,
    MESSAGE_AT,
    PROPOSAL_AT,
    RACK_AT,
)
from ringleaf.ina.atp.wire import WANTED as WANTED_FLAG
from ringleaf.ina.congestion import ON_ROUND, tell_window

# A result's marks, in its position's row.
CONGESTED_MARK = 1
WANTED_MARK = 2
LATE_MARK = 4


@inline
def allow(worker: AtpWorker) -> None:
    """Decide on the blocks that the window has come to allow."""
    state = worker.state
    while state[LIMIT] < state[BASE] + state[ALLOWED]:
        row = (state[LIMIT] & (state[WINDOW] - 1)) * POSITION_WORDS
        worker.rows[row + IS_ALONE] = state[LIMIT] >= state[SHARE_END]
        state[LIMIT] += 1


@inline
def note_marks(worker: AtpWorker, position: int, head: Bytes) -> None:
    """Note the marks of a block's result, of which those on its way here are this worker's own."""
    marks = 0
    if head[MESSAGE_AT] & CONGESTED:
        marks |= CONGESTED_MARK
    elif head[IP_TOS_AT] & ECN_MASK == ECN_MARKED:
        worker.state[ECHO] = 1
    if head[RACK_AT] & WANTED_FLAG:
        marks |= WANTED_MARK
    if head[MESSAGE_AT] & LATE:
        marks |= LATE_MARK
    worker.rows[position * POSITION_WORDS + MARKS] = marks


@inline
def write_echoes(worker: AtpWorker, head: Bytes) -> None:
    """Mark a gradient as this worker's last results were."""
    state = worker.state
    if state[IS_LATE]:
        put16(head, PROPOSAL_AT, LATE_GRADIENT)
    if state[ECHO]:
        state[ECHO] = 0
        head[IP_TOS_AT] |= ECN_MARKED
        write_ip_checksum(head)


@inline
def advance(arena: Arena, at: int, worker: AtpWorker, now_ps: int) -> None:
    """Move the window's base past all blocks that have their results, and end rounds."""
    state, rows = worker.state, worker.rows
    while state[BASE] < state[NEXT]:
        row = (state[BASE] & (state[WINDOW] - 1)) * POSITION_WORDS
        if rows[row + SEQUENCE] != ANSWERED:
            break
        marks = rows[row + MARKS]
        state[RESULTS] += 1
        state[MARKED] += marks & CONGESTED_MARK
        state[WANTED] += marks // WANTED_MARK & 1
        state[TIMELY] += 1 - marks // LATE_MARK
        state[IS_LATE] = now_ps - state[ROUND_PS] > state[BASE_PS]
        state[BASE] += 1
        if state[BASE] == state[ROUND_END]:
            tell_window(arena, at + AGENT_WORDS + CONTROL, ON_ROUND, state[RESULTS], now_ps)
            state[MARKED] = state[RESULTS] = state[WANTED] = state[TIMELY] = 0
            state[ROUND_END], state[ROUND_PS] = state[LIMIT], now_ps
            state[SHARE_END] = state[LIMIT] + state[SHARE]
        allow(worker)
