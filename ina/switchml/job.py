"""A job of SwitchML, or of a system made from it: its agents and the entities of switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

import ringleaf.ina.switchml.worker as worker
from ringleaf.core.arena import Arena, Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.headers import UDP_PAYLOAD_AT
from ringleaf.hosts.agent import HostAgent, HostProtocol
from ringleaf.ina.holdings import Holding, entry_bps
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.switchml.control import ENTRIES, SwitchmlJob, entities
from ringleaf.ina.switchml.dealing import deal_job, slowest_ps
from ringleaf.ina.switchml.keeping import keep_packets
from ringleaf.ina.switchml.moving import SlotMover, deal_slots
from ringleaf.ina.switchml.rebuilding import TreeRebuilder
from ringleaf.ina.switchml.state import TENSORS, make_worker
from ringleaf.ina.switchml.wire import FIRST_UDP_PORT, HEADER_BYTES
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import index
from ringleaf.topologies.trees import AggregationTree, aggregation_tree


@dataclass(frozen=True, slots=True)
class SwitchMLVariant:
    """The parts in which systems made from SwitchML differ.

    Args:
        name: The system's name.
        protocol: The workers' handlers.
        begin_tensor: The handler that is called with the row of a posted tensor.
        first_port: The first of its UDP ports.
        header_bytes: Bytes of its header.
        fraction_bits: Bits of fraction of fixed-point numbers; None: blocks have exponents.
        elements: Elements of a block; None: as many as lanes.
        sum_lanes: Lanes of a packet between switches; None: as many as of a worker's.
        returns_sums: Whether results are as large.
        entities: Makes the entities of switches.
        extend: Gives a worker, at this offset, words of the system's own.
        moves: Whether a job's slots may change while it runs.
    """

    name: str
    protocol: HostProtocol
    begin_tensor: Callable[[Arena, int, int, int], int]
    first_port: int = FIRST_UDP_PORT
    header_bytes: int = HEADER_BYTES
    fraction_bits: int | None = None
    elements: int | None = None
    sum_lanes: int | None = None
    returns_sums: bool = False
    entities: Callable[
        [nx.Graph[str], AggregationTree, SwitchmlJob], Mapping[str, Sequence[Any]]
    ] = entities
    extend: Callable[[Store, int], None] = lambda _store, _at: None


SWITCHML = SwitchMLVariant("switchml", worker, worker.begin_tensor)


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over the tree of least depth; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return join_as(SWITCHML, graph, store, request)


def join_as(
    kind: SwitchMLVariant, graph: nx.Graph[str], store: Store, request: JobRequest
) -> WorkersJob:
    """Make a job of a system made from SwitchML, as `join` does.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    tree = aggregation_tree(graph, request.members, index=request.number - 1)
    head_bytes = UDP_PAYLOAD_AT + kind.header_bytes
    lanes = kind.sum_lanes or request.lanes
    if tree.depth == 1 and not kind.returns_sums:
        lanes = request.lanes
    packet_ps = slowest_ps(graph, tree, head_bytes + 4 * lanes + LINE_OVERHEAD_BYTES)
    moves = request.moves
    job = deal_job(kind.name, replace(request, slots=None) if moves else request, packet_ps)
    most = _most_slots(request, packet_ps) if moves else job.slots
    job = replace(job, slots=min(job.slots, most))
    least_ps, quiet_ps = request.timeouts_ps(most * packet_ps)
    workers = [
        make_worker(
            store,
            host=index(host),
            ring=request.ring,
            job=job.number,
            workers=len(request.members),
            slots=most,
            lanes=job.lanes,
            mac=mac(graph, host, 1),
            address=ipv4(graph, host),
            min_timeout_ps=least_ps,
            quiet_ps=quiet_ps,
            first_port=kind.first_port,
            header_bytes=kind.header_bytes,
            fraction_bits=kind.fraction_bits,
            elements=kind.elements,
        )
        for host in request.members
    ]
    for at in workers:
        kind.extend(store, at)
        if request.rebuilds:
            keep_packets(store, at, head_bytes + 4 * job.lanes)
    agents = [
        HostAgent(index(host), kind.protocol, at)
        for host, at in zip(request.members, workers, strict=True)
    ]
    mover = None
    if moves:
        for at in workers:
            deal_slots(store.arena, at, job.slots)
        mover = SlotMover(
            job,
            workers,
            lambda moved: kind.entities(graph, tree, moved),
            Holding(*request.share.cut(ENTRIES[request.lanes] // 2)),
            most,
            _available(request),
            entry_bps(graph, kind.elements or request.lanes, request.lanes),
        )
    return WorkersJob(
        kind.name,
        kind.entities(graph, tree, job),
        agents,
        kind.begin_tensor,
        window_bytes=4 * most * job.lanes,
        tensors_at=TENSORS,
        mover=mover,
        rebuilder=_rebuilder(kind, graph, request, job, workers, tree)
        if request.rebuilds
        else None,
    )


def _rebuilder(
    kind: SwitchMLVariant,
    graph: nx.Graph[str],
    request: JobRequest,
    job: SwitchmlJob,
    workers: Sequence[int],
    tree: AggregationTree,
) -> TreeRebuilder:
    """Return what builds a job's tree again, on what is left of the topology."""
    return TreeRebuilder(
        [tree],
        lambda left: [aggregation_tree(left, request.members, index=request.number - 1)],
        lambda others: kind.entities(graph, others[0], job),
        workers,
    )


def _available(request: JobRequest) -> int:
    """Return the slots of a switch that jobs exchange."""
    return request.share.exchanged(ENTRIES[request.lanes] // 2)


def _most_slots(request: JobRequest, packet_ps: int) -> int:
    """Return the slots that a job could use: those asked for, or twice a path's capacity."""
    slots = request.slots or max(2 * request.rtt_ps // packet_ps, 8)
    return min(slots, _available(request))
