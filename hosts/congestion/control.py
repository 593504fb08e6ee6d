"""The interface of congestion controllers: handlers, and a block of words per queue pair.

A handler has the signature of all (`ringleaf.compiled`); `at` is the queue pair's block:

    on_ack(arena, at, packets, now_ps)      `packets` are newly acknowledged; MARKED of them
                                            met congestion (ECN), IN_FLIGHT are not acknowledged yet
    on_loss(arena, at, timeout, now_ps)     packets were lost, by a NAK (0) or a timeout (1)
    on_cnp(arena, at, 0, now_ps)            the receiver has sent a congestion notification packet
    on_timer(arena, at, 0, now_ps)          TIMER_AT_PS has come; it is FOREVER_PS again

Each leaves in the block the limits of the sender: WINDOW, RATE_BPS and TIMER_AT_PS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.arena import Arena, Store, Words
from ringleaf.compiled import address_of, handler
from ringleaf.marking import NEVER, Marking
from ringleaf.units import FOREVER_PS

# The decisions of a controller.
WINDOW = 0  # packets in flight, at least 1
RATE_BPS = 1  # on the line, headers and gaps included; 0: as fast as the line
TIMER_AT_PS = 2  # when `on_timer` is wanted; FOREVER_PS: not at all
# The facts that it is told.
MARKED = 3
IN_FLIGHT = 4
MOST_WINDOW = 5  # the size of the fixed window
LINE_BPS = 6
RTT_PS = 7  # of the longest path, without queues
# The transport's own words.
HANDLERS = 8  # addresses of the four
ON_ACK = HANDLERS
ON_LOSS = HANDLERS + 1
ON_CNP = HANDLERS + 2
ON_TIMER = HANDLERS + 3
SEEN_MARKS = 12  # marks that the peer had counted when it was last heard
MARKS = 13  # packets that came here marked
TOLD_MARKS = 14  # MARKS when the peer was last told
CNP_GAP_PS = 15  # least time between two CNPs; 0: none is sent
CNP_FROM_PS = 16  # earliest time of the next CNP
CNP_DUE = 17  # 1: one is to be sent
GAIN = 18  # factor on the growth of its window or rate, in units of 1 / ONE_GAIN
OWN = 24  # a controller's own words start here
CONTROL_WORDS = 56

ONE_GAIN = 256

Handler = Callable[..., int]


@handler
def ignore(_arena: Arena, _at: int, _argument: int, _now_ps: int) -> int:
    """Ignore an event that a controller does not handle."""
    return 0


def begin_idle(_block: Words) -> None:
    """Set nothing, for a controller without words of its own."""


@dataclass(frozen=True, slots=True)
class Controller:
    """One way of congestion control.

    Args:
        name: Its name in the registry, by which people choose it.
        begin: Sets a new block's own words; WINDOW is MOST_WINDOW by then.
        on_ack: A handler as described above, like the following.
        on_loss: Likewise.
        on_cnp: Likewise.
        on_timer: Likewise.
        is_open: Whether it ignores all events: queue pairs then need no block.
        marking: The marking that it wants of switches, for queues of 100 Gbit/s and 4 KiB packets.
        cnp_gap_ps: Least time between the CNPs of one receiver; 0: it sends none.
        has_gain: Whether it multiplies the growth of its window or rate by GAIN.
    """

    name: str
    begin: Callable[[Words], None] = begin_idle
    on_ack: Handler = ignore
    on_loss: Handler = ignore
    on_cnp: Handler = ignore
    on_timer: Handler = ignore
    is_open: bool = False
    marking: Marking = NEVER
    cnp_gap_ps: int = 0
    has_gain: bool = False


def make_control(
    store: Store, controller: Controller, *, window: int, line_bps: int, rtt_ps: int
) -> int:
    """Return the offset of a queue pair's block; 0 if the controller needs none."""
    if controller.is_open:
        return 0
    at = store.allocate("words", CONTROL_WORDS)
    block = store.arena.words[at : at + CONTROL_WORDS]
    block[WINDOW] = block[MOST_WINDOW] = window
    block[LINE_BPS], block[RTT_PS] = line_bps, rtt_ps
    block[TIMER_AT_PS] = FOREVER_PS
    block[GAIN] = ONE_GAIN
    block[CNP_GAP_PS] = controller.cnp_gap_ps and max(controller.cnp_gap_ps, rtt_ps)
    events = (controller.on_ack, controller.on_loss, controller.on_cnp, controller.on_timer)
    block[HANDLERS : HANDLERS + len(events)] = [address_of(event) for event in events]
    controller.begin(block)
    return at
