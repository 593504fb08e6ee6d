"""The slots that a job of SwitchML gets on each switch of its tree."""

from __future__ import annotations

import networkx as nx

from ringleaf.core.units import format_count, serialize_ps
from ringleaf.errors import ConfigError
from ringleaf.ina.switchml.control import ENTRIES, SwitchmlJob
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.graph import link
from ringleaf.topologies.trees import AggregationTree


def slowest_ps(graph: nx.Graph[str], tree: AggregationTree, size_bytes: int) -> int:
    """Return the time that so many bytes take on the slowest link of the tree."""
    rate_bps = min(
        link(graph, *ends).rate_bps
        for switch, children in tree.children.items()
        for child in children
        for ends in ((switch, child), (child, switch))
    )
    return serialize_ps(size_bytes, rate_bps)


def deal_job(name: str, request: JobRequest, packet_ps: int) -> SwitchmlJob:
    """Return the job with its slots: twice a path's capacity, within its share of each switch.

    Raises:
        ConfigError: If they are more than the share: the next one is another job's.
    """
    first, most = request.share.cut(ENTRIES[request.lanes] // 2)
    if most < 1:
        raise ConfigError(
            f"{name} job {request.number}: a switch must have a slot for each of "
            f"{format_count(request.share.of, 'job')}, got {request.share.entries}"
        )
    slots = request.slots
    if slots is None:
        slots = min(max(2 * request.rtt_ps // packet_ps, 8), most)
    elif slots > most:
        raise ConfigError(
            f"{name} job {request.number}: slots must be at most {most}, its share of a switch "
            f"for {format_count(request.share.of, 'job')}, got {slots}; ask for fewer, or for more "
            "entries"
        )
    return SwitchmlJob(request.number, slots, first_slot=first, lanes=request.lanes)
