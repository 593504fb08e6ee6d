"""The traffic of a graph of work between racks, which controllers of circuits know before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

from ringleaf.experiments.workloads.graph.schedules import ITEM_BYTES, Scheduling, elements_of
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.networks.endpoints.rack_demand import PlannedTraffic
from ringleaf.topologies.graph import index
from ringleaf.topologies.switching.plan import Planned
from ringleaf.topologies.switching.ways import CircuitWays


def planned_traffic(
    graph: nx.Graph[str], meetings: Sequence[MatchedWork], scheduling: Scheduling, at: Sequence[str]
) -> Planned:
    """Return the bytes between racks of all meetings, those of allreduces by their racks.

    Args:
        graph: A topology with circuits.
        meetings: What ranks do together.
        scheduling: The schedules of meetings.
        at: The host of each rank.
    """
    ways = CircuitWays(graph)
    traffic, of_host = PlannedTraffic(len(ways.racks)), ways.racks_of_hosts(graph)
    rack_of = np.array([of_host[index(host)] for host in at], np.int64)
    alike: dict[tuple[Any, ...], list[MatchedWork]] = {}
    for each in meetings:
        key = each.ranks, each.call, elements_of(each), each.root
        alike.setdefault(key, []).append(each)
    for meeting, *others in alike.values():
        elements = elements_of(meeting)
        schedule = scheduling.schedule(meeting, elements)
        members = rack_of[list(meeting.ranks)]
        traffic.add(schedule, members, elements, ITEM_BYTES, 1 + len(others))
    return traffic.planned()
