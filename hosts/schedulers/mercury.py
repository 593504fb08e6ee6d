"""Mercury (INFOCOM 2022): the most urgent packet in a host's send buffer goes first.

Only the abstract was at hand. It fixes that tensors are not cut, that of the packets in the buffer
the one goes next that has the highest priority, front layers first, and that parameter servers sum
packet by packet and return each sum as soon as it is complete, so that push and pull overlap.
Switches are left as they are: unlike TensorExpress's, packets carry no priority there.

Chosen here: eight classes of layers (`tensorexpress.urgency`), one tensor of each on its way. Sums
are those of the job's algorithm. By `ps`, servers of their own return each message's sum when all
ranks' have come. A gradient of up to some 4 MiB is cut into messages of 4 KiB, so with packets of
that size (`mtu`) sums go packet by packet; they do so whatever the scheduler is. Other algorithms
add longer messages.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import Release, Situation, one_of_each_priority
from ringleaf.hosts.schedulers.tensorexpress import urgency


class Mercury:
    """The Mercury scheduler."""

    name = "mercury"
    title = "Mercury"
    partition_bytes: int | None = None
    reorders = True

    def release(self, now: Situation) -> list[Release]:
        """Return the first item that waits of each job and priority, unless one is under way."""
        return [replace(each, marks=False) for each in one_of_each_priority(now, urgency)]


SCHEDULER = Mercury()
