"""The queue pairs of an agent that may send, owe an answer, or wait for a timer."""

from __future__ import annotations

from ringleaf.core.arena import Arena
from ringleaf.core.compiled import inline
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import PAUSED, READY, TIMER_AT_PS
from ringleaf.hosts.congestion.control import CNP_DUE
from ringleaf.hosts.fifo import FIFO_COUNT, FIFO_WORDS, fifo_pop, fifo_push, open_fifo
from ringleaf.hosts.rc.state import (
    ACKED_PSN,
    ALLOWED,
    ANSWERS_AT,
    CONTROL_AT,
    CUTS,
    DEADLINE_PS,
    FREE_AT_PS,
    HOLD_UNTIL_PS,
    IN_SENDERS,
    LEVELS,
    LIMIT,
    LONGEST_TIMEOUT,
    MAX_BACKOFF,
    MIN_TIMEOUT_PS,
    NEXT_PSN,
    POSTED_PSN,
    PRIORITY,
    PROBING,
    QUIET_PS,
    REPATH_AFTER,
    RETRY_END,
    SENDERS_AT,
    SENDS_CURRENT,
    SYNDROME,
    TIMEOUT_PS,
    UNANSWERED,
    Qp,
)

PATHS = 32
"""Paths that are tried before timeouts back off."""


@inline
def has_credit(qp: Qp) -> bool:
    """Return whether the peer has given credit for the message that is to be sent."""
    return bool(qp.state[SENDS_CURRENT] < qp.state[LIMIT])


@inline
def sendable(qp: Qp, now_ps: int) -> bool:
    """Return whether window, pacing, credits and RNR wait let the QP send a packet now."""
    state = qp.state
    return (
        state[NEXT_PSN] < state[POSTED_PSN]
        and state[NEXT_PSN] < state[RETRY_END]
        and state[NEXT_PSN] - state[ACKED_PSN] < state[ALLOWED]
        and state[FREE_AT_PS] <= now_ps
        and state[HOLD_UNTIL_PS] <= now_ps
        and has_credit(qp)
    )


@inline
def offer(arena: Arena, at: int, number: int, qp: Qp, now_ps: int) -> None:
    """Queue the QP for sending, once, if it has something to send."""
    state = qp.state
    if sendable(qp, now_ps) or state[PROBING]:
        # However many events offer it, a queue pair is queued once, and has one turn as the others.
        if not state[IN_SENDERS]:
            state[IN_SENDERS] = 1
            level = state[PRIORITY]
            fifo_push(open_fifo(arena, at + SENDERS_AT + level * FIFO_WORDS), number)
            arena.words[at + LEVELS] |= 1 << level
            arena.words[at + READY] = 1
    elif state[NEXT_PSN] < state[POSTED_PSN]:
        if state[FREE_AT_PS] > now_ps:
            arena.words[at + TIMER_AT_PS] = min(arena.words[at + TIMER_AT_PS], state[FREE_AT_PS])
        elif state[DEADLINE_PS] == FOREVER_PS:
            await_answer(arena, at, qp, now_ps)  # no other event would queue it again


@inline
def open_levels(arena: Arena, at: int) -> int:
    """Return a bit per priority whose fifo of senders has any, unless it is paused."""
    return arena.words[at + LEVELS] & ~arena.words[at + PAUSED]


@inline
def take_sender(arena: Arena, at: int) -> int:
    """Return the next queue pair of the highest priority that may send; there must be one."""
    level = 0
    above = open_levels(arena, at) >> 1
    # The highest bit that is set: a larger number is more urgent, as with DSCP's class selectors.
    while above > 0:
        level += 1
        above >>= 1
    senders = open_fifo(arena, at + SENDERS_AT + level * FIFO_WORDS)
    number = fifo_pop(senders)
    if senders.state[FIFO_COUNT] == 0:
        arena.words[at + LEVELS] ^= 1 << level
    return number


@inline
def is_owing(arena: Arena, qp: Qp) -> bool:
    """Return whether an answer of the QP waits to be sent."""
    control = qp.state[CONTROL_AT]
    return (
        qp.state[SYNDROME] >= 0
        or qp.state[CUTS] > 0
        or bool(control and arena.words[control + CNP_DUE])
    )


@inline
def owe(arena: Arena, at: int, number: int, qp: Qp, syndrome: int) -> None:
    """Queue an acknowledgement; a NAK replaces an ACK that still waits to be sent."""
    if not is_owing(arena, qp):
        fifo_push(open_fifo(arena, at + ANSWERS_AT), number)
        arena.words[at + READY] = 1
    # The codes grow with what they tell: none (-1), ACK, RNR NAK, sequence NAK.
    qp.state[SYNDROME] = max(qp.state[SYNDROME], syndrome)


@inline
def await_answer(arena: Arena, at: int, qp: Qp, now_ps: int) -> None:
    """Set the deadline to a timeout from now, doubled for each probe without answer.

    Those that lead to other paths are not counted up to a number of paths, as what is lost on one
    says little about the next. The network's quiet time is added once, and not doubled.
    """
    in_vain = max(qp.state[UNANSWERED] - PATHS * arena.words[at + REPATH_AFTER], 0)
    most_ps = LONGEST_TIMEOUT * arena.words[at + MIN_TIMEOUT_PS]
    # Shifts are bounded, as 64 bits would overflow long before.
    backed_off_ps = qp.state[TIMEOUT_PS] << min(in_vain, 16)
    timeout_ps = min(backed_off_ps, longest_gap_ps(arena, at, qp), most_ps)
    set_deadline(arena, at, qp, now_ps + arena.words[at + QUIET_PS] + timeout_ps)


@inline
def longest_gap_ps(arena: Arena, at: int, qp: Qp) -> int:
    """Return the time that timeouts back off to."""
    return max(qp.state[TIMEOUT_PS], MAX_BACKOFF * arena.words[at + MIN_TIMEOUT_PS])


@inline
def set_deadline(arena: Arena, at: int, qp: Qp, deadline_ps: int) -> None:
    """Set a queue pair's deadline, and the agent's timer to it if that is earlier."""
    qp.state[DEADLINE_PS] = deadline_ps
    arena.words[at + TIMER_AT_PS] = min(arena.words[at + TIMER_AT_PS], deadline_ps)
