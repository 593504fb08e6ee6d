"""The least time that a schedule can take on a topology, whatever carries its packets.

Three bounds, of which the largest holds:

- Chain: the longest chain of messages that need one another, each with its delay along the
  topology's routes and its bytes at its slowest link's rate, as if no other were sent.
- Port: what goes in (or out) by a host's link takes that link's rate. It begins when the first
  of it can be there, and after the last there follows what needs it.
- Fabric: what must leave a switch by some of its links takes these links' rates together.

Headers and acknowledgements are not counted, nor is waiting for whole packets at each hop.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, permutations

import networkx as nx

from collectives.cost import Fabric
from collectives.schedule import Aggregate, Message, Schedule, chunk_ranges, messages
from experiments.ways import Outlet, Ways
from ringleaf.units import PS_PER_S
from topologies.detours import detours
from topologies.graph import link
from topologies.trees import aggregation_tree

Place = tuple[int, int]
"""A rank and a chunk."""


@dataclass(slots=True)
class _Move:
    """A message or an aggregation that has something to move, and when it can be at best."""

    what: Message | Aggregate
    size_bytes: int
    sources: list[Place]
    places: list[Place]
    delay_ps: int
    alone_ps: int  # from its first byte leaving to its last one there, if nothing else moves
    begin_ps: int = 0
    after_ps: int = 0  # that at least follow when it is there
    by_hosts: bool = False  # no switch aggregates


class Bounds:
    """The bounds of schedules on one topology."""

    def __init__(self, graph: nx.Graph[str]) -> None:
        self._graph = graph
        self._ways = Ways(graph)
        rates = [self._ways.access_bps(rank) for rank in range(len(self._ways.hosts))]
        self.fabric = Fabric(rate_bps=max(rates), alpha_ps=self._ways.delays_ps)

    def least_ps(
        self,
        schedule: Schedule,
        size_bytes: int,
        element_bytes: int,
        *,
        moved_bytes: Sequence[int] | None = None,
    ) -> int:
        """The largest of the bounds, for tensors of `size_bytes`.

        `moved_bytes`, in the order of `messages`, is where what moves depends on the data; what
        is aggregated is then taken to go by hosts, and not up a tree of switches.
        """
        if moved_bytes is None:
            moves = self._moves(schedule, size_bytes, element_bytes)
        else:
            moves = self._with_sizes(schedule, moved_bytes)
        chain_ps = _look_ahead(moves)
        _look_back(moves)
        return max(chain_ps, self._ports_ps(moves), self._fabric_ps(moves))

    def _moves(self, schedule: Schedule, size_bytes: int, element_bytes: int) -> list[_Move]:
        ranges = chunk_ranges(size_bytes // element_bytes, schedule.chunks)
        edges = [0, *(stop * element_bytes for _, stop in ranges)]
        moves = []
        for what in messages(schedule):
            if isinstance(what, Message):
                moved_bytes = edges[what.stop] - edges[what.start]
            else:
                moved_bytes = edges[what.chunk + 1] - edges[what.chunk]
            if moved_bytes:
                moves.append(self._move(what, moved_bytes))
        return moves

    def _with_sizes(self, schedule: Schedule, moved_bytes: Sequence[int]) -> list[_Move]:
        pairs = zip(messages(schedule), moved_bytes, strict=True)
        moves = [self._move(what, size) for what, size in pairs if size]
        for move in moves:
            move.by_hosts = True
        return moves

    def _move(self, what: Message | Aggregate, size_bytes: int) -> _Move:
        delays_ps, rates_bps = self._ways.delays_ps, self._ways.rates_bps
        if isinstance(what, Message):
            pairs = [(what.src, what.dst)]
            sources = [(what.src, chunk) for chunk in range(what.start, what.stop)]
            places = [(what.dst, chunk) for _, chunk in sources]
        else:
            pairs = list(permutations(what.ranks, 2))
            sources = places = [(rank, what.chunk) for rank in what.ranks]
        delay_ps = max(delays_ps[a][b] for a, b in pairs)
        rate_bps = min(rates_bps[a][b] for a, b in pairs)
        alone_ps = delay_ps + _serialize_ps(size_bytes, rate_bps)
        return _Move(what, size_bytes, sources, places, delay_ps, alone_ps)

    def _ports_ps(self, moves: list[_Move]) -> int:
        """The port bound, of the host where it is largest."""
        going_out: dict[int, list[_Move]] = defaultdict(list)
        coming_in: dict[int, list[_Move]] = defaultdict(list)
        for move in moves:
            if isinstance(move.what, Message):
                going_out[move.what.src].append(move)
                coming_in[move.what.dst].append(move)
        bounds_ps = [0]
        for rank, group in going_out.items():
            first_ps = min(move.begin_ps for move in group)
            last_ps = min(move.delay_ps + move.after_ps for move in group)
            bounds_ps.append(first_ps + self._port_ps(rank, group) + last_ps)
        for rank, group in coming_in.items():
            first_ps = min(move.begin_ps + move.delay_ps for move in group)
            last_ps = min(move.after_ps for move in group)
            bounds_ps.append(first_ps + self._port_ps(rank, group) + last_ps)
        return max(bounds_ps)

    def _port_ps(self, rank: int, group: Iterable[_Move]) -> int:
        return _serialize_ps(sum(move.size_bytes for move in group), self._ways.access_bps(rank))

    def _fabric_ps(self, moves: list[_Move]) -> int:
        loads: Counter[Outlet] = Counter()
        flows: dict[int, Counter[int]] = defaultdict(Counter)
        for move in moves:
            if isinstance(move.what, Message):
                flows[move.what.dst][move.what.src] += move.size_bytes
            elif not move.by_hosts and not detours(self._graph):  # which may avoid the tree
                loads.update(self._tree_loads(move.what, move.size_bytes))
        for dst, by_source in flows.items():
            loads.update(self._ways.must_pass(dst, by_source))
        return max((self._busy_ps(*load) for load in loads.items()), default=0)

    def _tree_loads(self, what: Aggregate, size_bytes: int) -> dict[Outlet, int]:
        """What is aggregated goes up and down each edge of the tree once."""
        tree = aggregation_tree(self._graph, [self._ways.hosts[rank] for rank in what.ranks])
        edges = [(a, b) for a, below in tree.children.items() for b in below]
        return {(a, (b,)): size_bytes for x, y in edges for a, b in ((x, y), (y, x))}

    def _busy_ps(self, outlet: Outlet, size_bytes: int) -> int:
        node, peers = outlet
        rate_bps = sum(link(self._graph, node, peer).rate_bps for peer in peers)
        return _serialize_ps(size_bytes, rate_bps)


def _serialize_ps(size_bytes: int, rate_bps: int) -> int:
    return size_bytes * 8 * PS_PER_S // rate_bps  # rounded down: this is a bound


def _look_ahead(moves: list[_Move]) -> int:
    """Set when each move can begin; return when all can be there."""
    there_ps: dict[Place, int] = defaultdict(int)
    for _, group in groupby(moves, lambda move: move.what.step):
        step = list(group)
        for move in step:
            move.begin_ps = max(there_ps[place] for place in move.sources)
        for move in step:
            for place in move.places:
                there_ps[place] = max(there_ps[place], move.begin_ps + move.alone_ps)
    return max(there_ps.values(), default=0)


def _look_back(moves: list[_Move]) -> None:
    """Set how long, at least, it goes on after each move."""
    after_ps: dict[Place, int] = defaultdict(int)
    for _, group in groupby(reversed(moves), lambda move: move.what.step):
        step = list(group)
        for move in step:
            move.after_ps = max(after_ps[place] for place in move.places)
        for move in step:
            for place in move.sources:
                after_ps[place] = max(after_ps[place], move.alone_ps + move.after_ps)
