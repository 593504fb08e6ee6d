"""Weighted shares: every job's hosts send at no more than its part of the line.

Jobs that may meet on a link divide the line by their weights, so that a port at which one host
of each meets is never overbooked, and no job is slower than its part allows, whatever the others
do. Nobody takes what a job leaves unused. Within a job it is first in, first out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ringleaf.hosts.schedulers.fifo import Fifo
from ringleaf.hosts.scheduling.interface import Release, Situation, Standing

LEAST = 1000
"""Whatever its weight, a job gets this part of the line, or it would never end."""


def share_bps(job: int, jobs: Mapping[int, Standing]) -> int:
    """What each of a job's hosts may send at."""
    own = jobs[job]
    weights = own.weight + sum(jobs[rival].weight for rival in own.rivals)
    share = own.weight / weights if weights else 1 / (1 + len(own.rivals))
    return max(int(own.link_bps * share), own.link_bps // LEAST)


class Shares(Fifo):
    """The scheduler."""

    name = "shares"
    title = "weighted shares"

    def release(self, now: Situation) -> list[Release]:
        """As first in, first out, at the job's rate."""
        return [
            replace(each, rate_bps=share_bps(each.item.job, now.jobs))
            for each in super().release(now)
        ]


SCHEDULER = Shares()
