"""pFabric: the less of a flow is left, the higher is its priority; the window stays as it is.

Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, sections 4.1
and 4.2: senders start at the line's rate with a window of one BDP, and leave it to switches which
packets go first. Its queue sorts by the bytes that are left of a flow. Here, the bytes left choose
one of the eight classes of `forward.p4`: up to one BDP the highest, and one class lower for each
time it is four times as much.

Other differences: a switch whose queue is full drops the packet that arrives and not the one with
most bytes left. What is left of a flow is what is posted to its queue pair and not acknowledged. As
the transport needs packets in order, a queue pair's class rises only when all that it has sent is
acknowledged; likewise it falls where ports are not served by strict priority, or PFC pauses classes
each by itself, as a lower class may go first there. Acknowledgements have the highest class. After
repeated timeouts, the paper's window is one packet until something gets through (4.2); so it is
here.
"""

from __future__ import annotations

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import handler, inline
from ringleaf.core.units import PS_PER_S
from ringleaf.hosts.congestion.control import (
    LINE_BPS,
    MOST_WINDOW,
    OWN,
    PACKET_BYTES,
    PRIORITY,
    RTT_PS,
    WINDOW,
    Controller,
)

BDP = OWN  # packets
TIMEOUTS = OWN + 1  # in a row

TOP = 7
FACTOR = 4
MOST_TIMEOUTS = 5


def begin(block: Words) -> None:
    """Set the window to one BDP, at most MOST_WINDOW, and start in the highest class."""
    bits = int(block[LINE_BPS]) * int(block[RTT_PS]) // PS_PER_S
    bdp = -(-bits // (8 * int(block[PACKET_BYTES])))
    block[BDP] = block[WINDOW] = min(max(bdp, 1), int(block[MOST_WINDOW]))
    block[PRIORITY] = TOP


@inline
def class_of(packets: int, bdp: int) -> int:
    """Return the class of a flow with so many packets left, 7 being the highest."""
    level = TOP
    while level > 0 and packets > bdp:
        packets = -(-packets // FACTOR)
        level -= 1
    return level


@handler
def on_post(arena: Arena, at: int, packets: int, _now_ps: int) -> int:
    """Choose the class by the packets that are posted and not acknowledged."""
    words = arena.words
    words[at + PRIORITY] = class_of(packets, words[at + BDP])
    return 0


@handler
def on_ack(arena: Arena, at: int, _packets: int, _now_ps: int) -> int:
    """Return to the window of one BDP, as a packet got through."""
    words = arena.words
    words[at + TIMEOUTS] = 0
    words[at + WINDOW] = words[at + BDP]
    return 0


@handler
def on_loss(arena: Arena, at: int, timeout: int, _now_ps: int) -> int:
    """Count timeouts in a row; after several, the window is one packet (section 4.2)."""
    words = arena.words
    words[at + TIMEOUTS] += timeout
    if words[at + TIMEOUTS] >= MOST_TIMEOUTS:
        words[at + WINDOW] = 1
    return 0


CONTROLLER = Controller("pfabric", begin, on_ack=on_ack, on_loss=on_loss, on_post=on_post)
