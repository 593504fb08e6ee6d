"""Prophet (Zhang et al., ICPP 2021): blocks of as many gradients as go before the next appears.

Only the abstract was at hand. It fixes that gradients appear in steps, whose times are profiled,
that a block has as many as can be sent at the monitored bandwidth before the next step, that blocks
go in order and none is pre-empted, and that forward passes shall begin as early as possible. Chosen
here: a block takes the front-most of those that wait; after the backward pass, when nothing more
can appear, it has all that wait; what does not fit is cut into partitions, of which a block has one
at least. The bandwidth is a job's bytes over the time in which it sent so far; before it is known,
blocks are of one partition. Steps of the profile are the model's own times.
"""

from __future__ import annotations

import math

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.schedulers.common.interface import Item, Release, Situation, Standing

PARTITION_BYTES = 256 << 10


def room_bytes(job: Standing, now_ps: int) -> float:
    """Return the bytes that can be sent before the job's next gradient appears."""
    if job.next_gradient_ps == FOREVER_PS:
        return math.inf
    if not job.busy_ps:
        return 0.0
    return (job.next_gradient_ps - now_ps) * job.served_bytes / job.busy_ps


def block(waiting: list[Item], room: float) -> list[Item]:
    """Return the front-most items that fit, and the first in any case."""
    items: list[Item] = []
    for item in sorted(waiting, key=lambda item: (item.piece.front, item.ready_ps)):
        room -= item.size_bytes
        if items and room < 0:
            break
        items.append(item)
    return items


class Prophet:
    """The Prophet scheduler."""

    name = "prophet"
    title = "Prophet"
    partition_bytes: int | None = PARTITION_BYTES
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        """Return the next block of each job that has sent its last one."""
        busy = {release.item.job for release in now.under_way}
        released = []
        for number, job in now.jobs.items():
            waiting = [item for item in now.waiting if item.job == number]
            if waiting and number not in busy:
                released += [Release(item) for item in block(waiting, room_bytes(job, now.now_ps))]
        return released


SCHEDULER = Prophet()
