"""Layers in front first, in partitions, so that more urgent layers wait for little other data.

P3 (Jayarajan et al., MLSys 2019) and ByteScheduler (Peng et al., SOSP 2019) do this; all packets
are alike to the network. Each job has at most `CREDIT` partitions under way: a smaller credit
preempts sooner, a larger one keeps the links busy.
"""

from __future__ import annotations

from ringleaf.hosts.scheduling.interface import Release, Situation, of_job

CREDIT = 2
PARTITION_BYTES = 1 << 20


class LayerPriority:
    """The scheduler by layer priority."""

    name = "layers"
    title = "layer priority, partitioned"
    partition_bytes: int | None = PARTITION_BYTES
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        """Return the front-most items of each job, as far as its credit goes."""
        credit = {job: CREDIT - len(of_job(now, job)) for job in now.jobs}
        released = []
        for item in sorted(now.waiting, key=lambda item: (item.piece.front, item.ready_ps)):
            if credit[item.job] > 0:
                credit[item.job] -= 1
                released.append(Release(item))
        return released


SCHEDULER = LayerPriority()
