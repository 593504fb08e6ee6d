"""The least time of an algorithm on a topology, on the routes that its packets get.

There are two kinds of bounds; the largest one counts:

- Chain: the longest chain of messages that need one another, as if no other were sent.
  Of each, every packet is stored and forwarded by each node on the way.
- Load: bytes that must pass a link, or some links of a switch together, are limited by these
  links' rates. They begin when the first of them can be there, and the moves that need them follow
  after the last.

Where each host is reached by one path, its links are known; with ECMP only as far as there is no
choice (`topologies/ways.py`). Systems in the network say themselves which bytes they send over each
link (`ina/loads.py`). Bytes are those on the line, of first transmissions: headers, preambles and
gaps count, for they are certain; acknowledgements and retransmissions don't.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import networkx as nx

from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.schedule import Aggregate, Message, Schedule, chunk_ranges, messages
from ringleaf.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.ina.loads import Aggregation, Demand, least_demand
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.ways import Flow, Loads, Way, Ways, together

if TYPE_CHECKING:
    import torch

RC_OVERHEAD_BYTES = 58 + LINE_OVERHEAD_BYTES  # Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4
LEAST_LINE_BYTES = MIN_FRAME_BYTES + LINE_OVERHEAD_BYTES


@dataclass(slots=True)
class _Move:
    """A message or an aggregation that has bytes to move, and its earliest times."""

    what: Message | Aggregate
    size_bytes: int  # on the line
    alone_ps: int  # from its first byte leaving to its last one there, if nothing else moves
    demand: Demand | None = None  # of an aggregation
    begin_ps: int = 0
    after_ps: int = 0  # least time that follows its arrival


class Bounds:
    """The bounds of schedules on one topology.

    Args:
        graph: The topology; its hosts are ranks, and the last of them servers, if there are any.
        ecmp: Whether flows are hashed to paths; if not, each host is reached by one path.
        mtu_bytes: Payload of a full packet between hosts.
        lanes: Values in a full packet that is aggregated.
        servers: How many hosts are servers.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        *,
        ecmp: bool = False,
        mtu_bytes: int = 4096,
        lanes: int = 256,
        servers: int = 0,
    ) -> None:
        self.ways = Ways(graph, ecmp=ecmp)
        self._mtu_bytes = mtu_bytes
        self._lanes = lanes
        self._servers = servers
        self._alone_ps: dict[tuple[Way, int], int] = {}
        rates = [self.ways.access_bps(rank) for rank in range(len(self.ways.hosts))]
        self.fabric = AlphaBeta(rate_bps=max(rates), alpha_ps=self.ways.delays_ps)

    def least_ps(
        self,
        schedule: Schedule,
        size_bytes: int,
        element_bytes: int,
        *,
        is_float: bool = True,
        moved_bytes: Sequence[int] | None = None,
        inputs: Sequence[torch.Tensor] | None = None,
        slots: int | None = None,
    ) -> int:
        """Return the largest of the bounds, in ps.

        Args:
            schedule: The schedule that runs.
            size_bytes: Size of each rank's tensor.
            element_bytes: Size of each element.
            is_float: Whether these are float32; SwitchML has to agree on exponents then.
            moved_bytes: Size of each of `messages`, where that depends on the data.
            inputs: The tensors, for systems that leave zeros out; None: nothing is zero.
            slots: Number of slots, for a system that deals blocks to slots, and these to hosts;
                None: evenly.
        """
        elements = size_bytes // element_bytes
        ranges = chunk_ranges(elements, schedule.chunks)
        edges = [0, *(stop * element_bytes for _, stop in ranges)]
        moves = []
        for number, what in enumerate(messages(schedule)):
            if isinstance(what, Aggregate):
                start, stop = ranges[what.chunk]
                if stop > start:
                    parts = None if inputs is None else [each[start:stop] for each in inputs]
                    asked = Aggregation(
                        what.ranks, self._helpers, stop - start, is_float, self._lanes, slots, parts
                    )
                    needs = self._demand(schedule.algorithm, asked)
                    moves.append(_Move(what, 0, needs.alone_ps, needs))
            else:
                size = edges[what.stop] - edges[what.start]
                if moved_bytes is not None:
                    size = moved_bytes[number]
                if size:
                    alone_ps = self._message_ps(what.src, what.dst, size)
                    moves.append(_Move(what, self.line_bytes(size), alone_ps))
        chain_ps = _look_ahead(moves, schedule)
        _look_back(moves, schedule)
        return max(chain_ps, self._loads(moves).least_ps())

    def _demand(self, system: str, asked: Aggregation) -> Demand:
        """Return a system's demand for an aggregation; for unknown systems, the least of any."""
        if system in SYSTEMS:
            return SYSTEMS[system].demand(self.ways, asked)
        return least_demand(self.ways, asked)

    def line_bytes(self, size_bytes: int) -> int:
        """Return the bytes of a message's packets on the line."""
        packets, rest = divmod(size_bytes, self._mtu_bytes)
        full = packets * (self._mtu_bytes + RC_OVERHEAD_BYTES)
        return full + max(rest + RC_OVERHEAD_BYTES, LEAST_LINE_BYTES) if rest else full

    @property
    def _helpers(self) -> tuple[int, ...]:
        """The numbers of the servers' hosts."""
        count = len(self.ways.hosts)
        return tuple(range(count - self._servers, count))

    def _message_ps(self, src: int, dst: int, size_bytes: int) -> int:
        """Return the time of a message that is alone."""
        way = self.ways.way(src, dst)
        if (way, size_bytes) not in self._alone_ps:
            first_bytes = min(size_bytes, self._mtu_bytes)
            last_bytes = (size_bytes - 1) % self._mtu_bytes + 1
            self._alone_ps[way, size_bytes] = way.alone_ps(
                *(self.line_bytes(size) for size in (first_bytes, size_bytes, last_bytes))
            )
        return self._alone_ps[way, size_bytes]

    def _loads(self, moves: list[_Move]) -> Loads:
        """Return the loads of all moves together."""
        loads = Loads(self.ways.links)
        flows: dict[int, dict[int, Flow]] = defaultdict(dict)  # by destination, by source
        for move in moves:
            if move.demand is not None:
                loads.merge(move.demand.loads, move.begin_ps, move.after_ps)
            elif isinstance(move.what, Message):
                by_source = flows[move.what.dst]
                flow = Flow(move.size_bytes, move.begin_ps, move.after_ps)
                if move.what.src in by_source:
                    flow = together([flow, by_source[move.what.src]])
                by_source[move.what.src] = flow
        for dst, by_source in flows.items():
            self.ways.add_flows(loads, dst, by_source)
        return loads


def _places(what: Message | Aggregate) -> tuple[list[int], list[int], slice]:
    """Return the ranks that a move reads at, the ranks that it writes at, and its chunks."""
    if isinstance(what, Message):
        return [what.src], [what.dst], slice(what.start, what.stop)
    return list(what.ranks), list(what.ranks), slice(what.chunk, what.chunk + 1)


def _look_ahead(moves: list[_Move], schedule: Schedule) -> int:
    """Set each move's earliest begin; return the earliest time when all can have arrived."""
    there_ps = [[0] * schedule.chunks for _ in range(schedule.nodes)]
    for _, group in groupby(moves, lambda move: move.what.step):
        step = [(move, *_places(move.what)) for move in group]
        for move, sources, _, chunks in step:
            move.begin_ps = max(max(there_ps[rank][chunks]) for rank in sources)
        for move, _, targets, chunks in step:
            _raise(there_ps, targets, chunks, move.begin_ps + move.alone_ps)
    return max(max(row) for row in there_ps)


def _look_back(moves: list[_Move], schedule: Schedule) -> None:
    """Set the least time that follows each move."""
    after_ps = [[0] * schedule.chunks for _ in range(schedule.nodes)]
    for _, group in groupby(reversed(moves), lambda move: move.what.step):
        step = [(move, *_places(move.what)) for move in group]
        for move, _, targets, chunks in step:
            move.after_ps = max(max(after_ps[rank][chunks]) for rank in targets)
        for move, sources, _, chunks in step:
            _raise(after_ps, sources, chunks, move.alone_ps + move.after_ps)


def _raise(times_ps: list[list[int]], ranks: list[int], chunks: slice, least_ps: int) -> None:
    """Raise the times at these places to a minimum."""
    for rank in ranks:
        row = times_ps[rank]
        row[chunks] = [max(time_ps, least_ps) for time_ps in row[chunks]]
