"""TIMELY: the rate follows the gradient of the round trip.

Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, section 4.3,
as the HPCC paper's simulator has it (alibaba-edu/High-Precision-Congestion-Control): once per
window of data, the change of the round trip is averaged with weight 0.875 and divided by the least
round trip. A round trip below 50 us raises the rate, one above 500 us cuts it by 0.8 * (1 - 500 us
/ rtt), between them a falling one raises and a rising one cuts by 0.8 of the gradient. After five
raises in a row, they are larger.

The three times are the simulator's for a least round trip of 20 us, and in proportion where this
network's is longer. The steps up are a parameter of ours: a thousandth of the line's rate, and ten
times as much after five raises; the simulator's are absolute, 5 and 50 Mbit/s. Losses are ignored.
When the simulator updates its rate, once per window, is from memory of it.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.units import PS_PER_US
from ringleaf.hosts.congestion.control import (
    DELAY_PS,
    IN_FLIGHT,
    LINE_BPS,
    OWN,
    RATE_BPS,
    RTT_PS,
    Controller,
)

CURRENT_BPS = OWN
LAST_PS = OWN + 1  # the round trip before; 0: none yet
CHANGE_PS = OWN + 2  # average of the changes
STAGE = OWN + 3  # raises in a row
LEFT = OWN + 4  # packets until the next update
LEAST_TRIP_PS = OWN + 5

LEAST_PS = 20 * PS_PER_US
LOW = 2.5  # T_low, 50 us, in least round trips
HIGH = 25  # T_high, 500 us
WEIGHT = 0.875
BETA = 0.8
STAGES = 5
ADDITIVE = 1000  # the line's rate over a step up
HYPER = 100
LEAST = 1000  # over the least rate


def begin(block: Words) -> None:
    """Start at the line's rate; the least round trip is the network's, but at least 20 us."""
    block[CURRENT_BPS] = block[LINE_BPS]
    block[LEAST_TRIP_PS] = max(LEAST_PS, block[RTT_PS])


@inline
def factor(delay_ps: int, least_ps: int, change_ps: int) -> float:
    """Return what the rate is multiplied by; 1 if it is raised."""
    if delay_ps < LOW * least_ps:
        return 1.0
    if delay_ps > HIGH * least_ps:
        return 1 - BETA * (1 - HIGH * least_ps / delay_ps)
    return 1.0 if change_ps <= 0 else max(0.0, 1 - BETA * change_ps / least_ps)


@inline
def update(words: Words, at: int, delay_ps: int) -> None:
    """Change the rate after a round trip."""
    line_bps = words[at + LINE_BPS]
    times = factor(delay_ps, words[at + LEAST_TRIP_PS], words[at + CHANGE_PS])
    rate_bps = words[at + CURRENT_BPS]
    if times == 1:
        rate_bps += line_bps // (ADDITIVE if words[at + STAGE] < STAGES else HYPER)
        words[at + STAGE] += 1
    else:
        rate_bps = int(rate_bps * times)
        words[at + STAGE] = 0
    rate_bps = min(max(rate_bps, line_bps // LEAST), line_bps)
    words[at + CURRENT_BPS] = rate_bps
    words[at + RATE_BPS] = 0 if rate_bps == line_bps else rate_bps


@handler
def on_ack(arena: Arena, at: int, packets: int, _now_ps: int) -> int:
    """Once per window of data, average the change of the round trip and set the rate by it."""
    words = arena.words
    words[at + LEFT] -= packets
    delay_ps = words[at + DELAY_PS]
    if delay_ps <= 0 or words[at + LEFT] > 0:
        return 0
    # The next update comes when all that is in flight now is acknowledged: once per window of data.
    words[at + LEFT] = max(words[at + IN_FLIGHT], 1)
    if words[at + LAST_PS] > 0:
        change = delay_ps - words[at + LAST_PS]
        words[at + CHANGE_PS] = int((1 - WEIGHT) * words[at + CHANGE_PS] + WEIGHT * change)
        update(words, at, delay_ps)
    words[at + LAST_PS] = delay_ps
    return 0


CONTROLLER = Controller("timely", begin, on_ack=on_ack, timed=True)
