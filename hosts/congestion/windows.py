"""Congestion windows as fixed-point numbers, for controllers that change them by fractions."""

from __future__ import annotations

from ringleaf.core.arena import Words
from ringleaf.core.compiled import inline
from ringleaf.hosts.congestion.control import MOST_WINDOW, WINDOW

ONE_PACKET = 1 << 20
"""The unit of windows is 2**-20 packets."""


@inline
def set_window(words: Words, at: int, place: int, cwnd: int, least: int) -> None:
    """Set a window, in units of 2**-20 packets, at `place` of the block, and WINDOW after it.

    It is at least `least` and at most MOST_WINDOW; WINDOW is at least one packet.
    """
    cwnd = min(max(cwnd, least), words[at + MOST_WINDOW] * ONE_PACKET)
    words[at + place] = cwnd
    words[at + WINDOW] = max(cwnd // ONE_PACKET, 1)
