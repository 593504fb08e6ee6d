"""Stops in which a run tells how far it is: often while much happens, rarely while little does."""

from __future__ import annotations

from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.telling import FEW_EVENTS, LEAST_PS, MOST_PS, Telling


def test_stops_get_rarer_while_little_happens_and_frequent_again() -> None:
    told: list[int] = []
    telling, now_ps, events = Telling(told.append), 0, 0
    waits = []
    for more in (1, 1, 1, 1, 1, 1, 1, FEW_EVENTS, FEW_EVENTS, 1):
        events += more
        count = (10 * events, events)
        next_ps = telling.next_ps(now_ps, lambda now=count: now)  # type: ignore[misc]
        waits.append((next_ps - now_ps) // LEAST_PS)
        assert told[-1] == 10 * events
        assert telling.next_ps(next_ps - 1, lambda now=count: now) == next_ps  # type: ignore[misc]
        now_ps = next_ps
    assert waits == [1, 2, 4, 8, 16, 16, 16, 1, 1, 2]
    assert MOST_PS == 16 * LEAST_PS


def test_nobody_is_told_who_does_not_ask() -> None:
    assert Telling().next_ps(0, lambda: (1, 1)) == FOREVER_PS
