"""First in, first out: a job's gradients go one after the other, as they become ready.

So do NCCL's collectives on one stream.
"""

from __future__ import annotations

from hosts.schedulers.interface import Release, Situation


class Fifo:
    """The scheduler."""

    name = "fifo"
    title = "first in, first out"
    partition_bytes: int | None = None

    def release(self, now: Situation) -> list[Release]:
        """The first that waits of each job that has nothing under way."""
        busy = {release.item.job for release in now.under_way}
        released = []
        for item in now.waiting:
            if item.job not in busy:
                busy.add(item.job)
                released.append(Release(item))
        return released


SCHEDULER = Fifo()
