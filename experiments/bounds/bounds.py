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

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.collectives.circulant import CirculantRows
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.pipelined_rows import PipelinedRows, pipelined
from ringleaf.collectives.rows import AGGREGATE, ChunkRows, Column, Columns
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.core.tensors import Array
from ringleaf.core.units import FOREVER_PS
from ringleaf.experiments.bounds.contention import HostMessages, busy_ps
from ringleaf.experiments.bounds.moves import least_times
from ringleaf.experiments.bounds.turns import least_times as turned_times
from ringleaf.ina.loads import Aggregation, Demand, least_demand
from ringleaf.ina.registry import SYSTEMS
from ringleaf.topologies.ways import Loads, PlannedFlows, RouteLinks, TopologyRoutes

RC_OVERHEAD_BYTES = 58 + LINE_OVERHEAD_BYTES  # Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4
LEAST_LINE_BYTES = MIN_FRAME_BYTES + LINE_OVERHEAD_BYTES
UNCONTROLLED = "fixed"


def overhead_bytes(cc: str) -> int:
    """Return the bytes of a packet of data on the line beside its payload.

    Args:
        cc: The hosts' congestion control; for some, packets have room for switches' telemetry.
    """
    if cc == UNCONTROLLED:
        return RC_OVERHEAD_BYTES  # controllers are compiled code, which takes time to load
    from ringleaf.hosts.congestion.registry import find_controller
    from ringleaf.hosts.congestion.telemetry import TELEMETRY_BYTES

    return RC_OVERHEAD_BYTES + (TELEMETRY_BYTES if find_controller(cc).program else 0)


class Bounds:
    """The bounds of schedules on one topology.

    Args:
        graph: The topology; its hosts are ranks, and the last of them servers, if there are any.
        ecmp: Whether flows are hashed to paths; if not, each host is reached by one path.
        mtu_bytes: Payload of a full packet between hosts.
        lanes: Values in a full packet that is aggregated.
        servers: How many hosts are servers.
        trees: Trees of a job of a system that may have several; None: its own choice.
        cc: Congestion control of the hosts, which may have longer headers.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        *,
        ecmp: bool = False,
        mtu_bytes: int = 4096,
        lanes: int = 256,
        servers: int = 0,
        trees: int | None = None,
        cc: str = UNCONTROLLED,
    ) -> None:
        self.ways = TopologyRoutes(graph, ecmp=ecmp)
        self._mtu_bytes = mtu_bytes
        self._lanes = lanes
        self._servers = servers
        self._trees = trees
        self._overhead_bytes = overhead_bytes(cc)
        self._alone_ps: dict[tuple[RouteLinks, int], int] = {}
        rates = [self.ways.access_bps(rank) for rank in range(len(self.ways.hosts))]
        self.fabric = AlphaBeta(
            rate_bps=max(rates), alpha_ps=self.ways.delay_ps, longest_ps=self.ways.longest_delay_ps
        )

    def least_ps(
        self,
        schedule: Schedule,
        size_bytes: int,
        element_bytes: int,
        *,
        is_float: bool = True,
        moved_bytes: Sequence[int] | None = None,
        inputs: Sequence[Array] | None = None,
        slots: int | None = None,
        hosts: Sequence[int] | None = None,
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
            hosts: The number of each node's host; None: nodes are all hosts, in their order.
        """
        elements = size_bytes // element_bytes
        edges = np.array([0, *(stop for _, stop in chunk_ranges(elements, schedule.chunks))])
        circulant = schedule.circulant
        is_plain = moved_bytes is None and hosts is None and elements >= schedule.chunks > 1
        if circulant is not None and is_plain:
            return self._turned_ps(circulant, np.diff(edges) * element_bytes)
        times = np.ones(schedule.chunks, np.int64)
        if schedule.pipelined is not None and moved_bytes is None:
            schedule, edges, times = _of_each_size(schedule, schedule.pipelined, edges)
        rows = schedule.columns
        sizes = (edges[rows.stop] - edges[rows.start]) * element_bytes
        if moved_bytes is not None:
            sizes = np.where(rows.op == AGGREGATE, sizes, np.array(moved_bytes, np.int64))
        rows, sizes = rows.take(sizes > 0), sizes[sizes > 0]
        is_local = schedule.is_local(rows)
        alone_ps = np.zeros(len(rows), np.int64)
        goes = (rows.op != AGGREGATE) & ~is_local
        at = np.arange(schedule.nodes) if hosts is None else np.array(hosts, np.int64)
        src, dst = at[rows.src % schedule.nodes], at[rows.dst % schedule.nodes]
        hops = replace(rows, src=src, dst=dst).take(goes)
        alone_ps[goes] = self._alone(hops, sizes[goes])
        demands = {}
        for place in np.flatnonzero(rows.op == AGGREGATE).tolist():
            ranks, chunk = rows.groups[rows.src[place]], rows.start[place]
            members = tuple(at[list(ranks)].tolist())
            start, stop = int(edges[chunk]), int(edges[chunk + 1])
            parts = None if inputs is None else [each[start:stop] for each in inputs]
            asked = Aggregation(
                *(members, self._helpers, stop - start, is_float, self._lanes, slots, parts),
                trees=self._trees,
            )
            demands[place] = self._demand(schedule.algorithm, asked)
            alone_ps[place] = demands[place].alone_ps
        least = least_times(rows, alone_ps, schedule.places, schedule.chunks)
        loads = self._loads(
            hops, sizes[goes], times[hops.start], least.begin_ps[goes], least.after_ps[goes]
        )
        for place, needs in demands.items():
            begin_ps, after_ps = int(least.begin_ps[place]), int(least.after_ps[place])
            loads.merge(needs.loads, begin_ps, after_ps)
        return max(least.end_ps, loads.least_ps())

    def _turned_ps(self, rows: CirculantRows, sizes: Column) -> int:
        """Return the largest of the bounds of a circulant schedule, given its chunks' bytes."""
        hosts, ranks = len(self.ways.hosts), np.arange(rows.ranks)
        distinct, kinds = np.unique(sizes, return_inverse=True)
        line_bytes = np.array([self.line_bytes(size) for size in distinct.tolist()], np.int64)

        def alone_ps(distance: int) -> npt.NDArray[np.int64]:
            ways = self.ways.ways(ranks, (ranks + distance) % rows.ranks)
            return np.array(
                [[self.message_ps(way, size) for way in ways] for size in distinct.tolist()]
            )

        times = turned_times(rows, kinds, line_bytes, alone_ps)
        pairs = [(ranks + distance) % rows.ranks * hosts + ranks for distance in times.sends]
        known = times.sends.values()
        loads = self._carried(
            np.concatenate(pairs),
            np.concatenate([each.size_bytes for each in known]),
            np.concatenate([each.begin_ps for each in known]),
            np.concatenate([each.after_ps for each in known]),
        )
        return max(times.end_ps, loads.least_ps())

    def expected_ps(self, schedule: Schedule, size_bytes: int, element_bytes: int = 4) -> int:
        """Return the time that a schedule of hosts is expected to take: no bound, and no promise.

        It is `least_ps`; or, if that is more, the time of links that messages of one step share,
        and the delays of the longest chain of messages that need one another.
        """
        edges = np.array(
            [0, *(stop for _, stop in chunk_ranges(size_bytes // element_bytes, schedule.chunks))]
        )
        rows = schedule.columns
        sizes = (edges[rows.stop] - edges[rows.start]) * element_bytes
        goes = (rows.op != AGGREGATE) & ~schedule.is_local(rows) & (sizes > 0)
        depth = least_times(rows, goes.astype(np.int64), schedule.places, schedule.chunks).begin_ps
        distinct, size_of = np.unique(sizes[goes], return_inverse=True)
        line_bytes = np.array([self.line_bytes(size) for size in distinct.tolist()], np.int64)
        walk = HostMessages(
            rows.src[goes] % schedule.nodes, rows.dst[goes] % schedule.nodes, line_bytes[size_of]
        )
        shared_ps = min(
            busy_ps(self.ways, walk, rows.step[goes]), busy_ps(self.ways, walk, depth[goes])
        )
        delay = np.zeros(len(rows), np.int64)
        delay[goes] = self._delays(walk)
        chain_ps = least_times(rows, delay, schedule.places, schedule.chunks).end_ps
        return max(self.least_ps(schedule, size_bytes, element_bytes), shared_ps + chain_ps)

    def _delays(self, walk: HostMessages) -> Column:
        """Return the delay of each message's way."""
        hosts = len(self.ways.hosts)
        pairs, pair_of = np.unique(walk.src * hosts + walk.dst, return_inverse=True)
        delays = [way.delay_ps for way in self.ways.ways(*np.divmod(pairs, hosts))]
        by_message: Column = np.array(delays, np.int64)[pair_of]
        return by_message

    def _demand(self, system: str, asked: Aggregation) -> Demand:
        """Return a system's demand for an aggregation; for unknown systems, the least of any."""
        if system in SYSTEMS:
            return SYSTEMS[system].demand(self.ways, asked)
        return least_demand(self.ways, asked)

    def line_bytes(self, size_bytes: int) -> int:
        """Return the bytes of a message's packets on the line."""
        packets, rest = divmod(size_bytes, self._mtu_bytes)
        full = packets * (self._mtu_bytes + self._overhead_bytes)
        return full + max(rest + self._overhead_bytes, LEAST_LINE_BYTES) if rest else full

    @property
    def _helpers(self) -> tuple[int, ...]:
        """The numbers of the servers' hosts."""
        count = len(self.ways.hosts)
        return tuple(range(count - self._servers, count))

    def message_ps(self, way: RouteLinks, size_bytes: int) -> int:
        """Return the time of a message that is alone on its way."""
        if (way, size_bytes) not in self._alone_ps:
            first_bytes = min(size_bytes, self._mtu_bytes)
            last_bytes = (size_bytes - 1) % self._mtu_bytes + 1
            self._alone_ps[way, size_bytes] = way.alone_ps(
                *(self.line_bytes(size) for size in (first_bytes, size_bytes, last_bytes))
            )
        return self._alone_ps[way, size_bytes]

    def _alone(self, hops: Columns, sizes: Column) -> Column:
        """Return the time of each message between hosts, if it is alone."""
        distinct, size_of = np.unique(sizes, return_inverse=True)
        hosts = len(self.ways.hosts)
        pairs, pair_of = np.unique(hops.src * hosts + hops.dst, return_inverse=True)
        ways = self.ways.ways(*np.divmod(pairs, hosts))
        known, kind_of = np.unique(pair_of * len(distinct) + size_of, return_inverse=True)
        kinds = (divmod(kind, len(distinct)) for kind in known.tolist())
        times = [self.message_ps(ways[pair], int(distinct[size])) for pair, size in kinds]
        by_message: Column = np.array(times, np.int64)[kind_of]
        return by_message

    def _loads(
        self, hops: Columns, sizes: Column, times: Column, begin: Column, after: Column
    ) -> Loads:
        """Return the loads of all messages together; those between two hosts are one flow.

        Args:
            hops: Messages between hosts.
            sizes: Bytes of each.
            times: How many messages each stands for.
            begin: Earliest begin of each, in ps.
            after: Least time that follows the arrival of each, in ps.
        """
        hosts = len(self.ways.hosts)
        pair = hops.dst * hosts + hops.src
        pairs, pair_of = np.unique(pair, return_inverse=True)
        distinct, size_of = np.unique(sizes, return_inverse=True)
        line_bytes = np.array([self.line_bytes(size) for size in distinct.tolist()], np.int64)
        total = np.zeros(len(pairs), np.int64)
        begin_ps, after_ps = (np.full_like(total, FOREVER_PS) for _ in range(2))
        np.add.at(total, pair_of, line_bytes[size_of] * times)
        np.minimum.at(begin_ps, pair_of, begin)
        np.minimum.at(after_ps, pair_of, after)
        return self._carried(pairs, total, begin_ps, after_ps)

    def _carried(self, pairs: Column, total: Column, begin_ps: Column, after_ps: Column) -> Loads:
        """Return the loads of flows between hosts.

        Args:
            pairs: The number of each flow's destination, times hosts, and its source.
            total: Bytes of each.
            begin_ps: Earliest begin of each.
            after_ps: Least time that follows the end of each.
        """
        loads, (dst, src) = Loads(self.ways.links), np.divmod(pairs, len(self.ways.hosts))
        self.ways.add_flows(loads, PlannedFlows(src, dst, total, begin_ps, after_ps))
        return loads


def _of_each_size(
    schedule: Schedule, rows: PipelinedRows, edges: Column
) -> tuple[Schedule, Column, Column]:
    """Return a pipeline with one chunk of each size, its chunks' edges, and how many are alike.

    Chunks never meet, so those of one size have the same least times, whatever their steps.
    """
    sizes, counts = np.unique(np.diff(edges), return_counts=True)
    few = replace(schedule, chunks=len(sizes), rows=ChunkRows(pipelined(rows.way, len(sizes))))
    return few, np.concatenate(([0], np.cumsum(sizes))), counts
