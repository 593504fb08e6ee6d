"""A topology's switches and hosts by numbers, in arrays, for computations over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.topologies.graph import attachment, hosts, port, switch_graph

Numbers = npt.NDArray[np.int64]
Distances = npt.NDArray[np.int16]

UNREACHED = -1


@dataclass(frozen=True)
class SwitchArrays:
    """Switches, the links between them, and the hosts at them.

    A switch's links to other switches are consecutive, in the order of its ports.

    Attributes:
        switches: Names, in natural order.
        hosts: Names, in rank order.
        first: (switches + 1,) the place of each switch's first link, and the number of links.
        peer: (links,) the number of the switch at the other end.
        port: (links,) the port that leads there.
        at: (hosts,) the number of each host's switch.
        host_port: (hosts,) the port of its switch that leads to each host.
    """

    switches: list[str]
    hosts: list[str]
    first: Numbers
    peer: Numbers
    port: Numbers
    at: Numbers
    host_port: Numbers

    @classmethod
    def of(cls, graph: nx.Graph[str]) -> SwitchArrays:
        """Return the arrays of a topology.

        Raises:
            TopologyError: If a host is not at one switch.
        """
        peers = switch_graph(graph)
        number = {switch: place for place, switch in enumerate(peers)}
        names = hosts(graph)
        access = [attachment(graph, host) for host in names]
        ports = [port(graph, switch, host) for switch, host in zip(access, names, strict=True)]
        first = np.zeros(len(peers) + 1, np.int64)
        np.cumsum([len(near) for near in peers.values()], out=first[1:])
        return cls(
            list(peers),
            names,
            first,
            np.array([number[peer] for near in peers.values() for peer in near], np.int64),
            np.array([port for near in peers.values() for port in near.values()], np.int64),
            np.array([number[switch] for switch in access], np.int64),
            np.array(ports, np.int64),
        )

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each switch."""
        return {switch: place for place, switch in enumerate(self.switches)}

    @cached_property
    def leaves(self) -> Numbers:
        """(leaves,) the numbers of the switches with hosts, in the order of their first hosts."""
        numbers, first = np.unique(self.at, return_index=True)
        leaves: Numbers = numbers[np.argsort(first)]
        return leaves

    @cached_property
    def leaf(self) -> Numbers:
        """(hosts,) the place in `leaves` of each host's switch."""
        place = np.zeros(len(self.switches), np.int64)
        place[self.leaves] = np.arange(len(self.leaves))
        return place[self.at]

    def has_links(self, pairs: Numbers) -> npt.NDArray[np.bool_]:
        """Return, for each row (switch, switch) of `pairs`, whether a link joins them."""
        count = len(self.switches)
        source = np.repeat(np.arange(count), np.diff(self.first))
        keys = pairs[:, 0] * count + pairs[:, 1]
        return np.isin(keys, source * count + self.peer)

    @cached_property
    def distances(self) -> Distances:
        """(switches, leaves) the number of links to each switch with hosts; or UNREACHED.

        All leaves' searches go on at once, a bit for each, level by level.
        """
        count = len(self.leaves)
        bits = np.zeros((len(self.switches), -(-count // 64) * 8), np.uint8)
        sources = np.zeros((len(self.switches), count), bool)
        sources[self.leaves, np.arange(count)] = True
        packed = np.packbits(sources, axis=1)
        bits[:, : packed.shape[1]] = packed
        reached = bits.view(np.uint64)
        distance = np.zeros((len(self.switches), count), np.int16)
        while True:
            left = np.unpackbits(reached.view(np.uint8), axis=1, count=count) == 0
            wider = reached | self._joined(reached)
            if (wider == reached).all():
                distance[left] = UNREACHED
                return distance
            distance += left
            reached = wider

    def _joined(self, bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return, by switch, the bits that any of its neighbours has."""
        joined = np.zeros_like(bits)
        linked = np.flatnonzero(np.diff(self.first))
        if len(linked):
            joined[linked] = np.bitwise_or.reduceat(bits[self.peer], self.first[linked])
        return joined
