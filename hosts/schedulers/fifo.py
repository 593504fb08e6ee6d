"""First in, first out: a job's gradients go one after the other, as they become ready.

So do NCCL's collectives on one stream. Hosts that send in order anyway are given several.
"""

from __future__ import annotations

from ringleaf.hosts.scheduling.interface import Release, Situation


class Fifo:
    """The scheduler."""

    name = "fifo"
    title = "first in, first out"
    partition_bytes: int | None = None
    reorders = False

    def release(self, now: Situation) -> list[Release]:
        """Of each job that has nothing under way the first that waits; of one in order, all."""
        busy = {release.item.job for release in now.under_way}
        released = []
        for item in now.waiting:
            if item.job not in busy or now.jobs[item.job].in_order:
                busy.add(item.job)
                released.append(Release(item))
        return released


SCHEDULER = Fifo()
