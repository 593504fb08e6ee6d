"""Parrot (Li et al., TCC 2022): bandwidth by weights, most for the job with least service a coflow.

Only the abstract was at hand. It fixes that sizes are unknown, that the job with the shortest
remaining time is taken to be the one with the least per-coflow attained service (bytes sent over
coflows that are over, LPCAS), that its weight grows with the confidence in that, and that a linear
program scales bandwidth by weights, so that no job starves. Chosen here: a coflow is the gradient
of a job's iteration; a weight is 1 / LPCAS, of which a job has all after many coflows and half
after `HALF`; the program gives each job at least `FLOOR` of what it had if all went equally fast,
and maximises the weighted sum of speeds within each link's capacity. Speeds are enforced by the
strict priority of faster jobs' packets, so that a job that has nothing to send leaves the links to
the others. (As rates of hosts they left links idle for a third of the time, as a rate holds until a
collective is over.) A collective keeps the priority with which it began.
"""

from __future__ import annotations

from collections.abc import Mapping

from ringleaf.hosts.schedulers.common.interface import Release, Situation, Standing
from ringleaf.hosts.schedulers.common.ranking import PARTITION_BYTES, by_rank, loads, sending
from ringleaf.hosts.schedulers.common.simplex import maximise
from ringleaf.hosts.schedulers.fifo import FifoScheduler

HALF = 2
FLOOR = 0.25


def weight(job: Standing) -> float:
    """Return a job's weight: the inverse of its least attained service, as far as that is known."""
    if not job.iterations_done or not job.served_bytes:
        return 0.0
    confidence = job.iterations_done / (job.iterations_done + HALF)
    return confidence * job.iterations_done / job.served_bytes


def speeds(jobs: Mapping[int, Standing]) -> dict[int, float]:
    """Return jobs' speeds, as parts of the line's rate, by the linear program."""
    own = {number: loads(job) for number, job in jobs.items()}
    links = sorted({link for each in own.values() for link in each})
    rows = [[own[number].get(link, 0.0) for number in jobs] for link in links]
    rows += [[float(number == other) for other in jobs] for number in jobs]  # the line's rate
    floor = FLOOR / max(map(sum, rows))
    limits = [1 - floor * sum(row) for row in rows]
    weights = [weight(job) for job in jobs.values()]
    known = max(weights) or 1.0
    gains = [each / known or 0.5 for each in weights]  # nothing is known of a new job
    extra = maximise(gains, rows, limits)
    return {number: floor + each for number, each in zip(jobs, extra, strict=True)}


def order(jobs: Mapping[int, Standing]) -> list[int]:
    """Return jobs, the fastest by the program first; of equally fast ones, those of most weight."""
    by_job = speeds(jobs)
    return sorted(jobs, key=lambda job: (-round(by_job[job], 9), -weight(jobs[job]), job))


class Parrot(FifoScheduler):
    """The Parrot scheduler."""

    name = "parrot"
    title = "Parrot"
    partition_bytes: int | None = PARTITION_BYTES
    sees_links = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, with the priority of their job's speed."""
        releases = super().release(now)
        if not releases:
            return []
        return by_rank(releases, order({job: now.jobs[job] for job in sending(now)}))


SCHEDULER = Parrot()
