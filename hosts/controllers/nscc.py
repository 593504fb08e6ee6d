"""NSCC, the sender's congestion control of Ultra Ethernet: delay and marks together.

As in ultraethernet/uet-htsim (40ccb05, uec.cpp), which says of itself that it is not the
specification. The queueing delay is the round trip less the least one; its target t is a round
trip, or three quarters of one where switches trim packets. An acknowledgement's mark and delay give
four cases:

    no mark, delay < t      proportional increase by t - delay; a fast one if there was next to no
                            delay for a window
    no mark, delay >= t     fair increase
    mark, delay >= t        multiplicative decrease, once per round trip, if the average is > t
    mark, delay < t         nothing (there, the path is changed; here, a connection has one)

Increases are summed up, and added every round trip or eight packets. Quick adapt: after a loss or a
delay above 4 t, a sender to which less than an eighth of its largest window got through in a round
trip and t goes on with as much. Then it ignores what is said of packets sent before.

Windows are in packets where the source has bytes, and constants in MSS are in packets. Starts with
its largest window, 1.5 BDP.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.marking import Marking
from ringleaf.core.products import scaled
from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.hosts.congestion.control import (
    DELAY_PS,
    IN_FLIGHT,
    LINE_BPS,
    MARKED,
    MOST_WINDOW,
    OWN,
    PACKET_BYTES,
    RTT_PS,
    TRIMS,
    WINDOW,
    Controller,
)
from ringleaf.hosts.congestion.windows import ONE_PACKET, set_window

CWND = OWN  # in units of 2**-20 packets, like the following three
MOST = OWN + 1
INCREASE = OWN + 2  # to be divided by CWND and added
BASE_PS = OWN + 3  # least round trip known
TARGET_PS = OWN + 4
AVERAGE_PS = OWN + 5  # of delays
SCALE = OWN + 6  # a: the network's BDP over 150 kB, in units of 2**-20
RECEIVED = OWN + 7  # packets since INCREASE was last added
ADJUSTED_PS = OWN + 8  # when
FAST_COUNT = OWN + 9  # packets without delay
IS_FAST = OWN + 10
CUT_PS = OWN + 11  # when the window was last cut
ACHIEVED = OWN + 12  # packets that got through in this period of quick adapt
PERIOD_END_PS = OWN + 13  # 0: before the first
WANTED = OWN + 14  # 1: quick adapt was asked for by a loss
TO_IGNORE = OWN + 15  # packets
IGNORED = OWN + 16

REFERENCE_BITS = 8 * 150_000  # 100 Gbit/s and 12 us
REFERENCE_PS = 12 * PS_PER_US
LARGEST = 1.5  # BDP
TRIMMED = 0.75  # of a round trip: the target with trimming
FAIR = 5  # fi, packets per a
PROPORTIONAL = 4  # alpha, packets per a and b
FAST = 0.25
FAST_PS = PS_PER_US
ETA = 0.15
GAMMA = 0.8
AVERAGED = 0.0125
ADJUST_PACKETS = 8
GATE = 8
MARKING = Marking(8, 29, 1.0)
"""From 0.2 to 0.8 BDP (main_uec.cpp), which is 36 packets of 4 KiB at 100 Gbit/s and 12 us."""


def begin(block: Words) -> None:
    """Set the target delay and the largest window, 1.5 BDP, and start with that window."""
    bits = int(block[LINE_BPS]) * int(block[RTT_PS]) // PS_PER_S
    block[BASE_PS] = block[RTT_PS]
    block[TARGET_PS] = int((TRIMMED if block[TRIMS] else 1) * int(block[RTT_PS]))
    block[SCALE] = bits * ONE_PACKET // REFERENCE_BITS
    most = int(LARGEST * bits * ONE_PACKET / (8 * int(block[PACKET_BYTES])))
    block[MOST] = min(max(most, ONE_PACKET), int(block[MOST_WINDOW]) * ONE_PACKET)
    block[CWND] = block[MOST]
    block[WINDOW] = block[CWND] // ONE_PACKET
    # As if the last cut were a round trip ago at time 0, so that the first one may come at any
    # time.
    block[CUT_PS] = -block[RTT_PS]


@inline
def change(words: Words, at: int, cwnd: int) -> None:
    """Set the window, in units of 2**-20 packets: from one packet to the largest window."""
    set_window(words, at, CWND, min(cwnd, words[at + MOST]), ONE_PACKET)


@inline
def average(words: Words, at: int, delay_ps: int, marked: bool) -> None:
    """Take a delay into the average; one that is late without a mark counts as a quarter RTT."""
    if not marked and delay_ps > words[at + TARGET_PS]:
        delay_ps = words[at + BASE_PS] // 4
    words[at + AVERAGE_PS] += int(AVERAGED * (delay_ps - words[at + AVERAGE_PS]))


@inline
def quick_adapt(words: Words, at: int, is_bad: bool, marked: bool, now_ps: int) -> bool:
    """Return whether an acknowledgement has no further effect."""
    is_over = False
    if words[at + IGNORED] < words[at + TO_IGNORE] and marked:
        is_over = True
    elif now_ps > words[at + PERIOD_END_PS]:
        achieved = words[at + ACHIEVED] * ONE_PACKET
        is_bad = is_bad or words[at + WANTED] > 0
        if words[at + PERIOD_END_PS] > 0 and is_bad and achieved < words[at + MOST] // GATE:
            change(words, at, achieved)
            words[at + TO_IGNORE], words[at + IGNORED] = words[at + IN_FLIGHT], 0
            words[at + WANTED] = 0
            is_over = True
        words[at + ACHIEVED] = 0
        words[at + PERIOD_END_PS] = now_ps + words[at + BASE_PS] + words[at + TARGET_PS]
    if is_over:
        words[at + INCREASE] = words[at + RECEIVED] = 0
    return is_over


@inline
def increase(words: Words, at: int, packets: int, delay_ps: int) -> None:
    """Increase the window, at once or later, after an acknowledgement without a mark."""
    scale, target_ps = words[at + SCALE], words[at + TARGET_PS]
    if delay_ps >= target_ps:
        words[at + INCREASE] += FAIR * scale * packets
        return
    if delay_ps < FAST_PS:
        words[at + FAST_COUNT] += packets * ONE_PACKET
        if words[at + FAST_COUNT] > words[at + CWND] or words[at + IS_FAST]:
            change(words, at, words[at + CWND] + int(FAST * scale * packets))
            words[at + IS_FAST] = 1
            return
    else:
        words[at + FAST_COUNT] = 0
    words[at + IS_FAST] = 0
    share = (target_ps - delay_ps) / REFERENCE_PS  # (t - delay) * b / t
    words[at + INCREASE] += int(PROPORTIONAL * scale * packets * share)


@inline
def decrease(words: Words, at: int, now_ps: int) -> None:
    """Cut the window if delays are above the target on average, once per round trip."""
    words[at + IS_FAST] = words[at + FAST_COUNT] = 0
    average_ps, target_ps = words[at + AVERAGE_PS], words[at + TARGET_PS]
    if average_ps > target_ps and now_ps - words[at + CUT_PS] > words[at + BASE_PS]:
        times = max(1 - GAMMA * (average_ps - target_ps) / average_ps, 0.5)
        change(words, at, int(words[at + CWND] * times))
        words[at + CUT_PS] = now_ps


@inline
def adjust(words: Words, at: int, now_ps: int) -> None:
    """Add the increases that were summed up, and a little for fairness each round trip."""
    cwnd = words[at + CWND]
    cwnd += scaled(words[at + INCREASE], ONE_PACKET, cwnd)
    if now_ps - words[at + ADJUSTED_PS] >= words[at + RTT_PS]:
        cwnd += int(ETA * words[at + SCALE])
        words[at + ADJUSTED_PS] = now_ps
    change(words, at, cwnd)
    words[at + INCREASE] = words[at + RECEIVED] = 0


@handler
def on_ack(arena: Arena, at: int, packets: int, now_ps: int) -> int:
    """Take an acknowledgement: quick adapt first, then the case that its mark and delay select.

    Increases are collected, and applied after a round trip or eight packets.
    """
    words = arena.words
    marked = words[at + MARKED] > 0
    for place in (ACHIEVED, RECEIVED, IGNORED):
        words[at + place] += packets
    delay_ps = 0
    if words[at + DELAY_PS] > 0:
        words[at + BASE_PS] = min(words[at + BASE_PS], words[at + DELAY_PS])
        delay_ps = words[at + DELAY_PS] - words[at + BASE_PS]
        average(words, at, delay_ps, marked)
    if quick_adapt(words, at, delay_ps > 4 * words[at + TARGET_PS], marked, now_ps):
        return 0
    if not marked:
        increase(words, at, packets, delay_ps)
    elif delay_ps >= words[at + TARGET_PS]:
        decrease(words, at, now_ps)
    late = now_ps - words[at + ADJUSTED_PS] > words[at + RTT_PS]
    if late or words[at + RECEIVED] > ADJUST_PACKETS:
        adjust(words, at, now_ps)
    return 0


@handler
def on_loss(arena: Arena, at: int, _timeout: int, now_ps: int) -> int:
    """Handle a loss as the source does a trimmed packet."""
    words = arena.words
    words[at + IGNORED] += 1
    words[at + WANTED] = 1
    if not quick_adapt(words, at, True, True, now_ps):
        change(words, at, words[at + CWND] - ONE_PACKET)
    return 0


CONTROLLER = Controller(
    "nscc",
    begin,
    on_ack=on_ack,
    on_loss=on_loss,
    marking=MARKING,
    marks_bytes=True,
    timed=True,
    counts_cuts=True,
)
