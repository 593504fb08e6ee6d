"""A job of SwitchML: its agents and the entities of switches."""

from __future__ import annotations

import networkx as nx

import ringleaf.ina.switchml.worker as worker
from ringleaf.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.hosts.agent import HostAgent
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.switchml.control import ENTRIES, SwitchmlJob, entities
from ringleaf.ina.switchml.state import TENSORS, make_worker
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import index, link
from ringleaf.topologies.trees import AggregationTree, aggregation_tree
from ringleaf.units import serialize_ps


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over the tree of least depth; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    tree = aggregation_tree(graph, request.members, index=request.number - 1)
    packet_ps = slowest_ps(graph, tree, VALUES_AT + 4 * request.lanes + LINE_OVERHEAD_BYTES)
    job = _job(request, packet_ps)
    workers = [
        make_worker(
            store,
            host=index(host),
            ring=request.ring,
            job=job.number,
            workers=len(request.members),
            slots=job.slots,
            lanes=job.lanes,
            mac=mac(graph, host, 1),
            address=ipv4(graph, host),
            min_timeout_ps=2 * max(request.rtt_ps, job.slots * packet_ps),
        )
        for host in request.members
    ]
    agents = [
        HostAgent(index(host), worker, at)
        for host, at in zip(request.members, workers, strict=True)
    ]
    return WorkersJob(
        "switchml",
        entities(graph, tree, job),
        agents,
        worker.begin_tensor,
        window_bytes=4 * job.slots * job.lanes,
        tensors_at=TENSORS,
    )


def slowest_ps(graph: nx.Graph[str], tree: AggregationTree, size_bytes: int) -> int:
    """Return the time that so many bytes take on the slowest link of the tree."""
    rate_bps = min(
        link(graph, *ends).rate_bps
        for switch, children in tree.children.items()
        for child in children
        for ends in ((switch, child), (child, switch))
    )
    return serialize_ps(size_bytes, rate_bps)


def _job(request: JobRequest, packet_ps: int) -> SwitchmlJob:
    """Return the job with its slots: twice a path's capacity, within its share of each switch.

    Raises:
        ConfigError: If they are more than the share: the next one is another job's.
    """
    first, most = request.share.cut(ENTRIES[request.lanes] // 2)
    if most < 1:
        raise ConfigError(
            f"switchml job {request.number}: a switch must have a slot for each of "
            f"{request.share.of} jobs, got {request.share.entries}"
        )
    slots = request.slots
    if slots is None:
        slots = min(max(2 * request.rtt_ps // packet_ps, 8), most)
    elif slots > most:
        raise ConfigError(
            f"switchml job {request.number}: slots must be at most {most}, its share of a switch "
            f"that {request.share.of} jobs use, got {slots}; ask for fewer, or for more entries"
        )
    return SwitchmlJob(request.number, slots, first_slot=first, lanes=request.lanes)
