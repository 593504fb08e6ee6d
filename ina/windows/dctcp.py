"""DCTCP, PANAMA's way: the window shrinks in proportion to how many results met congestion.

Once per round trip, alpha = (1 - g) * alpha + g * F, where F is the fraction of its results that
were marked; if any was, the window is cut by alpha / 2, else it grows by a packet. As with hosts'
DCTCP, alpha is 1 at first, and the window begins as large as may be. Losses change nothing: each
worker learns of all workers' losses, and only marks indicate congestion.

Source:
    Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3, which fixes g = 1/16.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler
from ringleaf.ina.congestion import MARKED, MOST_WINDOW, OWN, WINDOW, Window

CWND = OWN  # the window, in units of 2**-16 packets
ALPHA = OWN + 1  # in units of 2**-20

ONE_PACKET = 1 << 16
ONE = 1 << 20
GAIN_SHIFT = 4


def begin(block: Words) -> None:
    """Start with the largest window, and with alpha = 1."""
    block[WINDOW] = block[MOST_WINDOW]
    block[CWND] = block[WINDOW] * ONE_PACKET
    block[ALPHA] = ONE


@handler
def on_round(arena: Arena, at: int, results: int, _now_ps: int) -> int:
    """Take the marked share of a round trip's results into alpha, then cut or raise the window."""
    words = arena.words
    share = words[at + MARKED] * ONE // max(results, 1)
    words[at + ALPHA] += (share >> GAIN_SHIFT) - (words[at + ALPHA] >> GAIN_SHIFT)
    cwnd = words[at + CWND]
    if words[at + MARKED] > 0:
        cwnd -= cwnd * words[at + ALPHA] // (2 * ONE)
    else:
        cwnd += ONE_PACKET
    cwnd = min(max(cwnd, ONE_PACKET), words[at + MOST_WINDOW] * ONE_PACKET)
    words[at + CWND] = cwnd
    words[at + WINDOW] = cwnd // ONE_PACKET
    return 0


INA_WINDOW = Window("dctcp", begin, on_round=on_round)
