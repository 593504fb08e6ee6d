"""The least bytes that in-network aggregation must send over each link.

A function per system computes, for one aggregation, the bytes that pass each link, and the least
time of a single block. Blocks of all systems are dealt, joined and delivered as in `ina`, on the
routes and trees that its jobs get; it is assumed that nothing collides, is lost or is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ringleaf.ethernet import LINE_OVERHEAD_BYTES, MIN_FRAME_BYTES
from ringleaf.experiments.bounds.ways import Flow, Loads, Outlet, Pass, Ways
from ringleaf.topologies.graph import neighbors
from ringleaf.topologies.trees import aggregation_tree

if TYPE_CHECKING:
    import torch


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
    """

    members: tuple[int, ...]
    servers: tuple[int, ...]
    elements: int
    is_float: bool
    lanes: int
    slots: int | None = None
    inputs: Sequence[torch.Tensor] | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """The least time of an aggregation's first block, from start to all results; and all loads."""

    chain_ps: int
    loads: Loads

    @property
    def alone_ps(self) -> int:
        """The least time of the whole aggregation, if it is alone."""
        return max(self.chain_ps, self.loads.least_ps())


def demand(system: str, ways: Ways, what: Aggregation) -> Demand:
    """Return a system's demand for an aggregation; for unknown systems, the least of any."""
    return _DEMANDS.get(system, _anything)(ways, what)


def _anything(ways: Ways, what: Aggregation) -> Demand:
    """Return the demand of any system: each worker's values leave by its link, sums come in."""
    loads, delays_ps = Loads(ways.links), ways.delays_ps
    for rank in what.members:
        host, first = ways.hosts[rank], ways.access[rank]
        loads.add((host, (first,)), 4 * what.elements, 0, 0)
        loads.add((first, (host,)), 4 * what.elements, 0, 0)
    return Demand(max(delays_ps[a][b] for a in what.members for b in what.members), loads)


def _frame_bytes(head_bytes: int, lanes: int) -> int:
    """Return the bytes of a packet on the line."""
    return max(head_bytes + 4 * lanes, MIN_FRAME_BYTES) + LINE_OVERHEAD_BYTES


def _blocks(what: Aggregation) -> int:
    return -(-what.elements // what.lanes)


@dataclass(slots=True)
class _Tree:
    """A tree of switches with hosts below, and the times of a packet in it.

    Args:
        ways: The ways of the topology.
        root: The highest switch of the tree.
        children: Switch -> nodes below it.
        packet_bytes: Size of a packet on the line.
    """

    ways: Ways
    root: str
    children: Mapping[str, Sequence[str]]
    packet_bytes: int
    up_ps: dict[str, int] = field(default_factory=dict)  # from all hosts below
    down_ps: dict[str, int] = field(default_factory=dict)  # to all hosts below
    from_root_ps: dict[str, int] = field(default_factory=dict)
    to_root_ps: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.from_root_ps[self.root] = self.to_root_ps[self.root] = 0
        self._measure(self.root)

    def _measure(self, node: str) -> None:
        self.up_ps[node] = self.down_ps[node] = 0
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

    def add_up(self, loads: Loads, size_bytes: int, begin_ps: int, after_ps: int) -> None:
        """Add the loads of all hosts sending to the root; switches forward the joined bytes."""
        for above, below in self.edges():
            rest_ps = self.ways.hop_ps(below, above) + self.to_root_ps[above] + after_ps
            loads.add((below, (above,)), size_bytes, begin_ps + self.up_ps[below], rest_ps)


def _switchml(ways: Ways, what: Aggregation) -> Demand:
    """Return SwitchML's demand: each block goes up and down each edge of the tree once.

    For floats, exponents go first: no slot sends its first block before it has all workers'
    exponents of it.
    """
    from ringleaf.ina.switchml.wire import VALUES_AT

    members = [ways.hosts[rank] for rank in what.members]
    tree = aggregation_tree(ways.graph, members)
    begin_ps = 0
    if what.is_float:
        head = _Tree(ways, tree.root, tree.children, _frame_bytes(VALUES_AT, 0))
        begin_ps = head.up_ps[tree.root] + head.down_ps[tree.root]
    packet_bytes = _frame_bytes(VALUES_AT, what.lanes)
    full = _Tree(ways, tree.root, tree.children, packet_bytes)
    up_ps, down_ps = full.up_ps[tree.root], full.down_ps[tree.root]
    loads = Loads(ways.links)
    full.add_up(loads, _blocks(what) * packet_bytes, begin_ps, down_ps)
    full.add_down(loads, _blocks(what) * packet_bytes, begin_ps + up_ps)
    return Demand(begin_ps + up_ps + down_ps, loads)


@dataclass(frozen=True, slots=True)
class _Share:
    """The switches' configuration for one of ATP's parameter servers."""

    complete: dict[str, int]  # switch -> workers that it adds up, as bits
    children: dict[str, list[str]]  # of the tree that delivers results


def _atp(ways: Ways, what: Aggregation) -> Demand:
    """Return ATP's demand.

    Gradients go to parameter servers, added up by two switches at most; results by a tree.
    """
    from ringleaf.ina.atp.wire import VALUES_AT

    packet_bytes = _frame_bytes(VALUES_AT, what.lanes)
    loads, chain_ps = Loads(ways.links), 0
    servers = what.servers or what.members
    for number, share in enumerate(_atp_shares(ways, what, servers)):
        blocks = len(range(number, _blocks(what), len(servers)))
        if blocks:
            one_ps = _atp_server(ways, what, servers[number], share, packet_bytes, blocks, loads)
            chain_ps = max(chain_ps, one_ps)
    return Demand(chain_ps, loads)


def _atp_shares(ways: Ways, what: Aggregation, servers: Sequence[int]) -> list[_Share]:
    """Return the configuration that the control plane gives switches, by server."""
    import finsy as fy

    from ringleaf.ina.atp.control import AGGREGATORS, GROUPS_PER_JOB, Job, entities

    members, helpers = (
        tuple(ways.hosts[i] for i in numbers) for numbers in (what.members, servers)
    )
    job = Job(1, members, helpers, AGGREGATORS[what.lanes], window=1, lanes=what.lanes)
    shares = [_Share({}, {}) for _ in servers]
    for switch, rows in entities(ways.graph, job).items():
        peers = neighbors(ways.graph, switch)
        for row in rows:
            if isinstance(row, fy.P4MulticastGroupEntry):
                server = row.multicast_group_id // GROUPS_PER_JOB - 1
                shares[server].children[switch] = [peers[int(port)] for port in row.replicas]
            elif row.table_id == "shares":
                complete = int(row.action.args["complete"])
                shares[int(row.match["server"])].complete[switch] = complete
    return shares


def _atp_server(
    ways: Ways,
    what: Aggregation,
    server: int,
    share: _Share,
    packet_bytes: int,
    blocks: int,
    loads: Loads,
) -> int:
    """Add the loads to and from one server; return the least time of one block."""
    host, first = ways.hosts[server], ways.access[server]
    size_bytes = blocks * packet_bytes
    tree = _Tree(ways, first, share.children, packet_bytes)
    out_ps = ways.hop_ps(host, first, packet_bytes)
    in_ps = ways.hop_ps(first, host, packet_bytes)
    down_ps = out_ps + tree.down_ps[first]
    groups = _groups(ways, what, server, share, packet_bytes)
    up_ps = max(group.there_ps for group in groups) + in_ps
    for group in groups:
        for each in group.passes:
            loads.add(each.outlet, size_bytes, each.before_ps, each.after_ps + down_ps)
    at_last_ps = min(group.first_ps for group in groups)
    loads.add((first, (host,)), size_bytes, at_last_ps, ways.hop_ps(first, host) + down_ps)
    loads.add((host, (first,)), size_bytes, up_ps, ways.hop_ps(host, first) + tree.down_ps[first])
    tree.add_down(loads, size_bytes, up_ps + out_ps)
    return up_ps + down_ps


@dataclass(frozen=True, slots=True)
class _Group:
    """Workers whose gradients one switch adds up, on their way to a server's switch."""

    passes: list[Pass]  # each has to carry all blocks once
    first_ps: int  # until any of their values can be sent on by the server's switch
    there_ps: int  # until all of them can


def _groups(
    ways: Ways, what: Aggregation, server: int, share: _Share, packet_bytes: int
) -> list[_Group]:
    """Group workers by the switch that adds before the server's own does; others are alone."""
    last = ways.access[server]
    found: dict[str, list[tuple[list[Pass], list[Pass]]]] = {}
    ways_there = ways.passes(what.members, server, packet_bytes)
    for number, passes in enumerate(ways_there):
        adder = next(
            (s for s, bits in share.complete.items() if bits >> number & 1 and s != last), last
        )
        at = next(i for i, each in enumerate(passes) if each.outlet[0] == adder)
        key = adder if adder != last else f"alone {number}"
        found.setdefault(key, []).append((passes[:at], passes[at:]))
    return [_group(members) for members in found.values()]


def _group(members: Sequence[tuple[list[Pass], list[Pass]]]) -> _Group:
    """Return a group of workers, given the passes of each one's packets before and after adding.

    A sum goes on like the packet that completed it, so only passes common to all are certain.
    """
    passes = [each for before, _ in members for each in before]
    by_outlet: dict[Outlet, list[Pass]] = {}
    for _, tail in members:
        for each in tail[:-1]:  # the server's own link is everybody's
            by_outlet.setdefault(each.outlet, []).append(each)
    for outlet, alike in by_outlet.items():
        if len(alike) == len(members):
            before_ps, after_ps = min(a.before_ps for a in alike), min(a.after_ps for a in alike)
            passes.append(Pass(outlet, before_ps, after_ps))
    added_ps = max(tail[0].before_ps for _, tail in members)
    rest_ps = min(tail[-1].before_ps - tail[0].before_ps for _, tail in members)
    return _Group(passes, min(tail[-1].before_ps for _, tail in members), added_ps + rest_ps)


def _omnireduce(ways: Ways, what: Aggregation) -> Demand:
    """Return OmniReduce's demand: workers send blocks to aggregators, and get all sums.

    A slot has a packet from and to each worker in every round, whether it holds blocks or not.
    """
    from ringleaf.ina.omnireduce.wire import BLOCK, BLOCK_BYTES, values_at

    columns = what.lanes // BLOCK
    head_bytes = values_at(columns) + LINE_OVERHEAD_BYTES
    places = what.servers or what.members
    dealt = _dealt(what, columns, len(places))
    loads, chain_ps = Loads(ways.links), 0
    results: dict[int, dict[int, Flow]] = {}
    for number, place in enumerate(places):
        rounds = dealt.rounds[number]
        if not rounds:
            continue
        there_ps = {rank: _transit_ps(ways, rank, place, head_bytes) for rank in what.members}
        back_ps = {rank: _transit_ps(ways, place, rank, head_bytes) for rank in what.members}
        up_ps, down_ps = max(there_ps.values()), max(back_ps.values())
        chain_ps = max(chain_ps, up_ps + down_ps)
        updates = {
            rank: Flow(rounds * head_bytes + blocks * BLOCK_BYTES, 0, down_ps)
            for rank, blocks in zip(what.members, dealt.given[number], strict=True)
        }
        ways.add_flows(loads, place, updates)
        size_bytes = rounds * head_bytes + dealt.summed[number] * BLOCK_BYTES
        for rank in what.members:
            results.setdefault(rank, {})[place] = Flow(size_bytes, up_ps, 0)
    for rank, flows in results.items():
        ways.add_flows(loads, rank, flows)
    return Demand(chain_ps, loads)


def _transit_ps(ways: Ways, src: int, dst: int, packet_bytes: int) -> int:
    return ways.way(src, dst).alone_ps(packet_bytes, packet_bytes, packet_bytes)


@dataclass(frozen=True, slots=True)
class _Dealt:
    """The work of each of OmniReduce's aggregators."""

    rounds: list[int]  # of all its slots
    given: list[list[int]]  # blocks from each worker that are not zero
    summed: list[int]  # blocks that any worker has


def _dealt(what: Aggregation, columns: int, aggregators: int) -> _Dealt:
    """Deal blocks to slots by columns, and slots to aggregators, as OmniReduce's workers do.

    A slot takes a round for each block of its fullest column; the first one of a column counts
    even if it is zero everywhere.
    """
    from ringleaf.ina.omnireduce.wire import BLOCK

    blocks = -(-what.elements // BLOCK)
    slots = what.slots or aggregators
    positions = max(-(-blocks // (slots * columns)), 1)
    places = np.arange(positions * slots * columns) // columns % slots % aggregators
    given = [_filled(what, worker, blocks, places.size) for worker in range(len(what.members))]
    anywhere = np.logical_or.reduce(given)
    counts = anywhere.reshape(positions, slots, columns).sum(axis=0)
    exists = np.arange(slots * columns).reshape(slots, columns) < blocks
    counts += exists & ~anywhere.reshape(positions, slots, columns)[0]
    rounds = np.zeros(aggregators, np.int64)
    np.add.at(rounds, np.arange(slots) % aggregators, counts.max(axis=1))
    by_worker = [np.bincount(places[filled], minlength=aggregators) for filled in given]
    summed = np.bincount(places[anywhere], minlength=aggregators)
    return _Dealt(rounds.tolist(), np.transpose(by_worker).tolist(), summed.tolist())


def _filled(what: Aggregation, worker: int, blocks: int, room: int) -> npt.NDArray[np.bool_]:
    """Return a mask of a worker's blocks that are not zero, as long as there is room for."""
    from ringleaf.ina.omnireduce.wire import BLOCK

    filled = np.zeros(room, np.bool_)
    if what.inputs is None:
        filled[:blocks] = True
        return filled
    bits = np.zeros(blocks * BLOCK, np.int32)
    bits[: what.elements] = what.inputs[worker].numpy().view(np.int32)
    filled[:blocks] = bits.reshape(-1, BLOCK).any(axis=1)
    return filled


_DEMANDS: dict[str, Callable[[Ways, Aggregation], Demand]] = {
    "switchml": _switchml,
    "atp": _atp,
    "omnireduce": _omnireduce,
}
