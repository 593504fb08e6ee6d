"""Liquid (TPDS 2021), its network part: jobs placed so that few of them send between switches.

No more than surveys' accounts were at hand. They fix that a job's needs of accelerators, memory and
bandwidth are predicted, and that jobs are placed by best fit and by a grouping genetic algorithm,
one at a time or in batches, for little traffic between containers and few accelerators that are
left over here and there. Chosen here: all jobs of a spec are one batch; a job's bandwidth is its
gradient over its iteration, by a forecast and not by a random forest; hosts under one switch are
near each other; a job goes whole under the switch where least is left, and a genetic search
(`scheduling.grouping`) looks for groups with which jobs of less bandwidth are cut. What fits under
no switch takes the largest rests. Hosts are alike, so accelerators and memory decide nothing; jobs
do not share accelerators. The spec's placement does not count. Gradients go first in, first out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from ringleaf.hosts.schedulers.common.grouping import GroupSizes
from ringleaf.hosts.schedulers.common.hooks import Candidate, Place
from ringleaf.hosts.schedulers.fifo import FifoScheduler

SEED = 1


def bandwidth(job: Candidate) -> float:
    """Return the bytes that a job sends per picosecond of an iteration."""
    return job.size_bytes / max(job.period_ps, 1)


class Liquid(FifoScheduler):
    """The Liquid scheduler."""

    name = "liquid"
    title = "Liquid, network part"
    chooses_hosts = True

    def places(self, jobs: Sequence[Candidate], switches: Mapping[str, str]) -> list[Place]:
        """Return hosts under one switch for as many jobs as possible."""
        free: dict[str, list[str]] = {}
        for host, switch in switches.items():
            free.setdefault(switch, []).append(host)
        racks = list(free.values())
        needs = [len(job.hosts) for job in jobs]
        packing = GroupSizes(needs, [bandwidth(job) for job in jobs], [len(rack) for rack in racks])
        groups = packing.search(Random(SEED))
        places = {
            job: Place(_take([rack], needs[job]))
            for rack, group in zip(racks, groups, strict=True)
            for job in sorted(group)
        }
        for job in packing.missing(groups):
            places[job] = Place(_take(sorted(racks, key=lambda rack: -len(rack)), needs[job]))
        return [places[job] for job in range(len(jobs))]


def _take(racks: Sequence[list[str]], count: int) -> tuple[str, ...]:
    """Take hosts, all of the first rack before those of the next."""
    hosts: list[str] = []
    for rack in racks:
        need = count - len(hosts)
        hosts += rack[:need]
        del rack[:need]
    return tuple(hosts)


SCHEDULER = Liquid()
