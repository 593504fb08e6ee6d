"""DCQCN as network cards have it, with its numbers as parameters.

As the HPCC paper's simulator models Mellanox's cards
(alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc). In contrast to the paper
(`controllers/dcqcn.py`), there is no byte counter, alpha has a timer of its own, and so have cuts:
however many notices come, the rate is cut once per gap. With the clamp, the target is the rate
before each cut; without it, only before the first cut since the rate was raised.

Numbers are those of the cards, so they are absolute, whatever the line's rate. The sender starts at
the line's rate. An acknowledgement with marks is the notice, as in the simulator.

How its timers start and stop beyond what these numbers say is from memory of that simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.marking import Marking
from ringleaf.core.products import scaled
from ringleaf.core.units import FOREVER_PS, PS_PER_US
from ringleaf.hosts.congestion.control import (
    LINE_BPS,
    MARKED,
    OWN,
    RATE_BPS,
    TIMER_AT_PS,
    Controller,
)

CURRENT_BPS = OWN
TARGET_BPS = OWN + 1
ALPHA = OWN + 2  # in units of 2**-20
ALPHA_PS = OWN + 3  # when its timer last expired
NOTED = OWN + 4  # whether a notice has come since
CUT_DUE_PS = OWN + 5  # FOREVER_PS: no notice has come since the last cut
CUT_PS = OWN + 6  # end of the last gap between cuts
RAISE_PS = OWN + 7  # when the rate is raised next
STAGE = OWN + 8  # raises since the last cut
HAS_NOTICE = OWN + 9  # whether a notice has ever come
# Parameters.
GAIN = OWN + 16  # g, in units of 2**-20
ALPHA_STEP_PS = OWN + 17
RAISE_STEP_PS = OWN + 18
RECOVERY = OWN + 19  # F
ADDITIVE_BPS = OWN + 20
HYPER_BPS = OWN + 21
CLAMP = OWN + 22

ONE = 1 << 20
CUT_GAP_PS = 4 * PS_PER_US
LEAST_BPS = 100_000_000
MOST_DECAYS = 1 << 14  # after which nothing is left of alpha


@dataclass(frozen=True, slots=True)
class CardParameters:
    """The parameters of a card; rates in bits per second."""

    gain: float  # g
    alpha_us: int  # alpha's timer
    raise_us: int  # the timer of raises
    recovery_steps: int  # F
    additive_bps: int  # R_AI
    hyper_bps: int  # R_HAI
    clamp: bool  # whether each cut sets the target


def nic_controller(name: str, numbers: CardParameters, marking: Marking) -> Controller:
    """Return DCQCN with these numbers."""
    return Controller(
        name,
        _beginning(numbers),
        on_ack=on_ack,
        on_timer=on_timer,
        marking=marking,
        marks_bytes=True,
    )


def _beginning(numbers: CardParameters) -> Callable[[Words], None]:
    def begin(block: Words) -> None:
        block[CURRENT_BPS] = block[TARGET_BPS] = block[LINE_BPS]
        block[CUT_DUE_PS] = block[RAISE_PS] = FOREVER_PS
        block[GAIN] = round(numbers.gain * ONE)
        block[ALPHA_STEP_PS] = numbers.alpha_us * PS_PER_US
        block[RAISE_STEP_PS] = numbers.raise_us * PS_PER_US
        block[RECOVERY] = numbers.recovery_steps
        block[ADDITIVE_BPS], block[HYPER_BPS] = numbers.additive_bps, numbers.hyper_bps
        block[CLAMP] = numbers.clamp

    return begin


@inline
def update_alpha(words: Words, at: int, now_ps: int) -> None:
    """Do what alpha's timer would have: it grows after a step with a notice, else it shrinks."""
    steps = (now_ps - words[at + ALPHA_PS]) // words[at + ALPHA_STEP_PS]
    for _ in range(min(steps, MOST_DECAYS)):
        gained = words[at + GAIN] * words[at + NOTED]
        words[at + ALPHA] += gained - words[at + ALPHA] * words[at + GAIN] // ONE
        words[at + NOTED] = 0
    words[at + ALPHA_PS] += steps * words[at + ALPHA_STEP_PS]


@inline
def set_timer(words: Words, at: int) -> None:
    """Set TIMER_AT_PS to the earlier of the next cut and raise; FOREVER_PS if neither is due."""
    words[at + TIMER_AT_PS] = min(words[at + CUT_DUE_PS], words[at + RAISE_PS])


@inline
def cut(words: Words, at: int, now_ps: int) -> None:
    """Cut the rate by half of alpha."""
    line_bps, rate_bps = words[at + LINE_BPS], words[at + CURRENT_BPS]
    if words[at + CLAMP] or words[at + STAGE] > 0:
        words[at + TARGET_BPS] = rate_bps
    rate_bps -= scaled(rate_bps, words[at + ALPHA], 2 * ONE)
    rate_bps = min(max(rate_bps, LEAST_BPS), line_bps)
    words[at + CURRENT_BPS] = words[at + RATE_BPS] = rate_bps
    words[at + STAGE] = 0
    words[at + CUT_PS], words[at + CUT_DUE_PS] = now_ps, FOREVER_PS
    words[at + RAISE_PS] = now_ps + words[at + RAISE_STEP_PS]


@inline
def raise_rate(words: Words, at: int, now_ps: int) -> None:
    """Raise the rate: half-way to the target, which grows once that was done F times."""
    line_bps, stage = words[at + LINE_BPS], words[at + STAGE]
    if stage == words[at + RECOVERY]:
        words[at + TARGET_BPS] += words[at + ADDITIVE_BPS]
    elif stage > words[at + RECOVERY]:
        words[at + TARGET_BPS] += words[at + HYPER_BPS]
    words[at + TARGET_BPS] = min(words[at + TARGET_BPS], line_bps)
    rate_bps = (words[at + CURRENT_BPS] + words[at + TARGET_BPS]) // 2
    words[at + STAGE] += 1
    words[at + RAISE_PS] = now_ps + words[at + RAISE_STEP_PS]
    if rate_bps >= line_bps - line_bps // 1000:
        rate_bps = line_bps  # nearly the line's rate: no timer is needed
        words[at + TARGET_BPS], words[at + RAISE_PS] = line_bps, FOREVER_PS
    words[at + CURRENT_BPS] = rate_bps
    words[at + RATE_BPS] = 0 if rate_bps == line_bps else rate_bps


@handler
def on_ack(arena: Arena, at: int, _packets: int, now_ps: int) -> int:
    """Take an acknowledgement with marks as a notice, and schedule a cut unless one is due already.

    The first notice starts alpha's timer; before it, a sender keeps no time at all.
    """
    words = arena.words
    if words[at + MARKED] == 0:
        return 0
    if not words[at + HAS_NOTICE]:  # the first notice of all: timers start
        words[at + HAS_NOTICE], words[at + ALPHA] = 1, ONE
        words[at + ALPHA_PS] = words[at + CUT_PS] = now_ps
    else:
        update_alpha(words, at, now_ps)
        words[at + NOTED] = 1
    if words[at + CUT_DUE_PS] == FOREVER_PS:
        # A cut is due at the end of a gap, counted from the last cut, so there is one per gap at
        # most.
        gaps = (now_ps - words[at + CUT_PS]) // CUT_GAP_PS + 1
        words[at + CUT_DUE_PS] = words[at + CUT_PS] + gaps * CUT_GAP_PS
    set_timer(words, at)
    return 0


@handler
def on_timer(arena: Arena, at: int, _argument: int, now_ps: int) -> int:
    """Cut the rate if a cut is due, else raise it; a cut restarts the timer of raises."""
    words = arena.words
    if words[at + CUT_DUE_PS] <= now_ps:
        update_alpha(words, at, now_ps)
        cut(words, at, now_ps)
    elif words[at + RAISE_PS] <= now_ps:
        raise_rate(words, at, now_ps)
    set_timer(words, at)
    return 0
