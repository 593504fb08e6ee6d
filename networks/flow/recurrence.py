"""Equal steps that recur: what is known of a few of them is known of all, by equality.

Streams of messages that do the same again and again are carried for a while. If, for two periods
one after the other, each message of each node was reported exactly as long after the one a period
before, and messages that far apart were never under way together, then what follows depends on
nothing else, and recurs too. So a longer run differs by whole periods in its middle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ringleaf.collectives.rows import Column


class Recurrence(NamedTuple):
    """Steps that recur: after `period` steps, `later_ps` later."""

    period: int
    later_ps: int


def find_recurrence(streams: list[Column], periods: list[int]) -> Recurrence | None:
    """Return the recurrence in which equal steps have ended up; None if there is none yet.

    Args:
        streams: (nodes, steps) each: when a message of each node was reported. All have as many
            steps; the last ones may be different, as nothing follows.
        periods: Periods to look for, the best one first.
    """
    steps = streams[0].shape[1]
    times = np.concatenate(streams)
    for period in periods:
        for margin in (steps // 8, period):
            stop = steps - max(margin, 1)
            first = stop - 3 * _span(period)
            if first >= 0 and (found := _recurs(times[:, first:stop], period)) is not None:
                return found
    return None


LEAST_SPAN = 256
"""The least steps that are compared: twice the messages that may be under way in a stream."""


def _span(period: int) -> int:
    """Return a number of whole periods that is no less than what may be under way."""
    return -(-LEAST_SPAN // period) * period


def _recurs(times: Column, period: int) -> Recurrence | None:
    """Return the recurrence of steps, if all of them recur."""
    span = _span(period)
    later = times[:, period:] - times[:, :-period]
    later_ps = int(later[0, 0])
    apart = times[:, span:].min(axis=0) > times[:, :-span].max(axis=0)
    if (later == later_ps).all() and apart.all():
        return Recurrence(period, later_ps)
    return None
