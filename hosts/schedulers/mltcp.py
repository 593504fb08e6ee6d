"""MLTCP (Rajasekaran et al., arXiv 2402.09589, HotNets 2024): windows that grow with progress.

The source fixes that a sender's window grows by F(bytes sent in this iteration / all bytes of it)
times the additive increase of the congestion control below, where F is linear and rises. So a job
that is ahead gets ahead further, and jobs come to send in turns by themselves. `SLOPE` and
`INTERCEPT` are from memory, and parameters. Chosen here: the share is brought up to date when a
collective starts, and a collective is a partition. It needs a controller whose growth has a factor:
with `cc: dctcp` or `cc: dcqcn`. The order is first in, first out.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import Release, Situation, Standing
from ringleaf.hosts.schedulers.fifo import FifoScheduler

SLOPE = 1.75
INTERCEPT = 0.25
PARTITION_BYTES = 256 << 10


def gain(job: Standing) -> float:
    """Return the factor on the growth of windows."""
    return SLOPE * (1 - job.left_bytes / job.size_bytes) + INTERCEPT


class Mltcp(FifoScheduler):
    """The MLTCP scheduler."""

    name = "mltcp"
    title = "MLTCP"
    partition_bytes: int | None = PARTITION_BYTES
    wants_gain = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, with their job's factor."""
        return [replace(each, gain=gain(now.jobs[each.item.job])) for each in super().release(now)]


SCHEDULER = Mltcp()
