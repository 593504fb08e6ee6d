"""Classes of ranks, links and flows of a collective, and a few ranks that stand for all.

Ranks of a symmetric schedule (`ringleaf.collectives.symmetry`) and the links that they send over
are put into classes (`ringleaf.topologies.partition`). The first rank of each class has the plan of
its kind, and its peers are classes. A flow of it stands for those of its whole class, and a link
for all links of its class, each of which carries as many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
        of_link: (links,) each link's class; -1: it carries nothing.
    """

    symmetry: Symmetry
    hosts: Numbers
    ways: Numbers
    columns: LinkColumns
    path_bps: Numbers
    of_rank: Numbers
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

    def way(self, class_: int, column: int) -> list[tuple[int, int]]:
        """Return the links of a class's flow to a peer, and how many like flows each of them has.

        A link class comes as often as the flow crosses links of it.
        """
        way = self.ways[self.first_rank[class_], column]
        crossed = self.of_link[way[way >= 0]].tolist()
        size = int(self.sizes[class_])
        flows = {link: crossed.count(link) * size // int(self.link_sizes[link]) for link in crossed}
        return [(link, flows[link]) for link in crossed]

    def column_of(self, class_: int, peer: int) -> int:
        """Return the column in which the first rank of a class has a peer."""
        peers = self.symmetry.peers[self.first_rank[class_]]
        return int(np.flatnonzero(peers == peer)[0])


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
    kinds = (_kinds(symmetry, ways, colour)[:, None], symmetry.back, path_bps)
    partition = refine(np.concatenate(kinds, axis=1), symmetry.peers, ways, colour)
    of_rank = _kinds_first(symmetry.kind, partition)
    return Classes(symmetry, hosts, ways, columns, path_bps, of_rank, partition.of_link)


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


def _kinds_first(kind: Numbers, partition: Partition) -> Numbers:
    """Return each rank's class, numbered anew: one of each kind comes first, in order."""
    _, first = np.unique(kind, return_index=True)
    heads = partition.of_host[first]
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
    symmetry = classes.symmetry
    kinds = symmetry.kind[classes.first_rank]
    _, examples = np.unique(symmetry.kind, return_index=True)
    plans = [plan_of_rank(schedule, symmetry.rows_of(rank), rank, edges) for rank in examples]
    columns = [
        _columns(plan, symmetry.peers[rank]) for plan, rank in zip(plans, examples, strict=True)
    ]
    peers = [
        symmetry.peers[rank, columns[kind]]
        for rank, kind in zip(classes.first_rank.tolist(), kinds.tolist(), strict=True)
    ]
    return shared(plans, kinds, peers)


def _columns(plan: Plans, peers: Sequence[int]) -> Numbers:
    """Return the column of each stream's peer."""
    column = {peer: place for place, peer in reversed(list(enumerate(peers)))}
    return np.array([column[peer] for peer in plan.streams.peer.tolist()], np.int64)
