"""Swift: the window follows the difference between the round trip and a target delay.

Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
SIGCOMM 2020, section 3. Numbers are those of its model in csg-htsim (Broadcom, swift.cpp), whose
authors call them guesses: the target is 20 us, and a share of it more per switch, and more the
smaller the window is (flow scaling). Below it the window grows by one packet per round trip; above
it it shrinks once per round trip, by at most half. A window below one packet is a pause between
packets.

Two things are ours. A network with a round trip above 16 us gets a base of 5/4 of it, because a
target below the empty network's delay could not be met. Window and delay are the transport's: the
delay is from the time at which a packet goes out to that of its acknowledgement, so it contains the
way back and none of the sending host's queue.
"""

from __future__ import annotations

import math

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.units import PS_PER_S, PS_PER_US
from ringleaf.hosts.congestion.control import (
    DELAY_PS,
    HOPS,
    LINE_BPS,
    OWN,
    PACKET_BYTES,
    RATE_BPS,
    RTT_PS,
    WINDOW,
    Controller,
)
from ringleaf.hosts.congestion.windows import ONE_PACKET, set_window

CWND = OWN  # the window, in units of 2**-20 packets
BASE_PS = OWN + 1  # target delay without hops and flow scaling
CUT_PS = OWN + 2  # when the window was last cut
TRIP_PS = OWN + 3  # the newest round trip known
TIMEOUTS = OWN + 4  # in a row

LEAST_BASE_PS = 20 * PS_PER_US
HOP_SHARE = 6.55  # the base over what a hop adds
RANGE = 5  # most that flow scaling adds, in bases
LEAST_SCALED, MOST_SCALED = 0.1, 100.0  # packets between which flow scaling works
GAIN = 0.8  # beta
MOST_CUT = 0.5
LEAST = ONE_PACKET * 10 // 4096  # 10 bytes
MOST_TIMEOUTS = 5


def begin(block: Words) -> None:
    """Start with the whole window, and set the base target delay in ps."""
    block[CWND] = block[WINDOW] * ONE_PACKET
    block[BASE_PS] = max(LEAST_BASE_PS, int(block[RTT_PS]) * 5 // 4)
    block[TRIP_PS] = block[RTT_PS]
    # As if the last cut were a round trip ago at time 0, so that the first one may come at any
    # time.
    block[CUT_PS] = -block[RTT_PS]


@inline
def target_ps(words: Words, at: int) -> int:
    """Return the target delay (section 3.5)."""
    base_ps = words[at + BASE_PS]
    slope = RANGE * base_ps / (1 / math.sqrt(LEAST_SCALED) - 1 / math.sqrt(MOST_SCALED))
    packets = words[at + CWND] / ONE_PACKET
    scaled = slope / math.sqrt(packets) - slope / math.sqrt(MOST_SCALED)
    scaled = min(max(scaled, 0.0), float(RANGE * base_ps))
    return int(base_ps + words[at + HOPS] * base_ps / HOP_SHARE + scaled)


@inline
def change(words: Words, at: int, cwnd: int) -> None:
    """Set the window; below one packet, packets go at one per TRIP_PS / window."""
    set_window(words, at, CWND, cwnd, LEAST)
    rate_bps = 0
    if words[at + CWND] < ONE_PACKET:
        share = words[at + CWND] / ONE_PACKET
        rate = 8 * words[at + PACKET_BYTES] * share * PS_PER_S / words[at + TRIP_PS]
        rate_bps = min(max(int(rate), 1), words[at + LINE_BPS])
    words[at + RATE_BPS] = rate_bps


@inline
def cut(words: Words, at: int, factor: float, now_ps: int) -> None:
    """Cut the window, unless that was done less than a round trip ago."""
    if now_ps - words[at + CUT_PS] >= words[at + TRIP_PS]:
        words[at + CUT_PS] = now_ps
        change(words, at, int(words[at + CWND] * factor))


@handler
def on_ack(arena: Arena, at: int, packets: int, now_ps: int) -> int:
    """Let the window grow if the delay is below the target, and cut it otherwise.

    A window below one packet grows by a whole packet for each one that is acknowledged.
    """
    words = arena.words
    words[at + TIMEOUTS] = 0
    delay_ps = words[at + DELAY_PS]
    if delay_ps <= 0:
        return 0
    words[at + TRIP_PS] = delay_ps
    limit_ps = target_ps(words, at)
    cwnd = words[at + CWND]
    if delay_ps < limit_ps:
        growth = packets * ONE_PACKET
        change(words, at, cwnd + (growth * ONE_PACKET // cwnd if cwnd >= ONE_PACKET else growth))
    else:
        excess = GAIN * (delay_ps - limit_ps) / delay_ps
        cut(words, at, max(1 - excess, 1 - MOST_CUT), now_ps)
    return 0


@handler
def on_loss(arena: Arena, at: int, timeout: int, now_ps: int) -> int:
    """Cut the window by the largest share, or to the least one after several timeouts in a row."""
    words = arena.words
    words[at + TIMEOUTS] += timeout
    if words[at + TIMEOUTS] >= MOST_TIMEOUTS:
        change(words, at, LEAST)
    else:
        cut(words, at, 1 - MOST_CUT, now_ps)
    return 0


CONTROLLER = Controller("swift", begin, on_ack=on_ack, on_loss=on_loss, timed=True, routed=True)
