"""First in, first out: a job's gradients go one after the other, as they become ready.

NCCL's collectives on one stream do the same. Hosts that send in order anyway are given several
gradients at a time.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import Release, Situation


class FifoScheduler:
    """The first-in, first-out scheduler."""

    name = "fifo"
    title = "first in, first out"
    partition_bytes: int | None = None
    reorders = False

    def release(self, now: Situation) -> list[Release]:
        """Return the first item of each job with nothing under way; all items of jobs in order."""
        busy = {release.item.job for release in now.under_way}
        released = []
        for item in now.waiting:
            if item.job not in busy or now.jobs[item.job].in_order:
                busy.add(item.job)
                released.append(Release(item))
        return released


SCHEDULER = FifoScheduler()
