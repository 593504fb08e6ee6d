"""The interface of congestion controllers: handlers, and a block of words per queue pair.

A handler has the signature of all (`ringleaf.core.compiled`); `at` is the queue pair's block:

    on_ack(arena, at, packets, now_ps)      `packets` are newly acknowledged; MARKED of them
                                            met congestion (ECN), IN_FLIGHT are not acknowledged yet
    on_loss(arena, at, timeout, now_ps)     packets were lost, by a NAK (0) or a timeout (1)
    on_cnp(arena, at, 0, now_ps)            the receiver has sent a congestion notification packet
    on_timer(arena, at, 0, now_ps)          TIMER_AT_PS has come; it is FOREVER_PS again
    on_post(arena, at, packets, now_ps)     a message was posted; `packets` of the queue pair are
                                            not acknowledged now, sent or not

Each leaves in the block the limits of the sender: WINDOW, RATE_BPS, TIMER_AT_PS and PRIORITY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.core.arena import Arena, Store, Words
from ringleaf.core.compiled import address_of, handler
from ringleaf.core.marking import NEVER, Marking
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES

# The decisions of a controller.
WINDOW = 0  # packets in flight, at least 1
RATE_BPS = 1  # on the line, headers and gaps included; 0: as fast as the line
TIMER_AT_PS = 2  # when `on_timer` is wanted; FOREVER_PS: not at all
PRIORITY = 3  # of data, 0 to 7; UNSET: as the queue pair has it. Answers have the highest then
# The facts that it is told.
MARKED = 4
IN_FLIGHT = 5
MOST_WINDOW = 6  # the size of the fixed window
LINE_BPS = 7
RTT_PS = 8  # of the longest path, without queues
PACKET_BYTES = 9  # of a full packet on the line, headers and gaps included
DELAY_PS = 10  # round trip of the newest packet acknowledged; 0: not known, as it was sent twice
HOPS = 11  # switches on the way of data, for controllers that are `routed`
# The transport's own words.
HANDLERS = 12  # addresses of the five
ON_ACK = HANDLERS
ON_LOSS = HANDLERS + 1
ON_CNP = HANDLERS + 2
ON_TIMER = HANDLERS + 3
ON_POST = HANDLERS + 4
SEEN_MARKS = 17  # marks that the peer had counted when it was last heard
MARKS = 18  # packets that came here marked
TOLD_MARKS = 19  # MARKS when the peer was last told
CNP_GAP_PS = 20  # least time between two CNPs; 0: none is sent
CNP_FROM_PS = 21  # earliest time of the next CNP
CNP_DUE = 22  # 1: one is to be sent
TIMES_AT = 23  # ring of the times at which packets were sent, by PSN; 0: none is kept
TIMES_MASK = 24  # its size, a power of two, less one
TOLD_AT = 25  # in `arena.bytes`: telemetry to send back to the peer; 0: packets have none
HEARD_AT = 26  # likewise: telemetry of the newest packet acknowledged, for `on_ack`
GAIN = 27  # factor on the growth of its window or rate, in units of 1 / ONE_GAIN
TRIMS = 28  # 1: switches cut packets, so that a loss is known at once
COUNTS_CUTS = 29  # 1: `on_loss` is called for each packet that was cut
OWN = 32  # a controller's own words start here
CONTROL_WORDS = 64

UNSET = -1

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
        on_post: Likewise.
        is_open: Whether it ignores all events: queue pairs then need no block.
        marking: The marking that it wants of switches, for queues of 100 Gbit/s and 4 KiB packets.
        marks_bytes: Whether it is in proportion to the line's rate, and to bytes of packets.
        marks_from_bps: The rate from which on it is; slower lines have the marking of that rate.
        cnp_gap_ps: Least time between the CNPs of one receiver; 0: it sends none.
        has_gain: Whether it multiplies the growth of its window or rate by GAIN.
        timed: Whether it wants to know DELAY_PS.
        routed: Whether it wants to know HOPS.
        program: The program that switches must run for it; if it has one, packets have room for
            telemetry, and `on_ack` finds that of the newest packet acknowledged at HEARD_AT.
        counts_cuts: Whether `on_loss` is called for each packet that switches have cut, and not
            just once for those that are sent again together.
    """

    name: str
    begin: Callable[[Words], None] = begin_idle
    on_ack: Handler = ignore
    on_loss: Handler = ignore
    on_cnp: Handler = ignore
    on_timer: Handler = ignore
    on_post: Handler = ignore
    is_open: bool = False
    marking: Marking = NEVER
    marks_bytes: bool = False
    marks_from_bps: float = 0
    cnp_gap_ps: int = 0
    has_gain: bool = False
    timed: bool = False
    routed: bool = False
    program: str = ""
    counts_cuts: bool = False

    @property
    def reads_queues(self) -> bool:
        """Whether switches must tell of their queues, by marks or by telemetry."""
        return self.marking != NEVER or bool(self.program)

    def marking_at(self, rate_bps: float, packet_bytes: int) -> Marking:
        """Return the marking that it wants on lines of a rate, with so many bytes in a packet."""
        if not self.marks_bytes:
            return self.marking
        return self.marking.in_proportion(max(rate_bps, self.marks_from_bps), packet_bytes)


def make_control(
    store: Store,
    controller: Controller,
    *,
    window: int,
    line_bps: int,
    rtt_ps: int,
    packet_bytes: int = 4096 + 82,
    hops: int = 1,
    trims: bool = False,
) -> int:
    """Return the offset of a queue pair's block; 0 if the controller needs none."""
    if controller.is_open:
        return 0
    at = store.allocate("words", CONTROL_WORDS)
    times = 1 << (window - 1).bit_length()
    times_at = store.allocate("words", times) if controller.timed else 0
    told_at = store.allocate("bytes", 2 * TELEMETRY_BYTES) if controller.program else 0
    block = store.arena.words[at : at + CONTROL_WORDS]
    block[MOST_WINDOW] = window
    block[LINE_BPS], block[RTT_PS] = line_bps, rtt_ps
    block[GAIN] = ONE_GAIN
    block[TRIMS], block[COUNTS_CUTS] = trims, controller.counts_cuts
    block[PACKET_BYTES], block[HOPS] = packet_bytes, hops
    block[TIMES_AT], block[TIMES_MASK] = times_at, times - 1
    block[TOLD_AT], block[HEARD_AT] = told_at, told_at + TELEMETRY_BYTES
    block[CNP_GAP_PS] = controller.cnp_gap_ps and max(controller.cnp_gap_ps, rtt_ps)
    events = (
        controller.on_ack,
        controller.on_loss,
        controller.on_cnp,
        controller.on_timer,
        controller.on_post,
    )
    block[HANDLERS : HANDLERS + len(events)] = [address_of(event) for event in events]
    begin_anew(block, controller)
    return at


def begin_anew(block: Words, controller: Controller) -> None:
    """Let a controller decide as on a new connection; what a peer has counted stays."""
    block[OWN:] = 0
    block[WINDOW], block[RATE_BPS] = block[MOST_WINDOW], 0
    block[TIMER_AT_PS], block[PRIORITY] = FOREVER_PS, UNSET
    block[CNP_FROM_PS] = 0
    controller.begin(block)
