"""Tell how far a run in virtual time is, as often as that is worth a stop of its loop."""

from __future__ import annotations

from collections.abc import Callable

from ringleaf.core.units import FOREVER_PS, PS_PER_US

Tell = Callable[[int], None]

LEAST_PS = 50 * PS_PER_US
MOST_PS = 16 * LEAST_PS
"""Ctrl-C waits for a stop, too, and packets may come all of a sudden."""

FEW_EVENTS = 1 << 12
"""Fewer than that since the last stop, about a millisecond's, and the next one is later."""


class Telling:
    """Tells packet-hops so far. Stops follow from virtual time and events, so they recur.

    Args:
        tell: Called with the packet-hops; None: nobody wants to know.
    """

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self._tell = tell
        self._wait_ps = LEAST_PS // 2
        self._next_ps = 0 if tell is not None else FOREVER_PS
        self._events = 0

    def next_ps(self, now_ps: int, count: Callable[[], tuple[int, int]]) -> int:
        """Tell, and return when to stop for that.

        Args:
            now_ps: The time.
            count: Returns packet-hops and events so far.
        """
        if self._tell is None:
            return self._next_ps
        hops, events = count()
        self._tell(hops)
        if now_ps < self._next_ps:
            return self._next_ps
        few = events - self._events < FEW_EVENTS
        self._wait_ps = min(2 * self._wait_ps, MOST_PS) if few else LEAST_PS
        self._events = events
        self._next_ps = now_ps + self._wait_ps
        return self._next_ps
