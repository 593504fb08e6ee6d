"""Layers in front first, in partitions, so that more urgent layers wait for little other data.

P3 (Jayarajan et al., MLSys 2019) and ByteScheduler (Peng et al., SOSP 2019) do this; all packets
are alike to the network. Each job has at most `CREDIT` partitions under way: a smaller credit
preempts sooner, a larger one keeps the links busy.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import Release, Situation, of_job

CREDIT = 2
PARTITION_BYTES = 1 << 20


class LayerPriority:
    """The scheduler by layer priority, and the base of those that differ in their credit."""

    name = "layers"
    title = "layer priority, partitioned"
    partition_bytes: int | None = PARTITION_BYTES
    reorders = True
    credit_bytes: int | None = None  # a job's items under way; None: `CREDIT` of them

    def release(self, now: Situation) -> list[Release]:
        """Return the front-most items of each job, as far as its credit goes."""
        under_way = {job: [each.item.size_bytes for each in of_job(now, job)] for job in now.jobs}
        released = []
        for item in sorted(now.waiting, key=lambda item: (item.piece.front, item.ready_ps)):
            sizes = under_way[item.job]
            if self._has_credit(sizes, item.size_bytes):
                sizes.append(item.size_bytes)
                released.append(Release(item))
        return released

    def _has_credit(self, sizes: list[int], size_bytes: int) -> bool:
        """Return whether an item may join those under way; one alone always may."""
        if self.credit_bytes is None:
            return len(sizes) < CREDIT
        return not sizes or sum(sizes) + size_bytes <= self.credit_bytes


SCHEDULER = LayerPriority()
