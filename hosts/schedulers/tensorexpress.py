"""TensorExpress (Kang et al., IEEE CLOUD 2020): packets carry their tensor's priority.

Gradients start as soon as they are ready, layers in front at higher priority; what is more urgent
overtakes in the queues of hosts and switches, packet by packet. Within a priority it is first in,
first out.
"""

from __future__ import annotations

from ringleaf.hosts.scheduling.interface import LEVELS, Item, Release, Situation, Standing


def urgency(item: Item, job: Standing) -> int:
    """7 for the layers in front, down to 0."""
    return LEVELS - 1 - item.piece.front * LEVELS // job.layers


class TensorExpress:
    """The scheduler."""

    name = "tensorexpress"
    title = "TensorExpress"
    partition_bytes: int | None = None  # packets overtake, so tensors need not be cut
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        """Of each job and priority the first that waits, unless one is under way.

        Hosts that send in order get as much as they take, the most urgent first.
        """
        busy = {(each.item.job, each.priority) for each in now.under_way}
        wanted = [Release(item, urgency(item, now.jobs[item.job])) for item in now.waiting]
        released = []
        for each in sorted(wanted, key=lambda each: -each.priority):
            place = each.item.job, each.priority
            if place not in busy or now.jobs[each.item.job].in_order:
                busy.add(place)
                released.append(each)
        return released


SCHEDULER = TensorExpress()
