"""The table entries of an ATP job: for aggregation at the switches, and for delivery of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from zlib import crc32

import finsy as fy
import networkx as nx

from ringleaf.core.units import format_count
from ringleaf.errors import ConfigError
from ringleaf.ina.atp.limits import BITS, check_counts
from ringleaf.ina.atp.roster import OF_JOB, Adder, make_roster
from ringleaf.ina.atp.wire import SIZES
from ringleaf.ina.job_numbers import check_job
from ringleaf.topologies.graph import attachment, port
from ringleaf.topologies.loads import link_loads
from ringleaf.topologies.routing import dealt, routes
from ringleaf.topologies.trees import AggregationTree, aggregation_tree

AGGREGATORS = {64: 8192, 256: 2048}
"""Register entries of the program for so many lanes, as `p4/atp.p4` has them."""

GROUPS_PER_JOB = 256
"""A server's multicast group is 256 * (1 + server) + job; SwitchML's groups are below."""

Entities: TypeAlias = list[fy.P4TableEntry | fy.P4MulticastGroupEntry]
EntitiesOf: TypeAlias = Callable[["nx.Graph[str]", "AtpJob"], dict[str, Entities]]


@dataclass(frozen=True, slots=True)
class AtpJob:
    """A job: who takes part, and what it may use.

    Args:
        number: 1 to 255.
        workers: Hosts, at most 64 racks of 64.
        servers: Hosts of its parameter servers; workers' hosts may be among them.
        aggregators: Number of aggregators, the first ones of each switch; jobs may share them.
        window: Blocks by which a worker can be ahead of another, a power of two.
        lanes: Values in a packet.
        bits: Bits of each bitmap that it uses, at most 64; only tests take fewer.

    Raises:
        ConfigError: If it does not fit the program.
    """

    number: int
    workers: tuple[str, ...]
    servers: tuple[str, ...]
    aggregators: int
    window: int
    lanes: int = 64
    bits: int = BITS

    def __post_init__(self) -> None:
        where = f"atp job {self.number}"
        check_job("atp", self.number)
        if self.lanes not in SIZES:
            raise ConfigError(f"{where}: lanes must be one of {list(SIZES)}, got {self.lanes!r}")
        check_counts(where, len(self.workers), len(self.servers))
        most = AGGREGATORS[self.lanes]
        if not 0 < self.aggregators <= most:
            raise ConfigError(
                f"{where}: a switch has 1 to {format_count(most, 'aggregator')} of "
                f"{format_count(self.lanes, 'lane')}, got {self.aggregators!r}"
            )
        if self.window < 1 or self.window & (self.window - 1):
            raise ConfigError(f"{where}: window must be a power of two, got {self.window!r}")


def first_aggregators(job: AtpJob) -> list[int]:
    """Return the aggregator that each position of the window begins with.

    It is a hash, as jobs do not know of one another, with linear probing, so that a job does not
    collide with itself while there are enough aggregators.
    """
    taken: set[int] = set()
    firsts = []
    for position in range(job.window):
        key = bytes([job.number]) + position.to_bytes(4, "big")
        aggregator = crc32(key) % job.aggregators
        if len(taken) == job.aggregators:
            taken.clear()
        while aggregator in taken:
            aggregator = (aggregator + 1) % job.aggregators
        taken.add(aggregator)
        firsts.append(aggregator)
    return firsts


def block_loads(
    graph: nx.Graph[str], workers: Sequence[str], servers: Sequence[str], bits: int = BITS
) -> dict[tuple[str, str], float]:
    """Return the packets that each link carries per block, if all switches aggregate that may.

    Those are the workers' switches and the server's; detours are left out of account. Of a bitmap,
    a job uses that many bits.
    """
    share = 1 / len(servers)
    racks = {attachment(graph, worker): share for worker in workers}
    demand = {
        server: {rack: share for rack in racks if rack != attachment(graph, server)}
        for server in servers
    }
    loads = Counter(link_loads(graph, demand, dealt(graph, routes(graph))))
    for server in servers:
        switch = attachment(graph, server)
        loads[switch, server] = 0  # there all packets have become one
        tree = aggregation_tree(graph, workers, root=switch)
        for parent, children in tree.children.items():
            loads.update({(parent, child): share for child in children})
    for server in servers:
        alone = make_roster(graph, workers, server, bits).alone
        loads.update({(attachment(graph, server), server): share * (1 + alone)})
        loads.update({(server, attachment(graph, server)): share})
    for worker in workers:
        loads.update({(worker, attachment(graph, worker)): 1})
    return dict(loads)


def entities(graph: nx.Graph[str], job: AtpJob, **more: int) -> dict[str, Entities]:
    """Return the P4Runtime entities of every switch that the job needs, besides those that forward.

    Args:
        graph: The topology.
        job: The job.
        more: Further arguments of `shares`, for programs that have some.

    Raises:
        ConfigError: If there are more workers in a rack, or more racks, than bits.
        TopologyError: If a server's switch can't reach all workers.
    """
    by_switch = deliveries(graph, job, delivery_trees(graph, job))
    for server, host in enumerate(job.servers):
        for switch, adder in make_roster(graph, job.workers, host, job.bits).adders.items():
            by_switch.setdefault(switch, []).append(_share(job, server, adder, more))
    return by_switch


def delivery_trees(graph: nx.Graph[str], job: AtpJob) -> list[AggregationTree]:
    """Return the trees by which results go to all workers, one for each parameter server.

    A result passes the switches that add up its block, so that it frees their aggregators.

    Raises:
        ConfigError: If there are more workers in a rack, or more racks, than bits.
        TopologyError: If a server's switch can't reach all workers.
    """
    trees = []
    for host in job.servers:
        adders = make_roster(graph, job.workers, host, job.bits).adders
        root = attachment(graph, host)
        trees.append(aggregation_tree(graph, job.workers, root=root, also=adders))
    return trees


def deliveries(
    graph: nx.Graph[str], job: AtpJob, trees: Sequence[AggregationTree]
) -> dict[str, Entities]:
    """Return the entities of switches that deliver results by these trees, one for each server."""
    by_switch: dict[str, Entities] = {}
    for server, tree in enumerate(trees):
        for switch, children in tree.children.items():
            if children:
                ports = [port(graph, switch, child) for child in children]
                by_switch.setdefault(switch, []).extend(_delivery(job, server, ports))
    return by_switch


def _delivery(job: AtpJob, server: int, ports: Sequence[int]) -> Entities:
    group = GROUPS_PER_JOB * (1 + server) + job.number
    return [
        fy.P4MulticastGroupEntry(group, replicas=list(ports)),
        _entry("deliveries", job, server, "multicast", group=group),
    ]


def _share(job: AtpJob, server: int, adder: Adder, more: Mapping[str, int]) -> fy.P4TableEntry:
    limits = {"aggregators": job.aggregators, "window": job.window, **more}
    if adder.rack == OF_JOB:
        return _entry("shares", job, server, "aggregate", complete=adder.complete, **limits)
    bits = {"rack": adder.rack, "complete": adder.complete, "whole": adder.whole}
    return _entry("shares", job, server, "aggregate_rack", **bits, **limits)


def _entry(table: str, job: AtpJob, server: int, action: str, **arguments: int) -> fy.P4TableEntry:
    return fy.P4TableEntry(
        table,
        match=fy.P4TableMatch(job=job.number, server=server),
        action=fy.P4TableAction(action, **arguments),
    )
