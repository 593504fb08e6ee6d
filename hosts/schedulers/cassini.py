"""CASSINI (Rajasekaran et al., NSDI 2024): jobs shifted in time, so that they send in turns.

Each job's demand on a link repeats with its iterations, which are laid round a circle
(`scheduling.circle`); rotating them finds the shifts at which jobs that share the link exceed its
capacity least. Jobs and shared links make a graph: each link's shifts hold relative to one another,
and walking from job to job gives each a shift of its own (t_j = t_i - t_i^l + t_j^l, modulo its
iteration). The source has that for graphs without loops only.

The paper's text was not at hand; geometry and score are from memory, and parameters. Chosen here:
demands are those of a forecast of each job alone; a link that closes a loop is left out, the least
loaded first; jobs are shifted once, before they begin, as their iterations do not drift by
themselves; candidates for placement are not compared. Gradients go first in, first out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import lcm

import numpy as np

from ringleaf.hosts.schedulers.common.circle import ANGLES, best_rotations, demand, turns
from ringleaf.hosts.schedulers.common.hooks import Prospect
from ringleaf.hosts.schedulers.fifo import FifoScheduler

Link = tuple[str, str]

FULL = 1.0001
"""Demands of jobs together that a link carries without any shift."""


def link_shifts(jobs: Mapping[int, Prospect], link: Link) -> dict[int, int]:
    """Return the shifts, in picoseconds, by which jobs fit best on a link that they share."""
    counts = turns([job.period_ps for job in jobs.values()])
    size = ANGLES * lcm(*counts)
    demands = []
    for job, count in zip(jobs.values(), counts, strict=True):
        load = _load(job, link)
        demands.append(np.tile(demand(job.period_ps, job.busy_ps, load, size // count), count))
    _, rotations = best_rotations(demands, counts)
    return {
        number: way * job.period_ps * count // size
        for (number, job), way, count in zip(jobs.items(), rotations, counts, strict=True)
    }


def _load(job: Prospect, link: Link) -> float:
    """Return the part of a link's capacity that a job wants while it sends."""
    return job.link_ps.get(link, 0.0) / max(job.link_ps.values())


def shared_links(jobs: Mapping[int, Prospect]) -> dict[Link, list[int]]:
    """Return the links on which jobs hinder one another, without loops, and their jobs."""
    links = {link for job in jobs.values() for link in job.link_ps}
    load = {link: sum(_load(job, link) for job in jobs.values()) for link in links}
    group = {number: number for number in jobs}  # jobs that links join so far
    by_link: dict[Link, list[int]] = {}
    for link in sorted(links, key=lambda link: (-load[link], link)):
        on_it = [number for number, job in jobs.items() if job.link_ps.get(link)]
        joined = {group[number] for number in on_it}
        if load[link] > FULL and len(on_it) > 1 and len(joined) == len(on_it):
            by_link[link] = on_it
            first = min(joined)
            group = {job: first if own in joined else own for job, own in group.items()}
    return by_link


def shifts(jobs: Mapping[int, Prospect]) -> dict[int, int]:
    """Return each job's shift, by walking the graph of jobs and the links that they share.

    The first of those that links join begins when it likes; the others are shifted against it.
    """
    links = shared_links(jobs)
    own = {
        link: link_shifts({number: jobs[number] for number in on_it}, link)
        for link, on_it in links.items()
    }
    by_job: dict[int, int] = {}
    for root in jobs:
        if root in by_job:
            continue
        by_job[root] = jobs[root].start_ps % jobs[root].period_ps  # it need not wait
        queue = deque([root])
        while queue:
            here = queue.popleft()
            for link, on_it in links.items():
                for there in on_it if here in on_it else ():
                    if there not in by_job:
                        shift = by_job[here] - own[link][here] + own[link][there]
                        by_job[there] = shift % jobs[there].period_ps
                        queue.append(there)
    return by_job


class Cassini(FifoScheduler):
    """The CASSINI scheduler."""

    name = "cassini"
    title = "CASSINI"
    sees_links = True

    def starts(self, jobs: Mapping[int, Prospect]) -> dict[int, int]:
        """Return the first time from each job's start on at which an iteration is due."""
        usable = {number: job for number, job in jobs.items() if job.link_ps and job.period_ps}
        starts = {number: job.start_ps for number, job in jobs.items()}
        for number, shift_ps in shifts(usable).items():
            job = jobs[number]
            starts[number] += (shift_ps - job.start_ps) % job.period_ps
        return starts


SCHEDULER = Cassini()
