"""A job of PANAMA: its agents and the entities of switches."""

from __future__ import annotations

import networkx as nx

import ringleaf.ina.panama.worker as worker
from ringleaf.core.arena import Store
from ringleaf.hosts.agent import HostAgent
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.panama.control import choose_job, choose_trees, entities, turn_ps
from ringleaf.ina.panama.pacing import make_paces
from ringleaf.ina.switchml.keeping import keep_packets
from ringleaf.ina.switchml.rebuilding import TreeRebuilder
from ringleaf.ina.switchml.state import TENSORS, make_worker
from ringleaf.ina.switchml.wire import VALUES_AT
from ringleaf.ina.systems import JobRequest
from ringleaf.ina.window_registry import find_window
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import index

DCTCP = "dctcp"
"""The published window, which is taken if none is named."""


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over trees of least depth from different roots; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    trees = choose_trees(graph, request)
    job = choose_job(graph, trees, request)
    chosen = find_window(request.congestion or DCTCP)
    in_flight_ps = job.slots // len(trees) * turn_ps(graph, trees, job.lanes)
    least_ps, quiet_ps = request.timeouts_ps(in_flight_ps)
    agents, workers = [], []
    for host in request.members:
        at = make_worker(
            store,
            host=index(host),
            ring=request.ring,
            job=job.number,
            workers=len(request.members),
            slots=job.slots,
            lanes=job.lanes,
            mac=mac(graph, host, 1),
            address=ipv4(graph, host),
            min_timeout_ps=least_ps,
            quiet_ps=quiet_ps,
            trees=len(trees),
        )
        make_paces(store, at, chosen)
        if request.rebuilds:
            keep_packets(store, at, VALUES_AT + 4 * job.lanes)
        workers.append(at)
        agents.append(HostAgent(index(host), worker, at))
    rebuilder = TreeRebuilder(
        trees,
        lambda left: choose_trees(left, request),
        lambda others: entities(graph, others, job),
        workers,
        worker.begin_again,
    )
    return WorkersJob(
        "panama",
        entities(graph, trees, job),
        agents,
        worker.begin_tensor,
        window_bytes=4 * job.slots * job.lanes,
        tensors_at=TENSORS,
        rebuilder=rebuilder if request.rebuilds else None,
    )
