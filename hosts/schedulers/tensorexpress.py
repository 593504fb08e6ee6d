"""TensorExpress (Kang et al., IEEE CLOUD 2020): packets carry their tensor's priority.

Gradients start as soon as they are ready, layers in front at higher priority; what is more urgent
overtakes in the queues of hosts and switches, packet by packet. Within a priority it is first in,
first out.
"""

from __future__ import annotations

from hosts.schedulers.interface import LEVELS, Item, Release, Situation, Standing, of_job


def urgency(item: Item, job: Standing) -> int:
    """7 for the layers in front, down to 0."""
    return LEVELS - 1 - item.piece.front * LEVELS // job.layers


class TensorExpress:
    """The scheduler."""

    name = "tensorexpress"
    title = "TensorExpress"
    partition_bytes: int | None = None  # packets overtake, so tensors need not be cut

    def release(self, now: Situation) -> list[Release]:
        """Of each job and priority the first that waits, unless one is under way."""
        busy = {(each.item.job, each.priority) for job in now.jobs for each in of_job(now, job)}
        released = []
        for item in now.waiting:
            priority = urgency(item, now.jobs[item.job])
            if (item.job, priority) not in busy:
                busy.add((item.job, priority))
                released.append(Release(item, priority))
        return released


SCHEDULER = TensorExpress()
