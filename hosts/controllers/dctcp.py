"""DCTCP: the window shrinks in proportion to how many packets met congestion.

Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3; RFC 8257. Once per window of
data, alpha = (1 - g) * alpha + g * F, where F is the fraction of its packets that were marked;
and if any was, the window is cut by alpha / 2. Otherwise it grows by a packet per round trip.

Like RDMA's senders, it starts with the whole window and not with a slow start; the first marks
halve it, because alpha is 1 at first (RFC 8257, 3.3). A loss is as in TCP: the window is halved,
or one packet after a timeout, from which a slow start leads back to half of the former window.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.marking import USUAL_BPS, from_depth
from ringleaf.hosts.congestion.control import (
    GAIN,
    IN_FLIGHT,
    MARKED,
    MOST_WINDOW,
    ONE_GAIN,
    OWN,
    WINDOW,
    Controller,
)

CWND = OWN  # the window, in units of 2**-16 packets
ALPHA = OWN + 1  # in units of 2**-20
ACKED = OWN + 2  # packets of this window of data that are acknowledged
MET = OWN + 3  # of these, marked
LEFT = OWN + 4  # packets until it is over
THRESHOLD = OWN + 5  # below this CWND, slow start

MARK_PACKETS = 24
"""The paper's K for 10 Gbit/s, 65 packets of 1.5 kB, in packets of 4 KiB.

Its bound, K > C * RTT / 7 (section 3.4), leaves 55 us of round trip at 100 Gbit/s, and as much on
faster lines, where K is in proportion to the rate.
"""

ONE_PACKET = 1 << 16
ONE = 1 << 20
GAIN_SHIFT = 4  # g = 1/16


def begin(block: Words) -> None:
    """Start with the whole window, and with alpha = 1 (RFC 8257, section 3.3)."""
    block[CWND] = block[WINDOW] * ONE_PACKET
    block[ALPHA] = ONE


@inline
def set_window(words: Words, at: int, cwnd: int) -> None:
    """Set the window, at least one packet and at most MOST_WINDOW."""
    cwnd = min(max(cwnd, ONE_PACKET), words[at + MOST_WINDOW] * ONE_PACKET)
    words[at + CWND] = cwnd
    words[at + WINDOW] = cwnd // ONE_PACKET


@inline
def end_window(words: Words, at: int) -> None:
    """Update alpha from the marks of an acknowledged window of data, and cut the window once."""
    share = words[at + MET] * ONE // words[at + ACKED]
    words[at + ALPHA] += (share >> GAIN_SHIFT) - (words[at + ALPHA] >> GAIN_SHIFT)
    if words[at + MET] > 0:
        cwnd = words[at + CWND]
        cwnd -= cwnd * words[at + ALPHA] // (2 * ONE)
        words[at + THRESHOLD] = 0
        set_window(words, at, cwnd)
    words[at + ACKED] = words[at + MET] = 0
    words[at + LEFT] = max(words[at + IN_FLIGHT], 1)


@handler
def on_ack(arena: Arena, at: int, packets: int, _now_ps: int) -> int:
    """Let the window grow, by slow start or a packet per round trip, and count marked packets.

    When a window of data is acknowledged, its marked fraction goes into alpha.
    """
    words = arena.words
    marked = min(words[at + MARKED], packets)
    words[at + ACKED] += packets
    words[at + MET] += marked
    words[at + LEFT] -= packets
    cwnd = words[at + CWND]
    if cwnd < words[at + THRESHOLD]:
        set_window(words, at, cwnd + packets * ONE_PACKET)
    elif marked == 0:
        # Each packet adds 1 / cwnd, so a window of them adds one packet (RFC 5681, section 3.1).
        growth = packets * ONE_PACKET * ONE_PACKET * words[at + GAIN]
        set_window(words, at, cwnd + growth // (ONE_GAIN * cwnd))
    if words[at + LEFT] <= 0:
        end_window(words, at)
    return 0


@handler
def on_loss(arena: Arena, at: int, timeout: int, _now_ps: int) -> int:
    """Halve the window after a NAK; after a timeout, begin a slow start from one packet."""
    words = arena.words
    half = words[at + CWND] // 2
    words[at + THRESHOLD] = half if timeout else 0
    set_window(words, at, ONE_PACKET if timeout else half)
    words[at + LEFT] = words[at + ACKED] = words[at + MET] = 0
    return 0


CONTROLLER = Controller(
    "dctcp",
    begin,
    on_ack=on_ack,
    on_loss=on_loss,
    marking=from_depth(MARK_PACKETS),
    marks_bytes=True,
    marks_from_bps=USUAL_BPS,
    has_gain=True,
)
