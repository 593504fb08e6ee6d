"""Classes of ranks, links and flows of a collective, and a few ranks that stand for all.

Ranks of a symmetric schedule (`ringleaf.collectives.symmetry`) and the links that they send over
are put into classes (`ringleaf.topologies.partition`), and so are the flows to their peers. The
first rank of each class has the plan of its kind, and its peers are classes. If several peers do
the same, such as both children in a tree, it has the first one only. A flow stands for all of its
class, and a link for all links of its class, each of which carries as many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ringleaf.collectives.rows import Columns
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.symmetry import Exchange, Symmetry
from ringleaf.hosts.plan import Plans
from ringleaf.hosts.shared_plans import SharedPlans, plan_of_rank, shared
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.pair_links import LinkColumns


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a symmetric schedule's ranks on a topology.

    Attributes:
        symmetry: What the schedule's ranks have in common.
        hosts: (ranks,) the number of each rank's host.
        columns: What is known of links.
        of_rank: (ranks,) each rank's class. The first classes are of all kinds, in order.
        of_link: (links,) each link's class; -1: it carries nothing.
        first_rank: (classes,) the first rank of each, which stands for all.
        kind: (classes,) the kind of each: those of a kind have the same plan.
        peers: (classes, columns) the peers that each one's first rank has; -1: there is none. All
            peers in the schedule do as one of these.
        back: (classes, columns) the column in which a peer's class has this one.
        flows: (classes, columns) how many flows of all ranks do as the flow to this peer.
        ways: (classes, columns, longest) the links to each peer, then -1.
        path_bps: (classes, columns) the rate by which a host chooses its window to a peer.
    """

    symmetry: Symmetry | Exchange
    hosts: Numbers
    columns: LinkColumns
    of_rank: Numbers
    of_link: Numbers
    first_rank: Numbers
    kind: Numbers
    peers: Numbers
    back: Numbers
    flows: Numbers
    ways: Numbers
    path_bps: Numbers

    @property
    def count(self) -> int:
        """The number of classes of ranks."""
        return len(self.first_rank)

    @cached_property
    def first_link(self) -> Numbers:
        """(link classes,) the first link of each, which stands for all."""
        classes, first = np.unique(self.of_link, return_index=True)
        return first[classes >= 0]

    @cached_property
    def link_sizes(self) -> Numbers:
        """(link classes,) the number of links of each."""
        return np.bincount(self.of_link[self.of_link >= 0])

    @property
    def own_links(self) -> Numbers:
        """(classes,) the link by which the first rank of each sends."""
        return np.asarray(self.ways[:, :, 0].max(axis=1))

    @cached_property
    def examples(self) -> list[int]:
        """By kind, the first class."""
        return list(range(int(self.kind.max()) + 1))

    def way(self, class_: int, column: int) -> list[tuple[int, int]]:
        """Return the links of a class's flow to a peer, and how many like flows have each there.

        A link class comes as often as the flow crosses links of it.
        """
        way = self.ways[class_, column]
        crossed = self.of_link[way[way >= 0]].tolist()
        size = int(self.flows[class_, column])
        return [(link, size // int(self.link_sizes[link])) for link in crossed]

    def column_of(self, class_: int, peer: int) -> int:
        """Return the column in which the first rank of a class has a peer."""
        return int(np.flatnonzero(self.peers[class_] == peer)[0])

    def peer_of(self, class_: int, peer: int) -> tuple[int, int]:
        """Return the class of a peer, and the first rank's peer there that does as this class.

        Args:
            class_: The class.
            peer: A peer of its first rank, by its number as a rank.
        """
        there = int(self.of_rank[peer])
        return there, int(self.peers[there, self.back[class_, self.column_of(class_, peer)]])

    def rows_of(self, class_: int) -> Columns:
        """Return the rows of a class's first rank with the peers that it has."""
        rank = int(self.first_rank[class_])
        rows = self.symmetry.rows_of(rank)
        other = np.where(rows.src == rank, rows.dst, rows.src)
        return rows.take(np.flatnonzero(np.isin(other, self.peers[class_])))


def class_plans(classes: Classes, schedule: Schedule, edges: Numbers) -> SharedPlans:
    """Return the plans of the classes' first ranks, whose peers keep their numbers as ranks.

    Args:
        classes: The classes.
        schedule: The schedule.
        edges: (chunks + 1,) the element at which each chunk starts, and the end.
    """
    peers, ranks = classes.peers, classes.first_rank.tolist()
    rows = [classes.rows_of(each) for each in classes.examples]
    # Chunks that are nowhere apart are one, as executors keep a count of each of every class.
    sides = [side for own in rows for side in (own.start, own.stop)]
    apart = np.unique(np.concatenate([[0, len(edges) - 1], *sides]))
    plans = [
        plan_of_rank(schedule, _among(own, apart), ranks[each], edges[apart])
        for each, own in zip(classes.examples, rows, strict=True)
    ]
    columns = [
        _columns(plan, peers[each].tolist())
        for plan, each in zip(plans, classes.examples, strict=True)
    ]
    own = [peers[each, columns[kind]] for each, kind in enumerate(classes.kind.tolist())]
    return shared(plans, classes.kind, own)


def _among(rows: Columns, apart: Numbers) -> Columns:
    """Return rows of chunks that begin at some of all chunks."""
    start, stop = np.searchsorted(apart, rows.start), np.searchsorted(apart, rows.stop)
    return replace(rows, start=start, stop=stop)


def _columns(plan: Plans, peers: Sequence[int]) -> Numbers:
    """Return the column of each stream's peer."""
    column = {peer: place for place, peer in reversed(list(enumerate(peers)))}
    return np.array([column[peer] for peer in plan.streams.peer.tolist()], np.int64)
