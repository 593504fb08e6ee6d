"""A job of ATP: its agents and the entities of switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import HostAgent
from ringleaf.ina.atp import server, worker
from ringleaf.ina.atp.control import (
    AGGREGATORS,
    AtpJob,
    Entities,
    EntitiesOf,
    block_loads,
    deliveries,
    delivery_trees,
    entities,
    first_aggregators,
)
from ringleaf.ina.atp.ledger import make_server
from ringleaf.ina.atp.limits import window_of
from ringleaf.ina.atp.moving import AggregatorMover
from ringleaf.ina.atp.rebuilding import DeliveryRebuilder
from ringleaf.ina.atp.roster import make_roster
from ringleaf.ina.atp.state import TENSORS, AtpAddress, make_worker
from ringleaf.ina.atp.wire import VALUES_AT
from ringleaf.ina.congestion import Window
from ringleaf.ina.holdings import Holding, entry_bps
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.systems import JobRequest
from ringleaf.ina.window_registry import AIMD, find_window
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.detours import detours
from ringleaf.topologies.graph import index
from ringleaf.topologies.loads import busiest_ps

LEAST_WINDOW = 8
MOST_WINDOW = 4096


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job of at most 64 racks of 64 workers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return join_as("atp", AIMD, graph, store, request)


def join_as(
    system: str,
    window: str,
    graph: nx.Graph[str],
    store: Store,
    request: JobRequest,
    entities_of: EntitiesOf = entities,
) -> WorkersJob:
    """Make a job of ATP or of a system that has its agents and entities.

    Blocks are dealt to the parameter servers; without any, each worker's host has one, so
    that no link carries more than the others. All jobs may take the share's `entries`, each
    switch's aggregators. Slots, the window, are rounded up to a power of two.

    Args:
        system: The system's name.
        window: The name of its congestion window, if the request names none.
        graph: The topology.
        store: The store that holds the agents' state.
        request: The job.
        entities_of: Function that makes the switches' entities.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    lanes, slots, entries_most = request.lanes, request.slots, request.share.entries
    loads = block_loads(graph, request.members, request.servers or request.members)
    turn_ps = busiest_ps(graph, loads, VALUES_AT + 4 * lanes + LINE_OVERHEAD_BYTES)
    if slots is None:
        slots = min(max(2 * request.rtt_ps // turn_ps, LEAST_WINDOW), MOST_WINDOW)
    available = AGGREGATORS[lanes] if entries_most is None else entries_most
    job = AtpJob(
        request.number,
        tuple(request.members),
        tuple(request.servers or request.members),
        aggregators=available,
        window=window_of(slots),
        lanes=lanes,
    )
    agents = make_agents(
        graph,
        store,
        job,
        ring=request.ring,
        min_timeout_ps=2 * request.rtt_ps,  # queues may take longer; then only probes are sent
        rtt_ps=request.rtt_ps,
        quiet_ps=request.quiet_ps,
        ecmp=request.ecmp or any(not each.via for each in detours(graph).values()),
        window=find_window(request.congestion or window),
    )
    by_switch, mover = entities_of(graph, job), None
    if request.moves:
        mover, by_switch = _partition(graph, store, request, job, agents, entities_of)
    rebuilder = None
    if request.rebuilds:
        rebuilder = DeliveryRebuilder(
            delivery_trees(graph, job),
            lambda left: delivery_trees(left, job),
            lambda trees: deliveries(graph, job, trees),
            [agent.block for agent in agents],
            [agent.block for agent in agents[len(job.workers) :]],
        )
    return WorkersJob(
        system,
        by_switch,
        agents,
        worker.begin_tensor,
        window_bytes=4 * job.window * lanes,
        tensors_at=TENSORS,
        mover=mover,
        rebuilder=rebuilder,
    )


def _partition(
    graph: nx.Graph[str],
    store: Store,
    request: JobRequest,
    job: AtpJob,
    agents: Sequence[HostAgent],
    entities_of: EntitiesOf,
) -> tuple[AggregatorMover, dict[str, Entities]]:
    """Give a job aggregators of its own, its share; return its mover, and switches' entities.

    Raises:
        ConfigError: If there are fewer aggregators than jobs.
    """
    share = Holding(*request.share.cut(job.aggregators))
    if not share.entries:
        raise ConfigError(
            f"atp job {job.number}: a switch must have an aggregator for each of "
            f"{format_count(request.share.of, 'job')}, got {job.aggregators}"
        )
    blocks = [agent.block for agent in agents]
    available = request.share.exchanged(job.aggregators)
    mover = AggregatorMover(
        job,
        workers=blocks[: len(job.workers)],
        servers=blocks[len(job.workers) :],
        entities_of=lambda moved: entities_of(graph, moved),
        holding=share,
        most=min(job.window, available),
        available=available,
        entry_bps=entry_bps(graph, request.lanes, request.lanes),
    )
    mover.move(store.arena, share)
    return mover, entities_of(graph, replace(job, aggregators=share.stop))


def make_agents(
    graph: nx.Graph[str],
    store: Store,
    job: AtpJob,
    *,
    ring: int,
    min_timeout_ps: int,
    rtt_ps: int,
    quiet_ps: int = 0,
    ecmp: bool = False,
    window: Window,
    first_sequence: int = 0,
) -> list[HostAgent]:
    """Return a job's workers, in their order, then its parameter servers."""
    workers, servers = (
        [AtpAddress(mac(graph, host, 1), ipv4(graph, host)) for host in names]
        for names in (job.workers, job.servers)
    )
    rosters = [make_roster(graph, job.workers, host, job.bits) for host in job.servers]
    aggregators = first_aggregators(job)
    agents = []
    for number, host in enumerate(job.workers):
        at = make_worker(
            store,
            host=index(host),
            ring=ring,
            job=job.number,
            number=number,
            own=workers[number],
            servers=servers,
            places=[roster.places[number] for roster in rosters],
            aggregators=aggregators,
            lanes=job.lanes,
            min_timeout_ps=min_timeout_ps,
            window=window,
            base_ps=rtt_ps,
            quiet_ps=quiet_ps,
            first_sequence=first_sequence,
        )
        agents.append(HostAgent(index(host), worker, at))
    for number, host in enumerate(job.servers):
        at = make_server(
            store,
            host=index(host),
            ring=ring,
            job=job.number,
            number=number,
            own=servers[number],
            workers=workers,
            roster=rosters[number],
            positions=job.window,
            aggregators=job.aggregators,
            lanes=job.lanes,
            rtt_ps=rtt_ps,
            ecmp=ecmp,
        )
        agents.append(HostAgent(index(host), server, at))
    return agents
