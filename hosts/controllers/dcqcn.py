"""DCQCN: the rate at which a queue pair is paced, cut by notifications from the receiver.

Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3: the
receiver of marked packets sends a CNP at most every 50 us. A CNP makes the current rate the
target, and cuts the current one by alpha / 2; alpha grows with each CNP and shrinks in periods
without. A timer and a byte counter raise the rate again: five times half-way to the target (fast
recovery), then with a target that grows additively, and faster once both have come that far.

Steps are the paper's for 40 Gbit/s in proportion to the line's rate, and times are at least a
round trip, so that slow lines behave alike. It reacts to no losses: it is meant for lossless
networks. The window is only a bound of the packets in flight.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.marking import Marking
from ringleaf.core.products import scaled
from ringleaf.core.units import FOREVER_PS, PS_PER_US
from ringleaf.hosts.congestion.control import (
    GAIN,
    LINE_BPS,
    ONE_GAIN,
    OWN,
    PACKET_BYTES,
    RATE_BPS,
    RTT_PS,
    TIMER_AT_PS,
    Controller,
)

CURRENT_BPS = OWN
TARGET_BPS = OWN + 1
ALPHA = OWN + 2  # in units of 2**-20
CNP_PS = OWN + 3  # when alpha was last brought up to date
TIMER_STEPS = OWN + 4  # since the last CNP
COUNTER_STEPS = OWN + 5
COUNTED = OWN + 6  # bytes of the byte counter's present step

MARKING = Marking(3, 122, 0.04)
"""The paper's Kmin, Kmax and Pmax, 5 kB, 200 kB and 1 % at 40 Gbit/s with packets of 1 kB.

In proportion to 100 Gbit/s, and as many marks per byte with packets of 4 KiB.
"""

ONE = 1 << 20
GAIN_SHIFT = 8  # g = 1/256
MOST_DECAYS = 4096  # after which nothing is left of alpha
STEP_PS = 55 * PS_PER_US
CNP_GAP_PS = 50 * PS_PER_US
COUNTER_BYTES = 2441 * 4178  # 10 MB in packets of 4 KiB, on the line
RECOVERY_STEPS = 5  # F
ADDITIVE = 1000  # the line's rate over R_AI
HYPER = 100  # over R_HAI
LEAST = 1000  # over the least rate


def begin(block: Words) -> None:
    """Start at the line's rate with alpha = 1, so that the first CNP halves the rate."""
    block[CURRENT_BPS] = block[TARGET_BPS] = block[LINE_BPS]
    block[ALPHA], block[CNP_PS] = ONE, FOREVER_PS  # alpha stays until a CNP has come


@inline
def step_ps(words: Words, at: int) -> int:
    """Return the period of the rate timer, and of alpha's decay: 55 us, or a longer round trip."""
    return max(STEP_PS, words[at + RTT_PS])


@inline
def set_rate(words: Words, at: int, rate_bps: int, now_ps: int) -> None:
    """Pace at a rate; at nearly the line's rate there is no pacing, and no timer is needed."""
    line_bps = words[at + LINE_BPS]
    if rate_bps >= line_bps - line_bps // ADDITIVE:
        words[at + CURRENT_BPS] = words[at + TARGET_BPS] = line_bps
        words[at + RATE_BPS] = 0
        words[at + TIMER_AT_PS] = FOREVER_PS
        return
    rate_bps = max(rate_bps, line_bps // LEAST)
    words[at + CURRENT_BPS] = words[at + RATE_BPS] = rate_bps
    if words[at + TIMER_AT_PS] == FOREVER_PS:
        words[at + TIMER_AT_PS] = now_ps + step_ps(words, at)


@inline
def decay(words: Words, at: int, now_ps: int) -> None:
    """Bring alpha up to date: it shrinks once per step without a CNP."""
    steps = (now_ps - words[at + CNP_PS]) // step_ps(words, at)
    for _ in range(min(steps, MOST_DECAYS)):
        words[at + ALPHA] -= words[at + ALPHA] >> GAIN_SHIFT
    words[at + CNP_PS] = now_ps


@inline
def raise_rate(words: Words, at: int, now_ps: int) -> None:
    """Raise the rate by one step, of the timer or the counter."""
    timer, counter = words[at + TIMER_STEPS], words[at + COUNTER_STEPS]
    line_bps = words[at + LINE_BPS]
    if min(timer, counter) > RECOVERY_STEPS:
        words[at + TARGET_BPS] += (
            (min(timer, counter) - RECOVERY_STEPS) * (line_bps // HYPER) * words[at + GAIN]
        ) // ONE_GAIN
    elif max(timer, counter) > RECOVERY_STEPS:
        words[at + TARGET_BPS] += line_bps // ADDITIVE * words[at + GAIN] // ONE_GAIN
    words[at + TARGET_BPS] = min(words[at + TARGET_BPS], line_bps)
    set_rate(words, at, (words[at + TARGET_BPS] + words[at + CURRENT_BPS]) // 2, now_ps)


@handler
def on_cnp(arena: Arena, at: int, _argument: int, now_ps: int) -> int:
    """Cut the rate by alpha / 2, let alpha grow, and restart the timer and the byte counter."""
    words = arena.words
    decay(words, at, now_ps)
    current = words[at + CURRENT_BPS]
    words[at + TARGET_BPS] = current
    cut = scaled(current, words[at + ALPHA], 2 * ONE)
    words[at + ALPHA] += (ONE - words[at + ALPHA]) >> GAIN_SHIFT
    words[at + TIMER_STEPS] = words[at + COUNTER_STEPS] = words[at + COUNTED] = 0
    words[at + TIMER_AT_PS] = now_ps + step_ps(words, at)
    set_rate(words, at, current - cut, now_ps)
    return 0


@handler
def on_timer(arena: Arena, at: int, _argument: int, now_ps: int) -> int:
    """Count a step of the timer, and raise the rate."""
    words = arena.words
    words[at + TIMER_STEPS] += 1
    raise_rate(words, at, now_ps)
    return 0


@handler
def on_ack(arena: Arena, at: int, packets: int, now_ps: int) -> int:
    """Count packets, and raise the rate once per 10 MB, unless it is the line's already."""
    words = arena.words
    if words[at + RATE_BPS] == 0:
        return 0
    words[at + COUNTED] += packets * words[at + PACKET_BYTES]
    if words[at + COUNTED] >= COUNTER_BYTES:
        words[at + COUNTED] -= COUNTER_BYTES
        words[at + COUNTER_STEPS] += 1
        raise_rate(words, at, now_ps)
    return 0


CONTROLLER = Controller(
    "dcqcn",
    begin,
    on_ack=on_ack,
    on_cnp=on_cnp,
    on_timer=on_timer,
    cnp_gap_ps=CNP_GAP_PS,
    marking=MARKING,
    marks_bytes=True,
    has_gain=True,
)
