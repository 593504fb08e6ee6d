"""A job of SwitchML, or of a system made from it: its agents and the entities of switches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx

import ringleaf.ina.switchml.worker as worker
from ringleaf.arena import Arena, Store
from ringleaf.errors import ConfigError
from ringleaf.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.headers import UDP_PAYLOAD_AT
from ringleaf.hosts.agent import HostAgent, HostProtocol
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.switchml.control import ENTRIES, SwitchmlJob, entities
from ringleaf.ina.switchml.state import TENSORS, make_worker
from ringleaf.ina.switchml.wire import FIRST_UDP_PORT, HEADER_BYTES
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import index, link
from ringleaf.topologies.trees import AggregationTree, aggregation_tree
from ringleaf.units import serialize_ps


@dataclass(frozen=True, slots=True)
class Kind:
    """The parts in which systems made from SwitchML differ.

    Args:
        name: The system's name.
        protocol: The workers' handlers.
        begin_tensor: The handler that is called with the row of a posted tensor.
        first_port: The first of its UDP ports.
        header_bytes: Bytes of its header.
        fraction_bits: Bits of fraction of fixed-point numbers; None: blocks have exponents.
        extend: Gives a worker, at this offset, words of the system's own.
    """

    name: str
    protocol: HostProtocol
    begin_tensor: Callable[[Arena, int, int, int], int]
    first_port: int = FIRST_UDP_PORT
    header_bytes: int = HEADER_BYTES
    fraction_bits: int | None = None
    extend: Callable[[Store, int], None] = lambda _store, _at: None


SWITCHML = Kind("switchml", worker, worker.begin_tensor)


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over the tree of least depth; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return join_as(SWITCHML, graph, store, request)


def join_as(kind: Kind, graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job of a system made from SwitchML, as `join` does.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    tree = aggregation_tree(graph, request.members, index=request.number - 1)
    head_bytes = UDP_PAYLOAD_AT + kind.header_bytes
    packet_ps = slowest_ps(graph, tree, head_bytes + 4 * request.lanes + LINE_OVERHEAD_BYTES)
    job = _job(kind.name, request, packet_ps)
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
            first_port=kind.first_port,
            header_bytes=kind.header_bytes,
            fraction_bits=kind.fraction_bits,
        )
        for host in request.members
    ]
    for at in workers:
        kind.extend(store, at)
    agents = [
        HostAgent(index(host), kind.protocol, at)
        for host, at in zip(request.members, workers, strict=True)
    ]
    return WorkersJob(
        kind.name,
        entities(graph, tree, job),
        agents,
        kind.begin_tensor,
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


def _job(name: str, request: JobRequest, packet_ps: int) -> SwitchmlJob:
    """Return the job with its slots: twice a path's capacity, within its share of each switch.

    Raises:
        ConfigError: If they are more than the share: the next one is another job's.
    """
    first, most = request.share.cut(ENTRIES[request.lanes] // 2)
    if most < 1:
        raise ConfigError(
            f"{name} job {request.number}: a switch must have a slot for each of "
            f"{request.share.of} jobs, got {request.share.entries}"
        )
    slots = request.slots
    if slots is None:
        slots = min(max(2 * request.rtt_ps // packet_ps, 8), most)
    elif slots > most:
        raise ConfigError(
            f"{name} job {request.number}: slots must be at most {most}, its share of a switch "
            f"that {request.share.of} jobs use, got {slots}; ask for fewer, or for more entries"
        )
    return SwitchmlJob(request.number, slots, first_slot=first, lanes=request.lanes)
