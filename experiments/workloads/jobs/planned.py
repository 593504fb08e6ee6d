"""The traffic of jobs between racks, which controllers of circuits know before they start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import networkx as nx
import numpy as np

from ringleaf.hosts.schedulers.common.forecast import foresee
from ringleaf.networks.endpoints.assignment import JobAssignment
from ringleaf.networks.endpoints.rack_demand import PlannedTraffic
from ringleaf.topologies.graph import index
from ringleaf.topologies.switching.plan import Planned
from ringleaf.topologies.switching.ways import CircuitWays


def planned_jobs(
    graph: nx.Graph[str], assignments: Sequence[JobAssignment], places: Sequence[Sequence[str]]
) -> Planned:
    """Return the bytes between racks of all iterations of jobs, by the racks of their ranks.

    Args:
        graph: A topology with circuits.
        assignments: The jobs.
        places: The hosts of each job's ranks, then those of its servers.
    """
    ways = CircuitWays(graph)
    traffic, of_host = PlannedTraffic(len(ways.racks)), ways.racks_of_hosts(graph)
    for each, place, rounds in zip(assignments, places, iterations(assignments), strict=True):
        rack_of = np.array([of_host[index(host)] for host in place], np.int64)
        pieces = Counter(piece.elements for piece in each.job.pieces)
        for elements, count in pieces.items():
            schedule = each.schedule_for(elements)
            traffic.add(schedule, rack_of, elements, each.dtype.itemsize, rounds * count)
    return traffic.planned()


def iterations(assignments: Sequence[JobAssignment]) -> list[int]:
    """Return the iterations of each job; one without end has as many as there is time for.

    That is from its start until the last of the others is over, if each had the network to itself.
    """
    ends = [
        each.job.start_ps + each.job.iterations * _period_ps(each)
        for each in assignments
        if each.job.iterations is not None
    ]
    return [
        max(-(-(max(ends, default=0) - each.job.start_ps) // max(_period_ps(each), 1)), 1)
        if each.job.iterations is None
        else each.job.iterations
        for each in assignments
    ]


def _period_ps(each: JobAssignment) -> int:
    """Return the time of an iteration of a job that runs alone."""
    assert each.collective_ps is not None
    return foresee(each.job.model, each.job.pieces, each.collective_ps, each.job.steps).period_ps
