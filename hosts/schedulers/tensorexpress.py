"""TensorExpress (Kang et al., IEEE CLOUD 2020): packets carry their tensor's priority.

Gradients start as soon as they are ready, layers in front at higher priority; packets that are more
urgent overtake others in the queues of hosts and switches. Within a priority it is first in, first
out.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import (
    LEVELS,
    Item,
    Release,
    Situation,
    Standing,
    one_of_each_priority,
)


def urgency(item: Item, job: Standing) -> int:
    """Return the priority of an item: 7 for the layers in front, down to 0."""
    return LEVELS - 1 - item.piece.front * LEVELS // job.layers


class TensorExpress:
    """The TensorExpress scheduler."""

    name = "tensorexpress"
    title = "TensorExpress"
    partition_bytes: int | None = None  # packets overtake, so tensors need not be cut
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        """Return the first item that waits of each job and priority, unless one is under way."""
        return one_of_each_priority(now, urgency)


SCHEDULER = TensorExpress()
