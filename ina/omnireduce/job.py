"""A job of OmniReduce: its agents and the entities of switches."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.errors import ConfigError
from ringleaf.hosts.agent import HostAgent
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.omnireduce import aggregator, worker
from ringleaf.ina.omnireduce.ledger import make_aggregator
from ringleaf.ina.omnireduce.state import TENSORS, OmniReduceAddress, check_lanes, make_worker
from ringleaf.ina.omnireduce.wire import BLOCK, MAX_SLOTS, values_at
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import index
from ringleaf.topologies.loads import busiest_ps, link_loads
from ringleaf.topologies.routing import dealt, routes

LEAST_SLOTS = 8
MOST_SLOTS = 1 << 12


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job.

    Slots are dealt to the servers, which aggregate; without any, each worker's host does, too.
    There are as many as keep the busiest link busy for two round trips. No resources of
    switches are needed.

    Raises:
        ConfigError: If a number is out of range.
    """
    where, lanes = f"omnireduce job {request.number}", request.lanes
    columns = check_lanes(where, lanes)
    places = tuple(request.servers or request.members)
    packet_bytes = values_at(columns) + 4 * columns * BLOCK + LINE_OVERHEAD_BYTES
    turn_ps = busiest_ps(graph, _slot_loads(graph, request.members, places), packet_bytes)
    slots = request.slots
    if slots is None:
        each = max(2 * request.rtt_ps // turn_ps, LEAST_SLOTS) // -len(places)
        slots = min(-each * len(places), MOST_SLOTS)  # as many for each, or one has most to do
    if not 0 < slots <= MAX_SLOTS:
        raise ConfigError(f"{where}: slots must be 1 to {MAX_SLOTS}, got {slots}")
    most = -(-slots // len(places))  # slots of the place that has most: links to it are busiest
    least_ps, quiet_ps = request.timeouts_ps(most * len(places) * turn_ps)
    agents = make_agents(
        graph,
        store,
        number=request.number,
        members=request.members,
        places=places,
        ring=request.ring,
        lanes=lanes,
        slots=slots,
        min_timeout_ps=least_ps,
        quiet_ps=quiet_ps,
    )
    return WorkersJob(
        "omnireduce",
        {},  # switches just forward
        agents,
        worker.begin_tensor,
        window_bytes=4 * slots * lanes,
        tensors_at=TENSORS,
    )


def _slot_loads(
    graph: nx.Graph[str], members: Sequence[str], places: Sequence[str]
) -> dict[tuple[str, str], float]:
    """Return the packets that each link carries per slot and round: updates and as many results."""
    demand: dict[str, dict[str, float]] = {}
    for ends in (members, places), (places, members):
        for dst in ends[1]:
            row = demand.setdefault(dst, {})
            for src in ends[0]:
                row[src] = row.get(src, 0.0) + 1 / len(places)
    return link_loads(graph, demand, dealt(graph, routes(graph)))


def make_agents(
    graph: nx.Graph[str],
    store: Store,
    *,
    number: int,
    members: Sequence[str],
    places: Sequence[str],
    ring: int,
    lanes: int,
    slots: int,
    min_timeout_ps: int,
    quiet_ps: int = 0,
    first_round: int = 0,
) -> list[HostAgent]:
    """Return a job's workers, in their order, then its aggregators."""
    workers, aggregators = (
        [OmniReduceAddress(mac(graph, host, 1), ipv4(graph, host)) for host in names]
        for names in (members, places)
    )
    agents = []
    for rank, host in enumerate(members):
        at = make_worker(
            store,
            host=index(host),
            ring=ring,
            job=number,
            rank=rank,
            own=workers[rank],
            aggregators=aggregators,
            slots=slots,
            lanes=lanes,
            min_timeout_ps=min_timeout_ps,
            quiet_ps=quiet_ps,
            first_round=first_round,
        )
        agents.append(HostAgent(index(host), worker, at))
    for which, host in enumerate(places):
        at = make_aggregator(
            store,
            host=index(host),
            ring=ring,
            job=number,
            number=which,
            aggregators=len(places),
            own=aggregators[which],
            workers=workers,
            slots=slots,
            lanes=lanes,
            first_round=first_round,
        )
        agents.append(HostAgent(index(host), aggregator, at))
    return agents
