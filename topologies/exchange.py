"""Classes of hosts and links where every host sends to every other one, and nothing else matters.

As in `partition`, but no table of all flows is made: the flows from a switch's hosts to another
switch's have the way between these switches, one for each receiver, in common. So there are as many
ways as pairs of a switch and a host. Two flows are of one class if they are between hosts of one
class each, over links of one class each, in order, and if that is so of the flows back; two hosts
or links, if they have as many flows of each class. All are compared by 64-bit hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, inline
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.pair_links import Links, PairLinks

_Hashes = npt.NDArray[np.uint64]
_START, _ODD = np.uint64(0x8BB84B93962EACC9), np.uint64(0x9E3779B97F4A7C15)
_A, _B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)


@dataclass(frozen=True, eq=False)
class ExchangePartition:
    """Classes of hosts and links, and a host's flows of each class.

    Attributes:
        of_host: (hosts,) each host's class, numbered in the order of first hosts.
        of_link: (links,) each link's class; -1: nobody crosses it.
        first_host: (classes,) the first host of each.
        peers: (classes, columns) the first peer of the first host by each class of flows, then -1.
        counts: (classes, columns) the number of its peers by flows of that class.
        back: (classes, columns) the column of the flows back at the peers' class.
    """

    of_host: Numbers
    of_link: Numbers
    first_host: Numbers
    peers: Numbers
    counts: Numbers
    back: Numbers


def refine_exchange(
    pairs: PairLinks, hosts: Numbers, colour: Numbers, *, most_flows: int
) -> ExchangePartition | None:
    """Return the coarsest partition in which all members of a class see the same.

    Args:
        pairs: Finds the links between hosts.
        hosts: (hosts,) those that send to one another, by their numbers on the topology.
        colour: (links,) what tells links apart from the beginning.
        most_flows: The most classes of flows of first hosts; None is returned if there are more.
    """
    return _Refinement(pairs, hosts, colour).partition(most_flows)


class _Refinement:
    """A partition that becomes finer, round by round; hosts are in the order of their switches."""

    def __init__(self, pairs: PairLinks, hosts: Numbers, colour: Numbers) -> None:
        leaves, place = np.unique(pairs.switch_of(hosts), return_inverse=True)
        self._order = np.argsort(place, kind="stable")
        self._pairs, self._hosts = pairs, hosts[self._order]
        self._leaves, self._leaf = leaves, place[self._order]
        self._starts = np.searchsorted(self._leaf, np.arange(len(leaves) + 1))
        self._up, self._down = pairs.own_links(self._hosts)
        self._host = np.zeros(len(hosts), np.int64)
        _, self._link = np.unique(colour, return_inverse=True)
        self._known: list[Links] = []
        self._apart = self._rates()
        # Hashes, by the leaf that receives; of each, by leaf that sends, of the ways to all hosts.
        self._ways = np.full(len(leaves) * len(hosts), _START)

    def partition(self, most_flows: int) -> ExchangePartition | None:
        """Return the partition, as fine as it must be."""
        classes, fewer = self._counts(), (0, 0)
        while classes != fewer:
            fewer = classes
            self._refine()
            classes = self._counts()
        return self._numbered(most_flows)

    def _counts(self) -> tuple[int, int]:
        return int(self._host.max(initial=0)), int(self._link.max(initial=0))

    def _rates(self) -> _Hashes | None:
        """Return what else tells ways apart: the rates by which hosts choose windows."""
        rates = self._pairs.columns.rate_bps
        if len(np.unique(rates)) == 1:
            return None
        apart = np.full(len(self._leaves) * len(self._hosts), _START)
        _, place = np.unique(rates, return_inverse=True)
        for first, stop in pairwise(self._starts.tolist()):
            following = self._pairs.next_links(self._hosts[first:stop], is_dealt=False)
            _least_on_ways(following, self._pairs.peer, self._leaves, place, first, apart)
        return apart

    def _next_links(self) -> Iterator[Links]:
        """Yield the next links to each leaf's hosts, which are kept if there is room."""
        if self._known:
            yield from self._known
            return
        keeps = len(self._hosts) * self._pairs.switches <= _MOST_KEPT
        for first, stop in pairwise(self._starts.tolist()):
            following = self._pairs.next_links(self._hosts[first:stop])
            if keeps:
                self._known.append(following)
            yield following

    def _refine(self) -> None:
        """Let hosts and links see the flows as they are classed now."""
        links, peer = _scattered(self._link), self._pairs.peer
        np.copyto(self._ways, _START if self._apart is None else self._apart)
        for leaf, following in enumerate(self._next_links()):
            _hash_ways(following, peer, self._leaves, links, int(self._starts[leaf]), self._ways)
        ends = _scattered(self._host)
        for own in (links[self._up], links[self._down]):
            ends = _mixed(ends, own)
        at_host, at_link = np.zeros(len(ends), np.uint64), np.zeros(len(links), np.uint64)
        most = int(np.diff(self._starts).max())
        room = np.zeros((4, most), np.uint64), np.zeros((4, most), np.int64)
        for leaf, following in enumerate(self._next_links()):
            _add_flows(
                following, peer, self._leaves, self._starts, leaf,
                ends, self._ways, self._down, at_host, at_link, *room,
            )  # fmt: skip
        at_link[self._up] += at_host
        self._is_crossed = at_link != 0
        self._host = _classed(self._host, at_host)
        self._link = _classed(self._link, at_link)
        self._ends = ends

    def _numbered(self, most_flows: int) -> ExchangePartition | None:
        """Return the partition, whose hosts are in their order again."""
        of_host = np.empty_like(self._host)
        of_host[self._order] = self._host
        of_host = _by_first(of_host)
        of_link = np.where(self._is_crossed, self._link, -1)
        of_link[self._is_crossed] = _by_first(of_link[self._is_crossed])
        _, first = np.unique(of_host, return_index=True)
        place = np.argsort(self._order)
        columns: list[tuple[Numbers, Numbers, _Hashes]] = []
        for host in first.tolist():
            there, seen = self._seen_by(place[host])
            peers = self._order[there]
            by_peer = np.argsort(peers)
            kinds, at, counts = np.unique(seen[by_peer], return_index=True, return_counts=True)
            columns.append((peers[by_peer][at], counts, kinds))
            if sum(len(kinds) for _, _, kinds in columns) > most_flows:
                return None
        longest = max((len(kinds) for _, _, kinds in columns), default=0)
        peers, counts, back = (np.zeros((len(first), longest), np.int64) for _ in range(3))
        peers -= 1
        for class_, (own, number, _) in enumerate(columns):
            peers[class_, : len(own)], counts[class_, : len(own)] = own, number
            for column, peer in enumerate(own.tolist()):
                kinds = columns[of_host[peer]][2]
                seen = self._flow(place[peer], place[[first[class_]]])
                back[class_, column] = np.searchsorted(kinds, seen[0])
                assert kinds[back[class_, column]] == seen[0], "flows back must be alike"
        return ExchangePartition(of_host, of_link, first, peers, counts, back)

    def _seen_by(self, host: int) -> tuple[Numbers, _Hashes]:
        """Return all others, and the classes of a host's flows to them; places, not numbers."""
        others = np.delete(np.arange(len(self._hosts)), host)
        return others, self._flow(host, others)

    def _flow(self, host: int, others: Numbers) -> _Hashes:
        """Return the classes of flows, as `_flow_seen` does."""
        own, there = self._leaf[host], self._leaf[others]
        mine = _mixed(self._ends[host], self._ways[self._way(there, host)])
        seen = _mixed(mine, _mixed(self._ends[others], self._ways[self._way(own, others)]))
        return np.asarray(_spread(seen))

    def _way(self, leaf: Any, host: Any) -> Any:
        """Return the places of the ways from leaves to hosts."""
        own = self._leaf[host]
        first, stop = self._starts[own], self._starts[own + 1]
        return first * len(self._leaves) + leaf * (stop - first) + host - first


_MOST_KEPT = 1 << 29  # next links, of 4 bytes each


@inline
def _mixed(word: Any, other: Any) -> Any:
    """Return 64 bits that depend on both, in order."""
    both = (word ^ (other + _ODD)) * _A
    return (both ^ (both >> _27)) * _ODD


@inline
def _spread(word: Any) -> Any:
    """Return 64 bits that look unlike those of any other word, so that sums tell sets apart."""
    z = word + _ODD
    z = (z ^ (z >> _30)) * _A
    z = (z ^ (z >> _27)) * _B
    return z ^ (z >> _31)


def _scattered(numbers: Numbers) -> _Hashes:
    return np.asarray(_spread(numbers.astype(np.uint64)))


def _classed(classes: Numbers, seen: _Hashes) -> Numbers:
    """Return classes told apart by what members see, too."""
    _, number = np.unique(seen, return_inverse=True)
    both = classes * (int(number.max(initial=0)) + 1) + number
    return np.asarray(np.unique(both, return_inverse=True)[1])


def _by_first(classes: Numbers) -> Numbers:
    """Return classes numbered in the order of their first members."""
    _, first, number = np.unique(classes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


_numbers = types.int64[::1]
_hashes = types.uint64[::1]


@compiled(
    types.void(types.int32[:, ::1], _numbers, _numbers, _hashes, types.int64, _hashes), rare=True
)
def _hash_ways(
    following: Links, peer: Numbers, leaves: Numbers, links: _Hashes, first: int, ways: _Hashes
) -> None:
    """Mix the classes of all links from each leaf to some hosts into what is known of these ways.

    Args:
        following: (some, switches) the link that each switch sends packets to each by; -1: none.
        peer: (links,) the switch that each link leads to.
        leaves: The switches with hosts.
        links: (links,) a hash of each link's class.
        first: The place of the first of these hosts.
        ways: Hashes of all ways, those to these hosts leaf by leaf.
    """
    hosts = len(following)
    block = first * len(leaves)
    for host in range(hosts):
        for leaf in range(len(leaves)):
            switch, seen = leaves[leaf], ways[block + leaf * hosts + host]
            while following[host, switch] >= 0:
                seen = _mixed(seen, links[following[host, switch]])
                switch = peer[following[host, switch]]
            ways[block + leaf * hosts + host] = seen


@compiled(
    types.void(types.int32[:, ::1], _numbers, _numbers, _numbers, types.int64, _hashes), rare=True
)
def _least_on_ways(
    following: Links, peer: Numbers, leaves: Numbers, rates: Numbers, first: int, ways: _Hashes
) -> None:
    """Write the least rate of the links between each leaf and some hosts, as `_hash_ways`."""
    hosts = len(following)
    block = first * len(leaves)
    for host in range(hosts):
        for leaf in range(len(leaves)):
            switch, least = leaves[leaf], len(rates)
            while following[host, switch] >= 0:
                least = min(least, rates[following[host, switch]])
                switch = peer[following[host, switch]]
            ways[block + leaf * hosts + host] = np.uint64(least)


@compiled(
    types.void(
        *(types.int32[:, ::1], _numbers, _numbers, _numbers, types.int64),
        *(_hashes, _hashes, _numbers, _hashes, _hashes),
        *(types.uint64[:, ::1], types.int64[:, ::1]),
    ),
    rare=True,
)
def _add_flows(
    following: Links,
    peer: Numbers,
    leaves: Numbers,
    starts: Numbers,
    own: int,
    ends: _Hashes,
    ways: _Hashes,
    down: Numbers,
    at_host: _Hashes,
    at_link: _Hashes,
    seen: npt.NDArray[np.uint64],
    many: Numbers,
) -> None:
    """Add the classes of all flows to one leaf's hosts to what senders and links see.

    A flow of each host to itself is among them, which tells nobody apart who has not been.
    Flows between two leaves are told apart by what is known of both ends, of which there is little
    that differs. So each pair of what differs is looked at once.

    Args:
        following: (its hosts, switches) as for `_hash_ways`.
        peer: (links,) the switch that each link leads to.
        leaves: The switches with hosts.
        starts: (leaves + 1,) where the hosts of each begin, and the end.
        own: The leaf whose hosts receive.
        ends: (hosts,) a hash of what is known of each host and its links.
        ways: Hashes of all ways, as `_hash_ways` has them.
        down: (hosts,) the link to each host.
        at_host: (hosts,) sums of flows that each host sends.
        at_link: (links,) sums of flows that cross each link, but for hosts' own.
        seen: (4, the most hosts of a leaf) room for hashes.
        many: (4, the most hosts of a leaf) room for numbers.
    """
    first, count = starts[own], starts[own + 1] - starts[own]
    seen_there, seen_here, sum_there, sum_here = seen[0], seen[1], seen[2], seen[3]
    many_there, many_here, like_there, like_here = many[0], many[1], many[2], many[3]
    for leaf in range(len(leaves)):
        sender, senders = starts[leaf], starts[leaf + 1] - starts[leaf]
        at = sender * len(leaves) + own * senders
        there = _distinct(ends, ways, at, sender, senders, seen_there, many_there, like_there)
        at = first * len(leaves) + leaf * count
        here = _distinct(ends, ways, at, first, count, seen_here, many_here, like_here)
        sum_there[:there], sum_here[:here] = 0, 0
        for i in range(there):
            for j in range(here):
                flow = _spread(_mixed(seen_there[i], seen_here[j]))
                sum_there[i] += flow * np.uint64(many_here[j])
                sum_here[j] += flow * np.uint64(many_there[i])
        for i in range(senders):
            at_host[sender + i] += sum_there[like_there[i]]
        for j in range(count):
            flows = sum_here[like_here[j]]
            switch = leaves[leaf]
            while following[j, switch] >= 0:
                at_link[following[j, switch]] += flows
                flows *= _ODD  # tells apart which of their links it is
                switch = peer[following[j, switch]]
            at_link[down[first + j]] += flows


@inline
def _distinct(
    ends: _Hashes,
    ways: _Hashes,
    at: int,
    first: int,
    count: int,
    seen: _Hashes,
    many: Numbers,
    like: Numbers,
) -> int:
    """Put together the hosts whose ends of the flows to and from a leaf are alike.

    Args:
        ends: (hosts,) hashes.
        ways: Hashes of all ways.
        at: The first of the ways from the leaf to these hosts.
        first: The first of the hosts.
        count: The number of these.
        seen: Gets what differs.
        many: Gets how many hosts each is of.
        like: Gets, for each host, its place in `seen`.

    Returns:
        How many differ.
    """
    distinct = 0
    for i in range(count):
        word = _mixed(ends[first + i], ways[at + i])
        place = 0
        while place < distinct and seen[place] != word:
            place += 1
        if place == distinct:
            seen[place], many[place] = word, 0
            distinct += 1
        many[place] += 1
        like[i] = place
    return distinct
