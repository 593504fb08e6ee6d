"""A2TP's two windows: one for the link, one for the switches' aggregators.

Once per round trip, with b the smoothed portion of results whose aggregators others wanted, c the
smoothed degree of straggling, and H a threshold:

    SHARE  *= 1 - (b - H)^c / (2 - H)   if any result was wanted and b > H, else += 1
    WINDOW *= 1 - a / 2                 if any result was marked (ECN), else += 1

with a the smoothed portion of marked results. SHARE is at most WINDOW. The degree of straggling is
the portion of a round's results that came within a round trip without queues; a job whose results
are late, as it has a slow worker, gives up more of its aggregators. Losses change nothing.

Fixed by the source, the released code: the formulas, gains of 1/8 (of a and b) and 1/64 (of c),
H = 0.1, steps of a packet, and that windows are whole packets. The preset `a2tp-ns3` has the
constants of the same group's ns-3 model. The paper itself was not read.

Chosen here: the first windows are a path's capacity, and the most is twice that, as ATP's; b counts
up to 1; a straggler is one however late it is (the code forgets results later than 100 us).

Source:
    A2TP, EuroSys 2023: its released code, github.com/CSU-NetLab/A2TP-Eurosys2023 (the file
    common/CC_manager.h).
"""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler
from ringleaf.ina.congestion import MARKED, MOST_WINDOW, OWN, SHARE, TIMELY, WANTED, WINDOW, Window

# All but counts are in units of 2**-20.
MARKS = OWN  # a: smoothed portion of marked results
WANTS = OWN + 1  # b: smoothed portion of results that were wanted
HASTE = OWN + 2  # c: smoothed portion of results that came in time
GAIN = OWN + 3  # of a and b
THRESHOLD = OWN + 4  # H
DIVISOR = OWN + 5  # of the decrease of SHARE
STEP = OWN + 6  # packets by which a window grows

ONE = 1 << 20
HASTE_GAIN = ONE // 64


def beginning(gain: float, threshold: float, divisor: float, step: int) -> Callable[[Words], None]:
    """Return a function that sets a new block's words for these constants."""

    def begin(block: Words) -> None:
        block[SHARE] = block[WINDOW]
        block[MARKS], block[WANTS], block[HASTE] = 0, 0, ONE
        block[GAIN], block[THRESHOLD] = round(gain * ONE), round(threshold * ONE)
        block[DIVISOR], block[STEP] = round(divisor * ONE), step

    return begin


@handler
def on_round(arena: Arena, at: int, results: int, _now_ps: int) -> int:
    """Update both windows at the end of a round trip, in which so many results came."""
    words = arena.words
    window, share, gain = words[at + WINDOW], words[at + SHARE], words[at + GAIN]
    timely = words[at + TIMELY] * ONE // max(results, 1)
    marks = min(words[at + MARKED] * ONE // window, ONE)
    wants = min(words[at + WANTED] * ONE // share, ONE)
    words[at + HASTE] += (timely - words[at + HASTE]) * HASTE_GAIN // ONE
    words[at + MARKS] += (marks - words[at + MARKS]) * gain // ONE
    words[at + WANTS] += (wants - words[at + WANTS]) * gain // ONE
    above = words[at + WANTS] - words[at + THRESHOLD]
    if words[at + WANTED] > 0 and above > 0:
        power = (above / ONE) ** (words[at + HASTE] / ONE)
        share = int(share * (1 - power * ONE / words[at + DIVISOR]))
    else:
        share += words[at + STEP]
    if words[at + MARKED] > 0:
        window = int(window * (2 * ONE - words[at + MARKS]) // (2 * ONE))
    else:
        window += words[at + STEP]
    words[at + WINDOW] = min(max(window, 1), words[at + MOST_WINDOW])
    words[at + SHARE] = min(max(share, 1), words[at + WINDOW])
    return 0


INA_WINDOW = Window("a2tp", beginning(1 / 8, 0.1, 1.9, 1), on_round=on_round, has_share=True)
