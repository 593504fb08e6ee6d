"""Orders of jobs, as priorities of their packets and as rates of their hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import LEVELS, Release, Situation, Standing

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


def own_speed(job: Standing) -> float:
    """Return the part of the line's rate at which a job's hosts fill its busiest link, alone."""
    return 1 / max(1.0, *loads(job).values()) if job.link_ps else 1.0


def rate_bps(job: Standing, speed: float) -> int:
    """Return the rate of each host for a speed, which is at least `LEAST`."""
    return int(job.link_bps * max(speed, LEAST))
