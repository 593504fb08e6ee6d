"""Varys (Chowdhury et al., SIGCOMM 2014): smallest effective bottleneck first, at rates that fit.

Coflows are served in the order of the time that their bottleneck needs for what is left (SEBF). All
flows of one end together, as none is sent faster than the bottleneck allows (MADD), and later
coflows get what is left of each link. Chosen here: a coflow is the gradient of a job's iteration; a
link's load is that of the routes, with equal parts where switches choose; a job gets at least
`ranking.LEAST` of the line, and a collective keeps the rate with which it began. The paper also
gives spare bandwidth to whoever has a use for it; rates are those of jobs that send at the time.
"""

from __future__ import annotations

from dataclasses import replace

from ringleaf.hosts.schedulers.fifo import Fifo
from ringleaf.hosts.scheduling.interface import Release, Situation, Standing
from ringleaf.hosts.scheduling.ranking import PARTITION_BYTES, leftovers, rate_bps, sending


def bottleneck_ps(job: Standing) -> float:
    """Return the time that a job's busiest link needs for what is left of its gradient."""
    return job.left_bytes * job.bottleneck_ps


class Varys(Fifo):
    """The Varys scheduler."""

    name = "varys"
    title = "Varys"
    partition_bytes: int | None = PARTITION_BYTES
    sees_links = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, at rates by the order of coflows."""
        order = sorted(sending(now), key=lambda job: (bottleneck_ps(now.jobs[job]), job))
        speeds = leftovers(order, now.jobs)
        return [
            replace(each, rate_bps=rate_bps(now.jobs[each.item.job], speeds[each.item.job]))
            for each in super().release(now)
        ]


SCHEDULER = Varys()
