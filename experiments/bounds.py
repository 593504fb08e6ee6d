"""The least time that a schedule can take on a topology, whatever carries its packets.

Two bounds, and the larger holds. One is the schedule's critical path, with latencies along the
topology's routes and each host's rate. The other is the topology's: no link carries its share
faster than its rate, where flows divide evenly among equal routes. Headers and
acknowledgements are not counted, nor is waiting for whole packets at each hop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property

import networkx as nx

from collectives.cost import Fabric
from collectives.critical_path import critical_path
from collectives.schedule import Aggregate, Schedule, chunk_ranges
from ringleaf.units import PS_PER_S
from topologies.graph import attachment, hosts, link, neighbors
from topologies.routing import routes
from topologies.trees import aggregation_tree

Direction = tuple[str, str]


class Bounds:
    """The bounds of schedules on one topology."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self._graph = graph
        self._hosts = hosts(graph)

    @cached_property
    def fabric(self) -> Fabric:
        """The topology as the cost model sees it: hosts' rate, and latency along routes."""
        rates = (link(self._graph, host, attachment(self._graph, host)) for host in self._hosts)
        return Fabric(rate_bps=max(own.rate_bps for own in rates), alpha_ps=self._latencies())

    def least_ps(self, schedule: Schedule, size_bytes: int, element_bytes: int) -> int:
        """The larger of the two bounds, for tensors of `size_bytes`.

        Raises:
            ScheduleError: If the schedule's rows make no sense.
        """
        path = critical_path(schedule, size_bytes, self.fabric, element_bytes=element_bytes)
        loads = self.loads(schedule, size_bytes, element_bytes)
        return max(path.time_ps, *(round(self._busy_ps(*load)) for load in loads.items()))

    def _busy_ps(self, direction: Direction, size_bytes: float) -> float:
        return size_bytes * 8 * PS_PER_S / link(self._graph, *direction).rate_bps

    @cached_property
    def _next(self) -> dict[str, dict[str, list[str]]]:
        """Destination host -> switch -> the nodes that may come next; outermost switches first."""
        table: dict[str, dict[str, list[str]]] = {host: {} for host in self._hosts}
        for switch, ports in routes(self._graph).items():
            peers = neighbors(self._graph, switch)
            for host, ways in ports.items():
                table[host][switch] = [peers[way] for way in ways]
        return {host: self._sorted(ways) for host, ways in table.items()}

    def _sorted(self, ways: dict[str, list[str]]) -> dict[str, list[str]]:
        flow = nx.DiGraph((switch, peer) for switch, peers in ways.items() for peer in peers)
        return {switch: ways[switch] for switch in nx.topological_sort(flow) if switch in ways}

    def _latencies(self) -> list[list[int]]:
        matrix = [[0] * len(self._hosts) for _ in self._hosts]
        for column, host in enumerate(self._hosts):
            delay_ps = {host: 0}
            for switch, peers in reversed(self._next[host].items()):
                delay_ps[switch] = min(
                    link(self._graph, switch, peer).delay_ps + delay_ps[peer] for peer in peers
                )
            for row, source in enumerate(self._hosts):
                if source != host:
                    first = attachment(self._graph, source)
                    own = link(self._graph, source, first)
                    matrix[row][column] = own.delay_ps + delay_ps[first]
        return matrix

    def loads(
        self, schedule: Schedule, size_bytes: int, element_bytes: int
    ) -> dict[Direction, float]:
        """Payload bytes that each direction of a link carries, if flows divide evenly."""
        flows, reduced = _traffic(schedule, size_bytes, element_bytes)
        loads: dict[Direction, float] = defaultdict(float)
        by_destination: dict[int, dict[str, float]] = {}
        for (src, dst), flow in flows.items():
            first = attachment(self._graph, self._hosts[src])
            loads[self._hosts[src], first] += flow
            at = by_destination.setdefault(dst, {})
            at[first] = at.get(first, 0) + flow
        for dst, at in by_destination.items():
            self._spread(self._hosts[dst], at, loads)
        for ranks, flow in reduced.items():
            self._stream(ranks, flow, loads)
        return dict(loads)

    def _spread(self, host: str, at: dict[str, float], loads: dict[Direction, float]) -> None:
        """Let what is `at` switches flow on to `host`."""
        for switch, peers in self._next[host].items():
            flow = at.get(switch, 0) / len(peers)
            if flow:
                for peer in peers:
                    loads[switch, peer] += flow
                    at[peer] = at.get(peer, 0) + flow

    def _stream(self, ranks: tuple[int, ...], flow: int, loads: dict[Direction, float]) -> None:
        """Send `flow` bytes up and down each edge of the aggregation tree."""
        tree = aggregation_tree(self._graph, [self._hosts[rank] for rank in ranks])
        for parent, children in tree.children.items():
            for child in children:
                loads[child, parent] += flow
                loads[parent, child] += flow


def _traffic(
    schedule: Schedule, size_bytes: int, element_bytes: int
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, ...], int]]:
    """Bytes between each pair of ranks, and bytes aggregated by each set of them."""
    ranges = chunk_ranges(size_bytes // element_bytes, schedule.chunks)
    flows: Counter[tuple[int, int]] = Counter()
    reduced: Counter[tuple[int, ...]] = Counter()
    for row in schedule.rows:
        start, stop = ranges[row.chunk]
        if isinstance(row, Aggregate):
            reduced[row.ranks] += (stop - start) * element_bytes
        else:
            flows[row.src, row.dst] += (stop - start) * element_bytes
    return flows, reduced
