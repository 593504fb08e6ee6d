"""The least bytes that in-network aggregation must send over each link, for bounds.

A system's `demand` (`ringleaf.ina.systems`) computes, for one aggregation, the bytes that pass each
link, and the least time of a single block. Blocks are dealt, joined and delivered as the system's
jobs do it, on the routes and trees that these get; it is assumed that nothing collides, is lost or
is sent again. This module has the question, the answer, and parts that systems share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.topologies.ways import Loads, TopologyRoutes

if TYPE_CHECKING:
    from ringleaf.core.tensors import Array


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregation that some hosts ask for.

    Args:
        members: Numbers of the workers' hosts.
        servers: Numbers of the hosts that help.
        elements: Number of elements of each worker's tensor.
        is_float: Whether elements are float32, not int32.
        lanes: Values in a full packet.
        slots: Number of slots, for systems that deal blocks to slots, and these to hosts;
            None: evenly.
        inputs: The tensors, for systems that leave zeros out; None: nothing is zero.
        trees: Trees that blocks are dealt to, for systems that may have several; None: the
            system's choice.
    """

    members: tuple[int, ...]
    servers: tuple[int, ...]
    elements: int
    is_float: bool
    lanes: int
    slots: int | None = None
    inputs: Sequence[Array] | None = None
    trees: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """The least time of an aggregation's first block, from start to all results; and all loads."""

    chain_ps: int
    loads: Loads

    @property
    def alone_ps(self) -> int:
        """The least time of the whole aggregation, if it is alone."""
        return max(self.chain_ps, self.loads.least_ps())


def least_demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return the demand of any system: each worker's values leave by its link, sums come in."""
    loads, delay_ps = Loads(ways.links), ways.delay_ps
    for rank in what.members:
        host, first = ways.hosts[rank], ways.access[rank]
        loads.add((host, (first,)), 4 * what.elements, 0, 0)
        loads.add((first, (host,)), 4 * what.elements, 0, 0)
    return Demand(max(delay_ps(a, b) for a in what.members for b in what.members), loads)


def frame_bytes(head_bytes: int, lanes: int) -> int:
    """Return the bytes of a packet on the line."""
    return max(head_bytes + 4 * lanes, MIN_FRAME_BYTES) + LINE_OVERHEAD_BYTES


def blocks_of(what: Aggregation) -> int:
    """Return the number of blocks, full packets and a last one, of an aggregation."""
    return -(-what.elements // what.lanes)


@dataclass(slots=True)
class Tree:
    """A tree of switches with hosts below, and the times of a packet in it.

    Args:
        ways: The ways of the topology.
        root: The highest switch of the tree.
        children: Switch -> nodes below it.
        packet_bytes: Size of a packet on the line.
        begin_ps: The time at which each host can send first; 0 if it is not there.
    """

    ways: TopologyRoutes
    root: str
    children: Mapping[str, Sequence[str]]
    packet_bytes: int
    begin_ps: Mapping[str, int] = field(default_factory=dict)
    up_ps: dict[str, int] = field(default_factory=dict)  # when all hosts below have arrived
    down_ps: dict[str, int] = field(default_factory=dict)  # to all hosts below
    from_root_ps: dict[str, int] = field(default_factory=dict)
    to_root_ps: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.from_root_ps[self.root] = self.to_root_ps[self.root] = 0
        self._measure(self.root)

    def _measure(self, node: str) -> None:
        self.up_ps[node], self.down_ps[node] = self.begin_ps.get(node, 0), 0
        for child in self.children.get(node, ()):
            down_ps = self.ways.hop_ps(node, child, self.packet_bytes)
            up_ps = self.ways.hop_ps(child, node, self.packet_bytes)
            self.from_root_ps[child] = self.from_root_ps[node] + down_ps
            self.to_root_ps[child] = self.to_root_ps[node] + up_ps
            self._measure(child)
            self.up_ps[node] = max(self.up_ps[node], self.up_ps[child] + up_ps)
            self.down_ps[node] = max(self.down_ps[node], self.down_ps[child] + down_ps)

    def edges(self) -> list[tuple[str, str]]:
        """Return each switch paired with each node below it."""
        return [(above, below) for above, nodes in self.children.items() for below in nodes]

    def add_down(self, loads: Loads, size_bytes: int, begin_ps: int) -> None:
        """Add the loads of the root sending bytes to all hosts, from `begin_ps` on."""
        for above, below in self.edges():
            after_ps = self.ways.hop_ps(above, below) + self.down_ps[below]
            loads.add((above, (below,)), size_bytes, begin_ps + self.from_root_ps[above], after_ps)

    def add_up(self, loads: Loads, size_bytes: int, after_ps: int) -> None:
        """Add the loads of all hosts sending to the root; switches forward the joined bytes."""
        for above, below in self.edges():
            rest_ps = self.ways.hop_ps(below, above) + self.to_root_ps[above] + after_ps
            loads.add((below, (above,)), size_bytes, self.up_ps[below], rest_ps)
