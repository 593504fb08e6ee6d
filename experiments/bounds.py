"""The least time that a schedule can take on a topology, whatever carries its packets.

Two bounds, and the larger holds. One is the schedule's longest chain of messages that need one
another, each with its latency along the topology's routes and its bytes at its slowest link's rate,
as if no other were sent. The other is the topology's: what must leave a switch by some of its
links takes these links' rates together. Headers and acknowledgements are not counted, nor is
waiting for whole packets at each hop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cached_property
from itertools import groupby, permutations

import networkx as nx

from collectives.cost import Fabric
from collectives.schedule import Aggregate, Message, Schedule, chunk_ranges, messages
from ringleaf.units import PS_PER_S
from topologies.graph import attachment, hosts, link, neighbors
from topologies.routing import routes
from topologies.trees import aggregation_tree

Outlet = tuple[str, tuple[str, ...]]
"""A node, and those of its neighbours that a flow may go to next."""

Place = tuple[int, int]
"""A rank and a chunk."""


class Bounds:
    """The bounds of schedules on one topology."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self._graph = graph
        self._hosts = hosts(graph)

    def least_ps(self, schedule: Schedule, size_bytes: int, element_bytes: int) -> int:
        """The larger of the two bounds, for tensors of `size_bytes`."""
        ranges = chunk_ranges(size_bytes // element_bytes, schedule.chunks)
        edges = [0, *(stop * element_bytes for _, stop in ranges)]
        moves = [(move, _bytes_of(move, edges)) for move in messages(schedule)]
        moves = [(move, size) for move, size in moves if size]
        return max(self._chain_ps(moves), self._busiest_ps(moves))

    @cached_property
    def fabric(self) -> Fabric:
        """The topology as the cost model sees it: hosts' rate, and latency along routes."""
        rates = (link(self._graph, host, attachment(self._graph, host)) for host in self._hosts)
        delays = [[delay_ps for delay_ps, _ in row] for row in self._ways]
        return Fabric(rate_bps=max(own.rate_bps for own in rates), alpha_ps=delays)

    # The longest chain of messages

    def _chain_ps(self, moves: list[tuple[Message | Aggregate, int]]) -> int:
        there_ps: dict[Place, int] = defaultdict(int)
        for _, step in groupby(moves, lambda pair: pair[0].step):
            arrivals: list[tuple[list[Place], int]] = []
            for move, size_bytes in step:
                sources, places = _places(move)
                begin_ps = max(there_ps[place] for place in sources)
                arrivals.append((places, begin_ps + self._alone_ps(move, size_bytes)))
            for places, arrival_ps in arrivals:
                for place in places:
                    there_ps[place] = max(there_ps[place], arrival_ps)
        return max(there_ps.values(), default=0)

    def _alone_ps(self, move: Message | Aggregate, size_bytes: int) -> int:
        """Time of a message, or an aggregation, that has the network to itself."""
        if isinstance(move, Message):
            delay_ps, rate_bps = self._ways[move.src][move.dst]
        else:
            ways = [self._ways[a][b] for a, b in permutations(move.ranks, 2)]
            delay_ps = max(delay for delay, _ in ways)
            rate_bps = min(rate for _, rate in ways)
        return delay_ps + size_bytes * 8 * PS_PER_S // rate_bps

    @cached_property
    def _ways(self) -> list[list[tuple[int, int]]]:
        """By source and destination: the least delay, and the rate of the widest way."""
        columns = [self._ways_to(host) for host in self._hosts]
        return [list(row) for row in zip(*columns, strict=True)]

    def _ways_to(self, host: str) -> list[tuple[int, int]]:
        best = {host: (0, 1 << 62)}
        for switch, peers in reversed(self._next[host].items()):
            best[switch] = self._best(switch, peers, best)
        return [
            self._best(source, (attachment(self._graph, source),), best)
            if source != host
            else (0, 1 << 62)
            for source in self._hosts
        ]

    def _best(
        self, node: str, peers: tuple[str, ...], best: dict[str, tuple[int, int]]
    ) -> tuple[int, int]:
        links = [(link(self._graph, node, peer), best[peer]) for peer in peers]
        return (
            min(own.delay_ps + delay_ps for own, (delay_ps, _) in links),
            max(min(own.rate_bps, rate_bps) for own, (_, rate_bps) in links),
        )

    @cached_property
    def _next(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Host -> switch -> the nodes that may come next on the way there, farthest first."""
        table: dict[str, dict[str, tuple[str, ...]]] = {host: {} for host in self._hosts}
        for switch, ports in routes(self._graph).items():
            peers = neighbors(self._graph, switch)
            for host, ways in ports.items():
                table[host][switch] = tuple(peers[way] for way in ways)
        return {host: _sorted(ways) for host, ways in table.items()}

    # The busiest links

    def _busiest_ps(self, moves: list[tuple[Message | Aggregate, int]]) -> int:
        loads = self._loads(moves)
        return max((self._busy_ps(*load) for load in loads.items()), default=0)

    def _busy_ps(self, outlet: Outlet, size_bytes: int) -> int:
        node, peers = outlet
        rate_bps = sum(link(self._graph, node, peer).rate_bps for peer in peers)
        return size_bytes * 8 * PS_PER_S // rate_bps

    def _loads(self, moves: list[tuple[Message | Aggregate, int]]) -> dict[Outlet, int]:
        """Bytes that certainly leave a node by certain links."""
        loads: dict[Outlet, int] = Counter()
        flows: dict[int, Counter[int]] = defaultdict(Counter)
        for move, size_bytes in moves:
            if isinstance(move, Message):
                flows[move.dst][move.src] += size_bytes
            else:
                self._load_tree(move.ranks, size_bytes, loads)
        for dst, by_source in flows.items():
            self._load_routes(self._hosts[dst], by_source, loads)
        return loads

    def _load_routes(self, host: str, by_source: Counter[int], loads: dict[Outlet, int]) -> None:
        """Follow flows until they meet a choice; at the last switch all are together again."""
        at: Counter[str] = Counter()
        for src, size_bytes in by_source.items():
            source = self._hosts[src]
            first = attachment(self._graph, source)
            loads[source, (first,)] += size_bytes
            at[first] += size_bytes
        at[attachment(self._graph, host)] = by_source.total()
        for switch, peers in self._next[host].items():
            loads[switch, peers] += at[switch]
            if len(peers) == 1 and peers[0] != attachment(self._graph, host):
                at[peers[0]] += at[switch]

    def _load_tree(self, ranks: tuple[int, ...], size_bytes: int, loads: dict[Outlet, int]) -> None:
        """What is aggregated goes up and down each edge of the tree once."""
        tree = aggregation_tree(self._graph, [self._hosts[rank] for rank in ranks])
        for parent, children in tree.children.items():
            for child in children:
                loads[child, (parent,)] += size_bytes
                loads[parent, (child,)] += size_bytes


def _sorted(ways: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    flow = nx.DiGraph((switch, peer) for switch, peers in ways.items() for peer in peers)
    return {switch: ways[switch] for switch in nx.topological_sort(flow) if switch in ways}


def _bytes_of(move: Message | Aggregate, edges: list[int]) -> int:
    if isinstance(move, Message):
        return edges[move.stop] - edges[move.start]
    return edges[move.chunk + 1] - edges[move.chunk]


def _places(move: Message | Aggregate) -> tuple[list[Place], list[Place]]:
    """Where a move comes from, and where it goes to."""
    if isinstance(move, Message):
        chunks = range(move.start, move.stop)
        return [(move.src, chunk) for chunk in chunks], [(move.dst, chunk) for chunk in chunks]
    everywhere = [(rank, move.chunk) for rank in move.ranks]
    return everywhere, everywhere
