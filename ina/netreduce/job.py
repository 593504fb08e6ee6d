"""A job of NetReduce: a ring of connections, its agents, and the entities of switches."""

from __future__ import annotations

from functools import partial

import networkx as nx

import ringleaf.ina.netreduce.worker as worker
from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.hosts import rc
from ringleaf.hosts.agent import AGENT_WORDS, HostAgent
from ringleaf.hosts.rc.wire import SOURCE_PORT_LOW, SOURCE_PORTS
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.netreduce.control import Connection, entities, window_of
from ringleaf.ina.netreduce.state import RC, TENSORS, join_ring, make_worker
from ringleaf.ina.netreduce.values import check_range
from ringleaf.ina.netreduce.wire import FROM_PREVIOUS, OVERHEAD_BYTES, TO_NEXT
from ringleaf.ina.switchml.control import ENTRIES, SwitchmlJob
from ringleaf.ina.switchml.dealing import slowest_ps
from ringleaf.ina.systems import JobRequest
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import index
from ringleaf.topologies.trees import aggregation_tree


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over the tree of least depth; it needs no servers.

    The window of a connection is a power of two: each of its packets has a slot in the switches.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    tree = aggregation_tree(graph, request.members, index=request.number - 1)
    packet_ps = slowest_ps(graph, tree, OVERHEAD_BYTES + 4 * request.lanes + LINE_OVERHEAD_BYTES)
    first, most = request.share.cut(ENTRIES[request.lanes] // 2)
    if most < 1:
        raise ConfigError(
            f"netreduce job {request.number}: a switch must have a slot for each of "
            f"{format_count(request.share.of, 'job')}, got {request.share.entries}"
        )
    slots = request.slots or max(2 * request.rtt_ps // packet_ps, 8)
    window = window_of(slots, most)
    job = SwitchmlJob(request.number, window, first_slot=first, lanes=request.lanes)
    agents = [
        make_worker(
            store,
            host=index(host),
            ring=request.ring,
            job=job.number,
            lanes=job.lanes,
            window=window,
            min_timeout_ps=2 * request.rtt_ps + 4 * window * packet_ps,
            rnr_wait_ps=request.rtt_ps,
            quiet_ps=request.quiet_ps,
        )
        for host in request.members
    ]
    connections = _connect(graph, store, request, agents)
    return WorkersJob(
        "netreduce",
        entities(graph, tree, job, connections),
        [
            HostAgent(index(host), worker, at)
            for host, at in zip(request.members, agents, strict=True)
        ],
        worker.begin_tensor,
        window_bytes=4 * job.slots * job.lanes,
        tensors_at=TENSORS,
        check=partial(check_range, workers=len(agents)),
    )


def _connect(
    graph: nx.Graph[str], store: Store, request: JobRequest, agents: list[int]
) -> list[Connection]:
    """Connect each worker to the next; return the connections."""
    hosts = request.members
    blocks = [int(store.arena.words[at + AGENT_WORDS + RC]) for at in agents]
    ends, connections = [], []
    for place, host in enumerate(hosts):
        after = (place + 1) % len(hosts)
        names = host, hosts[after]
        source_port = SOURCE_PORT_LOW + (131 * place + request.number) % SOURCE_PORTS
        for (here, there), numbers in (
            ((place, after), (TO_NEXT, FROM_PREVIOUS)),
            ((after, place), (FROM_PREVIOUS, TO_NEXT)),
        ):
            pair = hosts[here], hosts[there]
            ends.append(
                rc.QpEnd(
                    agent=blocks[here],
                    number=numbers[0],
                    peer_qp=numbers[1],
                    macs=(mac(graph, pair[0], 1), mac(graph, pair[1], 1)),
                    addresses=(ipv4(graph, pair[0]), ipv4(graph, pair[1])),
                    source_port=source_port,
                )
            )
        connections.append(Connection(*names, source_port))
    join_ring(store, request.number, ends)
    return connections
