"""Sincronia (Agarwal et al., SIGCOMM 2018): coflows in an order that each link's load decides.

Bottleneck, select, scale, iterate: of the link with the most bytes, the coflow goes last that has
the least weight per byte there; the others' weights are reduced by what they have there in
proportion; and so on with the rest. The order alone is within a factor of 4 of the best, as
priorities enforce it. Chosen here: a coflow is what is left of the gradient of a job's iteration,
its weight is the job's, and bytes on links are those of the routes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ringleaf.hosts.schedulers.common.interface import Release, Situation
from ringleaf.hosts.schedulers.common.ranking import PARTITION_BYTES, by_rank
from ringleaf.hosts.schedulers.fifo import FifoScheduler

Demand = Mapping[tuple[str, str], float]
"""Time that a coflow keeps each link busy."""


def order(demands: Mapping[int, Demand], weights: Mapping[int, float]) -> list[int]:
    """Return coflows, the first to be served first; those without demand come last."""
    left = {job for job, demand in demands.items() if any(demand.values())}
    weight = dict(weights)
    coflows = sorted(set(demands) - left, reverse=True)  # from the last on
    while left:
        total: defaultdict[tuple[str, str], float] = defaultdict(float)
        for job in sorted(left):
            for link, time in demands[job].items():
                total[link] += time
        busiest = max(total, key=lambda link: total[link])
        there = {job: demands[job].get(busiest, 0.0) for job in left}
        on_it = sorted(job for job in left if there[job] > 0)
        last = min(on_it, key=lambda job: (weight[job] / there[job], -job))
        for job in on_it:
            if job != last:
                weight[job] -= weight[last] * there[job] / there[last]
        left.remove(last)
        coflows.append(last)
    return coflows[::-1]


class Sincronia(FifoScheduler):
    """The Sincronia scheduler."""

    name = "sincronia"
    title = "Sincronia"
    partition_bytes: int | None = PARTITION_BYTES
    sees_links = True
    weighs = True

    def release(self, now: Situation) -> list[Release]:
        """Return the releases of first in, first out, with the priority of their coflow."""
        demands = {
            number: {link: busy_ps * job.left_bytes for link, busy_ps in job.link_ps.items()}
            for number, job in now.jobs.items()
        }
        weights = {number: job.weight for number, job in now.jobs.items()}
        return by_rank(super().release(now), order(demands, weights))


SCHEDULER = Sincronia()
