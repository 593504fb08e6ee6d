"""The interface of congestion windows of aggregation: handlers, and a block of words.

ATP's and A2TP's workers have one window, PANAMA's one for each tree. A handler has the signature of
all (`ringleaf.core.compiled`); `at` is the window's block:

    on_round(arena, at, results, now_ps)   a round trip is over: of its results, MARKED met
                                           congestion (ECN, on the way up or down)
    on_loss(arena, at, timeout, now_ps)    ATP only: the server has requested a block again (0), or
                                           a timeout has come (1)

Each leaves in the block the window, which the worker then keeps within 1 and MOST_WINDOW. A window
with `has_share` leaves a second one, SHARE: of the blocks that ATP's or A2TP's worker sends in a
round trip, only the first so many may take aggregators (`ina/atp/shares.py`). It is told how many
results said that others wanted their aggregators (WANTED), and how many that all workers had
results within BASE_PS of a round's begin (TIMELY).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleaf.core.arena import Arena, Words
from ringleaf.core.compiled import address_of, call_handler, inline
from ringleaf.hosts.congestion.control import Handler, begin_idle, ignore

# The decisions.
WINDOW = 0  # blocks that may be without result at once
SHARE = 7  # of the blocks sent in a round trip, those that may take aggregators
# The facts that it is told.
MARKED = 1
MOST_WINDOW = 2
GROWTH = 3  # packets in one segment of TCP, by which RFC 5681 lets a window grow in a round trip
# The worker's own words.
RESULTS = 4  # of this round trip
ON_ROUND = 5  # addresses of the handlers
ON_LOSS = 6
WANTED = 8  # facts again
TIMELY = 9
BASE_PS = 10  # a round trip without queues
OWN = 12  # a window's own words start here
CONTROL_WORDS = 28

GROWTH_BYTES = 1500  # of a window in a round trip: one segment (RFC 5681)


@dataclass(frozen=True, slots=True)
class Window:
    """One way in which the congestion window changes.

    Args:
        name: Its name in the registry, by which people choose it.
        begin: Sets a new block's own words; WINDOW is half of MOST_WINDOW by then, the capacity of
            a path, and may be changed.
        on_round: A handler as described above, like the following.
        on_loss: Likewise.
        has_share: Whether it leaves SHARE, too.
    """

    name: str
    begin: Callable[[Words], None] = begin_idle
    on_round: Handler = ignore
    on_loss: Handler = ignore
    has_share: bool = False


def begin_window(block: Words, chosen: Window, *, most: int, growth: int, base_ps: int = 0) -> None:
    """Set a worker's block for a window of at most `most` packets."""
    # The published client begins as high.
    block[WINDOW], block[MOST_WINDOW], block[GROWTH] = max(1, most // 2), most, growth
    block[BASE_PS] = base_ps
    block[ON_ROUND], block[ON_LOSS] = address_of(chosen.on_round), address_of(chosen.on_loss)
    chosen.begin(block)
    block[WINDOW] = min(max(block[WINDOW], 1), most)


@inline
def tell_window(arena: Arena, at: int, event: int, argument: int, now_ps: int) -> None:
    """Call one of a window's handlers, and keep its decision within bounds.

    Args:
        arena: The arena.
        at: Offset of the window's block in arena.words.
        event: ON_ROUND or ON_LOSS.
        argument: The handler's third argument.
        now_ps: The time.
    """
    words = arena.words
    call_handler(words[at + event], arena, at, argument, now_ps)
    words[at + WINDOW] = min(max(words[at + WINDOW], 1), words[at + MOST_WINDOW])
