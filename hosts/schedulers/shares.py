"""Weighted shares: every job's hosts send at no more than the job's part of the line's rate.

Jobs that may meet on a link divide the line by their weights, so that a port at which one host
of each meets is never overbooked, and no job is slower than its part allows, whatever the others
do. A job's unused share is not given to others. Within a job it is first in, first out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import Release, Situation, Standing
from ringleaf.hosts.schedulers.fifo import FifoScheduler

LEAST = 1000
"""A job gets 1 / LEAST of the line, whatever its weight, or it would never end."""


def share_bps(job: int, jobs: Mapping[int, Standing]) -> int:
    """Return the rate at which each of a job's hosts may send."""
    own = jobs[job]
    weights = own.weight + sum(jobs[rival].weight for rival in own.rivals)
    share = own.weight / weights if weights else 1 / (1 + len(own.rivals))
    return max(int(own.link_bps * share), own.link_bps // LEAST)


class Shares(FifoScheduler):
    """The scheduler of weighted shares."""

    name = "shares"
    title = "weighted shares"
    weighs = True
    sets_rates = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, at the job's rate."""
        return [
            replace(each, rate_bps=share_bps(each.item.job, now.jobs))
            for each in super().release(now)
        ]


SCHEDULER = Shares()
