"""Beamer (TNSM 2022): coflows in the order that lets whole stages end early.

Only the abstract was at hand: a stage is over when all its coflows are, the mean stage completion
time is minimised, and the order is within 20/3 of the best. The rule is ours: shortest remaining
stage first, by the bytes that its bottleneck still has to carry. A coflow is a collective here, and
a stage is a job's iteration; those of its coflows that are not ready yet count, too.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import Release, Situation
from ringleaf.hosts.schedulers.common.ranking import PARTITION_BYTES, by_rank
from ringleaf.hosts.schedulers.fifo import FifoScheduler


class Beamer(FifoScheduler):
    """The Beamer scheduler."""

    name = "beamer"
    title = "Beamer"
    partition_bytes: int | None = PARTITION_BYTES
    sees_links = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, with the priority of their job's stage."""

        def left_ps(job: int) -> float:
            return now.jobs[job].left_bytes * now.jobs[job].bottleneck_ps

        order = sorted(now.jobs, key=lambda job: (not now.jobs[job].left_bytes, left_ps(job), job))
        return by_rank(super().release(now), order)


SCHEDULER = Beamer()
