"""Routes of racks that circuits join: by a circuit where there is one, else by packet switches.

With a core of packet switches a circuit carries what its own two racks send to each other, as in
Helios and c-Through. Without one, all ways lead over circuits, and racks forward for others, as in
OSA and TopoOpt.
"""

from __future__ import annotations

from collections.abc import Hashable

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.errors import ConfigError
from ringleaf.topologies.arrays import UNREACHED, Distances, Numbers, SwitchArrays
from ringleaf.topologies.graph import circuits as circuit_links
from ringleaf.topologies.graph import hosts, index, natural, without_circuits
from ringleaf.topologies.route_table import PortSets, RouteTable, sets_of_links
from ringleaf.topologies.switching.plan import Circuits

Allowed = npt.NDArray[np.bool_]


class CircuitWays:
    """The routes of a topology by its circuits.

    Args:
        graph: A topology with circuits.

    Attributes:
        racks: The switches that circuits join, in natural order.
        optical: Circuits that a rack can have at a time, each way.
        has_core: Whether all hosts reach one another without circuits.

    Raises:
        ConfigError: If the topology has no circuits, or its routes are not the usual ones.
    """

    def __init__(self, graph: nx.Graph[str]) -> None:
        _check(graph)
        self.racks = sorted({end for ends in circuit_links(graph) for end in ends}, key=natural)
        self.optical: int = graph.graph["optical"]
        self._arrays = SwitchArrays.of(graph)
        self._usual = SwitchArrays.of(without_circuits(graph))
        left = self._usual.distances
        self.has_core = not (left == UNREACHED).any()
        number = self._arrays.number
        self._number = np.array([number[rack] for rack in self.racks])
        self._rack = {place: rack for rack, place in enumerate(self._number.tolist())}
        self._leaf = {
            self._rack[place]: leaf for leaf, place in enumerate(self._arrays.leaves.tolist())
        }
        self._links = [
            slice(self._arrays.first[place], self._arrays.first[place + 1])
            for place in range(len(self._arrays.switches))
        ]
        self._near = [self._nearer(place) for place in range(len(self._arrays.switches))]

    def _nearer(self, switch: int) -> Allowed:
        """Return, (links, leaves), the links to packet switches that lead nearer to each leaf."""
        distance = self._usual.distances
        peers = self._arrays.peer[self._links[switch]]
        own = self._usual.peer[self._usual.first[switch] : self._usual.first[switch + 1]]
        nearer = (distance[peers] < distance[switch]) & (distance[peers] != UNREACHED)
        return np.asarray(nearer & np.isin(peers, own)[:, None])

    def table(self, circuits: Circuits) -> RouteTable:
        """Return the routes with these circuits.

        Raises:
            ConfigError: If a rack can't reach another.
        """
        return self._direct(circuits) if self.has_core else self._over_circuits(circuits)

    def _direct(self, circuits: Circuits) -> RouteTable:
        """Return the routes by packet switches, but for pairs of racks that have a circuit."""
        away = self._usual.distances.copy()
        turned: dict[int, list[tuple[int, int]]] = {}
        for src, dst in circuits.ports:
            if dst in self._leaf:
                here, there, leaf = self._number[src], self._number[dst], self._leaf[dst]
                away[here, leaf] = 1
                turned.setdefault(int(here), []).append((int(there), leaf))

        def find(switch: int) -> PortSets:
            allowed = self._near[switch]
            if switch in turned:
                allowed, peers = allowed.copy(), self._arrays.peer[self._links[switch]]
                for there, leaf in turned[switch]:
                    allowed[:, leaf] = peers == there
            return sets_of_links(self._arrays, switch, allowed)

        return RouteTable(self._arrays, find, away)

    def keys(self, circuits: Circuits) -> dict[str, Hashable]:
        """Return, by switch, what its routes with these circuits follow from."""
        if not self.has_core:
            whole = (tuple(sorted(circuits.ports)), tuple(sorted(circuits.following.items())))
            return dict.fromkeys(self._arrays.switches, whole)
        own: dict[int, list[int]] = {}
        for src, dst in sorted(circuits.ports):
            own.setdefault(int(self._number[src]), []).append(dst)
        return {name: tuple(own.get(place, ())) for place, name in enumerate(self._arrays.switches)}

    def check(self, circuits: Circuits) -> None:
        """Check that all racks reach one another with these circuits.

        Raises:
            ConfigError: If a rack can't reach another.
        """
        left = self.hops(circuits)
        if not self.has_core and (left < 0).any():
            src, dst = (int(each[0]) for each in np.nonzero(left < 0))
            raise ConfigError(
                f"circuits: no way from {self.racks[src]} to {self.racks[dst]} over those that "
                "are up; take more with optical=, or a core"
            )

    def _over_circuits(self, circuits: Circuits) -> RouteTable:
        """Return the routes by the fewest circuits, or as the circuits' own ways say."""
        self.check(circuits)
        left = self.hops(circuits)
        away: Distances = np.zeros((len(self._arrays.switches), len(self._arrays.leaves)), np.int16)
        leaves = [rack for rack, _ in sorted(self._leaf.items(), key=lambda each: each[1])]
        away[self._number] = left[:, leaves]

        def find(switch: int) -> PortSets:
            src = self._rack[switch]
            peers = [self._rack[each] for each in self._arrays.peer[self._links[switch]].tolist()]
            is_up = np.array([(src, peer) in circuits.ports for peer in peers])
            nearer = left[peers][:, leaves] < left[src, leaves]
            allowed = np.asarray(is_up[:, None] & nearer)
            for place, dst in enumerate(leaves):
                if (src, dst) in circuits.following:
                    allowed[:, place] = np.array(peers) == circuits.following[src, dst]
            return sets_of_links(self._arrays, switch, allowed)

        return RouteTable(self._arrays, find, away)

    def hops(self, circuits: Circuits) -> Numbers:
        """Return, (racks, racks), the fewest circuits on a way; -1 where there is none."""
        count = len(self.racks)
        joined = np.zeros((count, count), bool)
        for pair in circuits.ports:
            joined[pair] = True
        left = np.where(np.eye(count, dtype=bool), 0, -1)
        reached = np.eye(count, dtype=bool)
        for hops in range(1, count):
            wider = reached | (reached @ joined)
            if (wider == reached).all():
                break
            left[wider & ~reached] = hops
            reached = wider
        return left

    def racks_of_hosts(self, graph: nx.Graph[str]) -> list[int]:
        """Return the rack of each host."""
        assert [index(host) for host in hosts(graph)] == list(range(len(self._arrays.at)))
        return [self._rack[int(place)] for place in self._arrays.at]


def _check(graph: nx.Graph[str]) -> None:
    """Check that a topology has circuits, and routes that a controller can set."""
    if "machine" in graph.graph:
        raise ConfigError(f"circuits: hosts can't be machines, got {graph.name}; leave out node=")
    if "optical" not in graph.graph:
        raise ConfigError(
            f"circuits: is for a topology with circuits, got {graph.name}; take topo=circuits"
        )
    if graph.graph["routing"] != "shortest" or graph.graph.get("detours"):
        raise ConfigError(
            f"circuits: is for routes dealt and ecmp, got others of {graph.name}; leave out "
            "routes= and detours="
        )
