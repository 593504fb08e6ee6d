"""Classes of ranks, links and flows of a collective, and a few ranks that stand for all.

Ranks of a symmetric schedule (`ringleaf.collectives.symmetry`) and the links that they send over
are put into classes (`ringleaf.topologies.partition`), and so are the flows to their peers. The
first rank of each class has the plan of its kind, and its peers are classes. If several peers do
the same, such as both children in a tree, it has the first one only. A flow stands for all of its
class, and a link for all links of its class, each of which carries as many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import Columns
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.symmetry import Symmetry
from ringleaf.hosts.plan import Plans
from ringleaf.hosts.shared_plans import SharedPlans, plan_of_rank, shared
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.pair_links import LinkColumns, PairLinks
from ringleaf.topologies.partition import Partition, refine


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a symmetric schedule's ranks on a topology.

    Attributes:
        symmetry: What the schedule's ranks have in common.
        hosts: (ranks,) the number of each rank's host.
        ways: (ranks, columns, longest) the links from each rank to its peers, then -1.
        columns: What is known of links.
        path_bps: (ranks, columns) the rate by which a host chooses its window to a peer.
        of_rank: (ranks,) each rank's class. The first classes are of all kinds, in order.
        of_flow: (ranks, columns) the class of each rank's flow to each peer.
        of_link: (links,) each link's class; -1: it carries nothing.
    """

    symmetry: Symmetry
    hosts: Numbers
    ways: Numbers
    columns: LinkColumns
    path_bps: Numbers
    of_rank: Numbers
    of_flow: Numbers
    of_link: Numbers

    @property
    def count(self) -> int:
        """The number of classes of ranks."""
        return int(self.of_rank.max()) + 1

    @cached_property
    def first_rank(self) -> Numbers:
        """(classes,) the first rank of each, which stands for all."""
        return np.unique(self.of_rank, return_index=True)[1]

    @cached_property
    def first_link(self) -> Numbers:
        """(link classes,) the first link of each, which stands for all."""
        classes, first = np.unique(self.of_link, return_index=True)
        return first[classes >= 0]

    @cached_property
    def sizes(self) -> Numbers:
        """(classes,) the number of ranks of each."""
        return np.bincount(self.of_rank)

    @cached_property
    def link_sizes(self) -> Numbers:
        """(link classes,) the number of links of each."""
        return np.bincount(self.of_link[self.of_link >= 0])

    @cached_property
    def _flow_sizes(self) -> Numbers:
        """(flow classes,) the number of flows of each."""
        symmetry = self.symmetry
        there = symmetry.peers != np.arange(symmetry.ranks)[:, None]
        return np.bincount(self.of_flow[there])

    @cached_property
    def kept(self) -> npt.NDArray[np.bool_]:
        """(classes, columns) whether the first rank has this peer: all others are like one kept."""
        return _kept(self.symmetry, self.of_flow, self.first_rank)

    @cached_property
    def kind(self) -> Numbers:
        """(classes,) the kind of each class: of its ranks, and of the peers that they have."""
        return _kinds_of(self.symmetry, self.of_flow, self.first_rank)

    @cached_property
    def examples(self) -> list[int]:
        """By kind, the first class."""
        return list(range(int(self.kind.max()) + 1))

    def way(self, class_: int, column: int) -> list[tuple[int, int]]:
        """Return the links of a class's flow to a peer, and how many like flows each of them has.

        A link class comes as often as the flow crosses links of it.
        """
        way = self.ways[self.first_rank[class_], column]
        crossed = self.of_link[way[way >= 0]].tolist()
        size = int(self._flow_sizes[self.of_flow[self.first_rank[class_], column]])
        flows = {link: crossed.count(link) * size // int(self.link_sizes[link]) for link in crossed}
        return [(link, flows[link]) for link in crossed]

    def column_of(self, class_: int, peer: int) -> int:
        """Return the column in which the first rank of a class has a peer."""
        peers = self.symmetry.peers[self.first_rank[class_]]
        return int(np.flatnonzero(peers == peer)[0])

    def peer_of(self, class_: int, peer: int) -> tuple[int, int]:
        """Return the class of a peer, and the first rank's peer there that is like this class.

        Args:
            class_: The class.
            peer: A peer of its first rank, by its number as a rank.
        """
        there = int(self.of_rank[peer])
        back = self.symmetry.back[self.first_rank[class_], self.column_of(class_, peer)]
        first = self.first_rank[there]
        column = np.flatnonzero(self.of_flow[first] == self.of_flow[peer, back])[0]
        return there, int(self.symmetry.peers[first, column])

    def rows_of(self, class_: int) -> Columns:
        """Return the rows of a class's first rank with the peers that it has."""
        rank = int(self.first_rank[class_])
        peers, rows = self.symmetry.peers[rank], self.symmetry.rows_of(rank)
        left_out = np.setdiff1d(peers[~self.kept[class_]], peers[self.kept[class_]])
        if not left_out.size:
            return rows
        other = np.where(rows.src == rank, rows.dst, rows.src)
        return rows.take(np.flatnonzero(~np.isin(other, left_out)))


def find_classes(symmetry: Symmetry, pairs: PairLinks, hosts: Numbers) -> Classes:
    """Return the classes of a schedule's ranks.

    Args:
        symmetry: What its ranks have in common.
        pairs: Finds the links between hosts.
        hosts: (ranks,) the number of each rank's host.
    """
    ways, columns = _ways(symmetry, pairs, hosts), pairs.columns
    apart = (columns.rate_bps, columns.delay_ps, columns.queue_bytes, columns.is_of_host)
    _, colour = np.unique(np.stack(apart, axis=1), axis=0, return_inverse=True)
    path_bps = _path_bps(symmetry, pairs, hosts)
    groups = symmetry.groups
    flows = np.stack(np.broadcast_arrays(groups, groups[symmetry.back], path_bps), axis=2)
    _, flow = np.unique(flows.reshape(-1, 3), axis=0, return_inverse=True)
    partition = refine(
        *(_kinds(symmetry, ways, colour)[:, None], symmetry.peers, ways, colour),
        flow=flow.reshape(ways.shape[:2]),
        back=symmetry.back,
    )
    of_rank, of_flow = _kinds_first(symmetry, partition), partition.of_flow
    return Classes(symmetry, hosts, ways, columns, path_bps, of_rank, of_flow, partition.of_link)


def _path_bps(symmetry: Symmetry, pairs: PairLinks, hosts: Numbers) -> Numbers:
    """Return the rates by which hosts choose windows: (ranks, columns).

    As in `Connections`, they are those of the first one of all ways, not of the one that is dealt.
    """
    rates = pairs.columns.rate_bps
    if len(np.unique(rates)) == 1:
        return np.full(symmetry.peers.shape, rates[0])
    ways = _ways(symmetry, pairs, hosts, is_dealt=False)
    passed = np.where(ways >= 0, rates[ways], np.iinfo(np.int64).max)
    return np.asarray(passed.min(axis=2))


def _ways(
    symmetry: Symmetry, pairs: PairLinks, hosts: Numbers, *, is_dealt: bool = True
) -> Numbers:
    """Return the links from each rank to each peer: (ranks, columns, longest)."""
    ranks, columns = symmetry.peers.shape
    src, dst = np.repeat(np.arange(ranks), columns), symmetry.peers.reshape(-1)
    there = src != dst
    crossed = pairs.find(hosts[src[there]], hosts[dst[there]], is_dealt=is_dealt)
    ways = np.full((ranks * columns, crossed.shape[1]), -1, np.int64)
    ways[there] = crossed
    return ways.reshape(ranks, columns, -1)


def _kinds(symmetry: Symmetry, ways: Numbers, colour: Numbers) -> Numbers:
    """Return kinds that also tell hosts' own links apart: (ranks,)."""
    own = ways[:, :, 0].max(axis=1)
    kinds = symmetry.kind * (int(colour.max(initial=0)) + 2)
    return np.asarray(kinds + np.where(own >= 0, colour[own] + 1, 0))


def _kept(symmetry: Symmetry, of_flow: Numbers, ranks: Numbers) -> npt.NDArray[np.bool_]:
    """Return which peers some ranks have, if each has one of those that do the same."""
    peers, flows = symmetry.peers[ranks], of_flow[ranks]
    there = peers != ranks[:, None]
    for column in range(1, flows.shape[1]):
        there[:, column] &= (flows[:, :column] != flows[:, column : column + 1]).all(axis=1)
    return there


def _kinds_of(symmetry: Symmetry, of_flow: Numbers, ranks: Numbers) -> Numbers:
    """Return the kinds of some ranks, numbered from 0: those of the schedule, and their peers'."""
    kept = _kept(symmetry, of_flow, ranks)
    apart = np.concatenate((symmetry.kind[ranks, None], kept), axis=1)
    return np.asarray(np.unique(apart, axis=0, return_inverse=True)[1].reshape(-1))


def _kinds_first(symmetry: Symmetry, partition: Partition) -> Numbers:
    """Return each rank's class, numbered anew: one of each kind comes first, in order."""
    _, firsts = np.unique(partition.of_host, return_index=True)
    _, heads = np.unique(_kinds_of(symmetry, partition.of_flow, firsts), return_index=True)
    order = [*heads.tolist(), *np.setdiff1d(np.arange(partition.of_host.max() + 1), heads).tolist()]
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[partition.of_host]


def class_plans(classes: Classes, schedule: Schedule, edges: Numbers) -> SharedPlans:
    """Return the plans of the classes' first ranks, whose peers keep their numbers as ranks.

    Args:
        classes: The classes.
        schedule: The schedule.
        edges: (chunks + 1,) the element at which each chunk starts, and the end.
    """
    peers, ranks = classes.symmetry.peers, classes.first_rank.tolist()
    plans = [
        plan_of_rank(schedule, classes.rows_of(each), ranks[each], edges)
        for each in classes.examples
    ]
    columns = [
        _columns(plan, peers[ranks[each]])
        for plan, each in zip(plans, classes.examples, strict=True)
    ]
    own = [
        peers[rank, columns[kind]] for rank, kind in zip(ranks, classes.kind.tolist(), strict=True)
    ]
    return shared(plans, classes.kind, own)


def _columns(plan: Plans, peers: Sequence[int]) -> Numbers:
    """Return the column of each stream's peer."""
    column = {peer: place for place, peer in reversed(list(enumerate(peers)))}
    return np.array([column[peer] for peer in plan.streams.peer.tolist()], np.int64)
