"""Varys (Chowdhury et al., SIGCOMM 2014): smallest effective bottleneck first, at rates that fit.

Coflows are served in the order of the time that their bottleneck needs for what is left (SEBF). All
flows of one end together, as none is sent faster than the bottleneck allows (MADD); later coflows
get what is left of each link, and spare bandwidth goes to whoever has a use for it. Chosen here: a
coflow is the gradient of a job's iteration; a link's load is that of the routes, with equal parts
where switches choose; what is left goes to later coflows by the strict priority of earlier ones'
packets; and a collective keeps the priority with which it began.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import Release, Situation, Standing
from ringleaf.hosts.schedulers.common.ranking import (
    PARTITION_BYTES,
    by_rank,
    own_speed,
    rate_bps,
    sending,
)
from ringleaf.hosts.schedulers.fifo import FifoScheduler


def bottleneck_ps(job: Standing) -> float:
    """Return the time that a job's busiest link needs for what is left of its gradient."""
    return job.left_bytes * job.bottleneck_ps


class Varys(FifoScheduler):
    """The Varys scheduler."""

    name = "varys"
    title = "Varys"
    partition_bytes: int | None = PARTITION_BYTES
    sees_links = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, in the order and at the pace of coflows."""
        order = sorted(sending(now), key=lambda job: (bottleneck_ps(now.jobs[job]), job))
        return [
            replace(each, rate_bps=rate_bps(job, own_speed(job)))
            for each in by_rank(super().release(now), order)
            for job in (now.jobs[each.item.job],)
        ]


SCHEDULER = Varys()
