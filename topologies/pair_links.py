"""The links between many pairs of hosts at once, by number: no table of all routes is made.

A table of routes has a row for each switch and host, which is 300 million for 65,536 hosts. Here
the ways of all pairs are followed together, link by link, from the switches' distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled
from ringleaf.core.units import serialize_ps
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.delays import host_delay_ps, node_delay_ps
from ringleaf.topologies.detours import detours
from ringleaf.topologies.graph import directions
from ringleaf.topologies.route_table import RouteTable
from ringleaf.topologies.routing import MOST_RANKS

MOST_ENTRIES = 1 << 25
"""The most pairs of a switch and a host for which next links are kept, where a rule says them."""

LONGEST = 64  # links of a way
Links = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LinkColumns:
    """All directions of links, as columns: those between switches, then to hosts, then from them.

    Attributes:
        ends: The names of both ends, by number.
        rate_bps: (links,) rates.
        delay_ps: (links,) delays, those of nodes that are passed at either end included.
        queue_bytes: (links,) the size of the queue in front; -1: as the experiment has it.
        is_of_host: (links,) whether a host sends there.
    """

    ends: list[tuple[str, str]]
    rate_bps: Numbers
    delay_ps: Numbers
    queue_bytes: Numbers
    is_of_host: npt.NDArray[np.bool_]

    @property
    def apart(self) -> Numbers:
        """(links, any) what tells links apart, whoever crosses them."""
        own = (self.rate_bps, self.delay_ps, self.queue_bytes, self.is_of_host)
        return np.stack(own, axis=1)


class PairLinks:
    """Finds the links of packets between hosts, where each host is reached by one path.

    Args:
        graph: The topology.
        table: Its routes, from `routes`.

    Routes are those of `dealt`. Where they aren't shortest paths, or there are detours, there must
    be few enough switches and hosts for a table (`can_find`).
    """

    def __init__(self, graph: nx.Graph[str], table: RouteTable) -> None:
        self._graph, self._table, self._arrays = graph, table, table.arrays
        self._hosts, self._switch_links = len(table.arrays.hosts), len(table.arrays.peer)

    def can_find(self) -> bool:
        """Return whether ways can be found from distances, or from a table that is not large."""
        if detours(self._graph):
            return False
        entries = len(self._arrays.switches) * self._hosts
        return self._graph.graph["routing"] == "shortest" or entries <= MOST_ENTRIES

    @cached_property
    def columns(self) -> LinkColumns:
        """All directions of links; hosts' are in rank order."""
        arrays, graph = self._arrays, self._graph
        names = arrays.switches
        source = np.repeat(np.arange(len(names)), np.diff(arrays.first)).tolist()
        between = [(names[a], names[b]) for a, b in zip(source, arrays.peer.tolist(), strict=True)]
        at = [names[switch] for switch in arrays.at.tolist()]
        ends = [*between, *zip(at, arrays.hosts, strict=True), *zip(arrays.hosts, at, strict=True)]
        sent = {(a, b): each for a, b, each in directions(graph)}
        wires = [sent[pair] for pair in ends]
        of_host = np.arange(len(ends)) >= len(ends) - self._hosts
        to_host = (np.arange(len(ends)) >= len(between)) & ~of_host
        switch_ps = node_delay_ps(graph, names[0])
        inside_ps = np.where(to_host, host_delay_ps(graph), switch_ps)
        inside_ps += np.where(of_host, host_delay_ps(graph), 0)
        queues = [-1 if each.queue_bytes is None else each.queue_bytes for each in wires]
        return LinkColumns(
            ends,
            np.array([each.rate_bps for each in wires], np.int64),
            np.array([each.delay_ps for each in wires], np.int64) + inside_ps,
            np.array(queues, np.int64),
            of_host,
        )

    def find(self, src: Numbers, dst: Numbers, *, is_dealt: bool = True) -> Links:
        """Return the links of some pairs of hosts, in order: (pairs, longest), then -1.

        Args:
            src: (pairs,) hosts that send.
            dst: (pairs,) hosts that receive, others than those.
            is_dealt: Whether ports are dealt out; if not, the lowest one is taken.
        """
        arrays = self._arrays
        way = np.full((len(src), LONGEST), -1, np.int32)
        way[:, 0] = self._switch_links + self._hosts + src
        used = np.ones(len(src), np.int64)
        if self._graph.graph["routing"] == "shortest":
            turn, many = self._turns(dst if is_dealt else 0 * dst)
            _follow(
                arrays.first, arrays.peer, arrays.distances, self._blocks, arrays.leaf[dst],
                turn, many, arrays.at[src], way, used,
            )  # fmt: skip
        else:
            self._follow_table(src, dst, way, used)
        way[np.arange(len(src)), used] = self._switch_links + dst
        return way[:, : int(used.max(initial=0)) + 1]

    @property
    def switches(self) -> int:
        """The number of switches."""
        return len(self._arrays.switches)

    @property
    def peer(self) -> Numbers:
        """(links between switches,) the switch that each leads to."""
        return self._arrays.peer

    def switch_of(self, hosts: Numbers) -> Numbers:
        """Return the number of each host's switch."""
        return self._arrays.at[hosts]

    def own_links(self, hosts: Numbers) -> tuple[Numbers, Numbers]:
        """Return the links from hosts, and to them."""
        return self._switch_links + self._hosts + hosts, self._switch_links + hosts

    def next_links(self, dst: Numbers, *, is_dealt: bool = True) -> Links:
        """Return the link that each switch sends packets by: (hosts, switches); -1: none.

        Args:
            dst: (hosts,) hosts of one switch that receive.
            is_dealt: Whether ports are dealt out; if not, the lowest one is taken.
        """
        arrays = self._arrays
        if self._graph.graph["routing"] == "shortest":
            following = np.full((len(dst), len(arrays.switches)), -1, np.int32)
            good = np.zeros(self._blocks.shape[1], np.int64)
            turn, many = self._turns(dst if is_dealt else 0 * dst)
            leaf = int(arrays.leaf[dst[0]])
            _choose(
                arrays.first, arrays.peer, arrays.distances, self._blocks,
                leaf, turn, many, good, following,
            )  # fmt: skip
            return following
        following = np.ascontiguousarray(self._next[:, dst].T)
        following[:, arrays.at[dst[0]]] = -1
        return following

    def longest_rtt_ps(self, size_bytes: int) -> int:
        """Return what `routing.longest_rtt_ps` does, where the first host is as far as any."""
        columns = self.columns
        hop_ps = columns.delay_ps + _serialize(columns.rate_bps, size_bytes)
        others = np.arange(1, self._hosts)
        round_ps = np.zeros(len(others), np.int64)
        for src, dst in ((0 * others, others), (others, 0 * others)):
            way = self.find(src, dst, is_dealt=False)
            round_ps += np.where(way >= 0, hop_ps[way], 0).sum(axis=1)
        return int(round_ps.max(initial=0))

    def _turns(self, dst: Numbers) -> tuple[Numbers, Numbers]:
        """Return the machine of each host, and its number there, by which ports are dealt."""
        gpus, _ = self._graph.graph.get("machine", (1, 0))
        machine, gpu = np.divmod(dst, gpus)
        return machine, gpu

    @cached_property
    def _blocks(self) -> Numbers:
        """(switches, ports + 1) neighbouring ranks that get the same port, by number of ports."""
        _, inner = self._graph.graph.get("machine", (1, 0))
        tiers = [self._graph.nodes[name]["tier"] for name in self._arrays.switches]
        most = int(np.diff(self._arrays.first).max(initial=0))
        by_tier = {
            tier: [1, *(min(n ** max(tier - inner, 0), MOST_RANKS) for n in range(1, most + 1))]
            for tier in set(tiers)
        }
        return np.array([by_tier[tier] for tier in tiers], np.int64)

    def _follow_table(self, src: Numbers, dst: Numbers, way: Links, used: Numbers) -> None:
        """Follow the ways of a rule, switch by switch."""
        at, last = self._arrays.at[src].copy(), self._arrays.at[dst]
        while (under_way := np.flatnonzero(at != last)).size:
            links = self._next[at[under_way], dst[under_way]]
            way[under_way, used[under_way]] = links
            used[under_way] += 1
            at[under_way] = self._arrays.peer[links]

    @cached_property
    def _next(self) -> Links:
        """(switches, hosts) the link that each switch sends packets to each host by."""
        arrays = self._arrays
        table = np.zeros((len(arrays.switches), self._hosts), np.int32)
        for number in range(len(arrays.switches)):
            sets = self._table.find(number)
            assert all(len(ports) == 1 for ports in sets.sets), "a rule names one port"
            first, stop = arrays.first[number : number + 2]
            place = {port: first + i for i, port in enumerate(arrays.port[first:stop].tolist())}
            links = np.array([place.get(ports[0], 0) for ports in sets.sets], np.int32)
            table[number] = links[sets.of_host]
        return table


_numbers = types.int64[::1]


@compiled(
    types.void(
        *[_numbers] * 2,
        types.int16[:, ::1],
        types.int64[:, ::1],
        *[_numbers] * 4,
        types.int32[:, ::1],
        _numbers,
    )
)
def _follow(
    first: Numbers,
    peer: Numbers,
    distances: npt.NDArray[np.int16],
    blocks: Numbers,
    leaf: Numbers,
    machine: Numbers,
    gpu: Numbers,
    at: Numbers,
    way: Links,
    used: Numbers,
) -> None:
    """Follow shortest paths from the switches of senders to those of receivers."""
    for pair in range(len(leaf)):
        switch = at[pair]
        while distances[switch, leaf[pair]] > 0:
            left = distances[switch, leaf[pair]]
            count = 0
            for place in range(first[switch], first[switch + 1]):
                if distances[peer[place], leaf[pair]] < left:
                    count += 1
            block = blocks[switch, count]
            turn = (machine[pair] // block + gpu[pair] // block) % count
            place = first[switch]
            while True:
                if distances[peer[place], leaf[pair]] < left:
                    if turn == 0:
                        break
                    turn -= 1
                place += 1
            way[pair, used[pair]] = place
            used[pair] += 1
            switch = peer[place]


@compiled(
    types.void(
        *[_numbers] * 2,
        types.int16[:, ::1],
        types.int64[:, ::1],
        types.int64,
        *[_numbers] * 3,
        types.int32[:, ::1],
    ),
    rare=True,
)
def _choose(
    first: Numbers,
    peer: Numbers,
    distances: npt.NDArray[np.int16],
    blocks: Numbers,
    leaf: int,
    machine: Numbers,
    gpu: Numbers,
    good: Numbers,
    following: Links,
) -> None:
    """Choose each switch's next link on a shortest path to hosts of one leaf.

    `good` has room for a switch's links.
    """
    for switch in range(len(first) - 1):
        left, count = distances[switch, leaf], 0
        for place in range(first[switch], first[switch + 1]):
            if distances[peer[place], leaf] < left:
                good[count] = place
                count += 1
        if count > 0:
            block = blocks[switch, count]
            for host in range(len(machine)):
                turn = (machine[host] // block + gpu[host] // block) % count
                following[host, switch] = good[turn]


def _serialize(rates: Numbers, size_bytes: int) -> Numbers:
    """Return the time of so many bytes on each link."""
    distinct, place = np.unique(rates, return_inverse=True)
    return np.array([serialize_ps(size_bytes, rate) for rate in distinct.tolist()], np.int64)[place]
