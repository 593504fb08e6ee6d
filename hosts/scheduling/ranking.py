"""Orders of jobs, as priorities of their packets and as rates of their hosts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ringleaf.hosts.scheduling.interface import LEVELS, Release, Situation, Standing

PARTITION_BYTES = 1 << 20
"""Partitions of schedulers that order jobs: a decision holds for a collective, and so for these."""

LEAST = 0.05
"""The least part of the line's rate that a job gets, or it would never end."""


def by_rank(releases: Iterable[Release], order: Sequence[int]) -> list[Release]:
    """Return releases with the priority of their job's place: 7 for the first, down to 0."""
    level = {job: max(LEVELS - 1 - place, 0) for place, job in enumerate(order)}
    return [
        replace(each, priority=level[each.item.job])
        for each in sorted(releases, key=lambda each: -level[each.item.job])
    ]


def sending(now: Situation) -> list[int]:
    """Return the jobs that have something to send, or under way, in the order of their numbers."""
    busy = {each.job for each in now.waiting} | {each.item.job for each in now.under_way}
    return sorted(busy)


def loads(job: Standing) -> dict[tuple[str, str], float]:
    """Return each link's load while the job's hosts send at the full rate of their lines."""
    return {link: busy_ps / job.line_ps for link, busy_ps in job.link_ps.items()}


def leftovers(order: Iterable[int], jobs: Mapping[int, Standing]) -> dict[int, float]:
    """Return the speeds of jobs, each of which takes all that those before it leave.

    A speed is a part of the line's rate. A job goes no faster than its busiest link allows.
    """
    used: defaultdict[tuple[str, str], float] = defaultdict(float)
    found = {}
    for job in order:
        own = loads(jobs[job])
        free = ((1 - used[link]) / load for link, load in own.items() if load > 0)
        speed = max(min(free, default=1.0), 0.0)
        for link, load in own.items():
            used[link] += speed * load
        found[job] = min(speed, 1.0)
    return found


def rate_bps(job: Standing, speed: float) -> int:
    """Return the rate of each host for a speed, which is at least `LEAST`."""
    return int(job.link_bps * max(speed, LEAST))
