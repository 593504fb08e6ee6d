"""JPAS (Zhou et al., JNCA 2020): jobs in an early stage first, all packets of a job alike.

Early iterations improve a model most, so a job's flows get a network priority by its progress, and
jobs of equal progress one by their weight. Within a job it is first in, first out.

The paper promises a shorter time to 90 or 95 % of the final accuracy for jobs that have just begun.
Jobs in a late stage pay for it, as links carry no less: mean completion times hardly move, and jobs
that run in step only take turns in being behind. Using progress as a measure of how much a job
still learns is our choice: the paper fits accuracy curves, and nothing here has an accuracy.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import Release, Situation, Standing
from ringleaf.hosts.schedulers.common.ranking import by_rank
from ringleaf.hosts.schedulers.fifo import FifoScheduler


def stage(job: Standing) -> tuple[float, float]:
    """Return the sort key of a job: progress, then the negative of its weight."""
    progress = job.iterations_done / job.iterations if job.iterations else 1.0
    return progress, -job.weight


class Jpas(FifoScheduler):
    """The JPAS scheduler."""

    name = "jpas"
    title = "JPAS"
    weighs = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, with the priority of their job."""
        order = sorted(now.jobs, key=lambda job: (stage(now.jobs[job]), job))
        return by_rank(super().release(now), order)


SCHEDULER = Jpas()
