"""Classes of hosts, flows and links that look the same from everywhere: the coarsest partition.

Hosts have a flow to each of their peers, over links. Two hosts are of one class if they are of one
kind and if their flows, column by column, are of one class. Two flows are of one class if they are
of one kind, between hosts of one class each, and cross links of one class each, in order; and if
that is so of the flows back, too. Two links are of one class if they have one colour and if as many
flows of each class cross them as their first link, as their second, and so forth. What is true of
one member at the beginning then stays true of all, however long they share links: the classes'
system of equations is the whole one's.

Source:
    Colour refinement; worklists as of Paige and Tarjan, "Three partition refinement algorithms",
    SIAM J. Comput. 16(6), 1987. Links' flows are compared by 64-bit hashes, and at the end, one by
    one, without any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.route_table import renumbered

_Hashes = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Partition:
    """Classes of hosts, flows and links, numbered from 0.

    Attributes:
        of_host: (hosts,) each host's class.
        of_flow: (hosts, columns) each flow's class.
        of_link: (links,) each link's class; -1: nobody crosses it.
    """

    of_host: Numbers
    of_flow: Numbers
    of_link: Numbers


def refine(
    kind: Numbers,
    peers: Numbers,
    ways: npt.NDArray[Any],
    colour: Numbers,
    *,
    flow: Numbers | None = None,
    back: Numbers | None = None,
) -> Partition:
    """Return the coarsest partition in which all members of a class see the same.

    Args:
        kind: (hosts, any) what tells hosts apart from the beginning.
        peers: (hosts, columns) each one's peers.
        ways: (hosts, columns, longest) the links to each peer, in order, then -1.
        colour: (links,) what tells links apart from the beginning.
        flow: (hosts, columns) what tells flows apart from the beginning; None: their column.
        back: (hosts, columns) the column of the flow back at the peer; None: there is none.
    """
    columns = np.arange(peers.shape[1])
    kinds = np.broadcast_to(columns, peers.shape) if flow is None else flow
    reverse = None if back is None else (peers * len(columns) + back).reshape(-1)
    return _Refinement(kind, peers, ways, colour, kinds, reverse).partition()


class _Refinement:
    """A partition that becomes finer, round by round."""

    def __init__(
        self,
        kind: Numbers,
        peers: Numbers,
        ways: npt.NDArray[Any],
        colour: Numbers,
        flow: Numbers,
        reverse: Numbers | None,
    ) -> None:
        hosts, self._columns, longest = ways.shape
        self._peers, self._reverse = peers.reshape(-1), reverse
        self._backs = None if reverse is None else _by_value(reverse, hosts * self._columns)
        self._colour = colour
        self._crossed = _distinct(ways[ways >= 0])  # links by their number here
        place = np.full(len(colour) + 1, len(self._crossed))  # the last one is no link
        place[self._crossed] = np.arange(len(self._crossed))
        self._ways = place[ways].reshape(-1, longest)
        there = np.flatnonzero(self._ways.reshape(-1) < len(self._crossed))
        crossed = self._ways.reshape(-1)[there]
        order = np.argsort(crossed, kind="stable")
        self._flows = there[order] // longest  # that cross each link, link by link
        self._places, self._longest = there[order] % longest, longest  # of links on their ways
        self._first = np.searchsorted(crossed[order], np.arange(len(self._crossed) + 1))
        _, self._host = np.unique(kind, axis=0, return_inverse=True)
        _, link = np.unique(colour[self._crossed], return_inverse=True)
        self._link = np.append(link, -1)
        _, self._flow = np.unique(flow.reshape(-1), return_inverse=True)
        self._pointers = _by_value(self._peers, hosts)

    def partition(self) -> Partition:
        """Return the partition, as fine as it must be."""
        hosts, links = np.arange(len(self._host)), np.arange(len(self._crossed))
        flows = np.arange(len(self._flow))
        while flows.size or links.size:
            self._link, split_links = _split(self._link, links, self._seen_by_links(links))
            flows = _distinct(flows, self._flows[_ranges(self._first, split_links)])
            self._flow, split_flows = _split(self._flow, flows, self._seen_by_flows(flows))
            hosts = _distinct(hosts, split_flows // self._columns)
            self._host, split_hosts = _split(self._host, hosts, self._seen_by_hosts(hosts))
            own = self._ways[split_flows].reshape(-1)
            links = _distinct(own[own < len(self._crossed)])
            flows = self._flows_of(split_hosts)
            if self._backs is not None:
                first, pointing = self._backs
                flows = _distinct(flows, pointing[_ranges(first, split_flows)])
            hosts = hosts[:0]
        self._check()
        of_link = np.full(len(self._colour), -1)
        of_link[self._crossed] = _numbered(self._link[:-1])
        of_flow = _numbered(self._flow).reshape(-1, self._columns)
        return Partition(_numbered(self._host), of_flow, of_link)

    def _flows_of(self, hosts: Numbers) -> Numbers:
        """Return the flows to and from some hosts."""
        first, pointing = self._pointers
        own = hosts[:, None] * self._columns + np.arange(self._columns)
        return _distinct(own.reshape(-1), pointing[_ranges(first, hosts)])

    def _seen_by_links(self, links: Numbers) -> _Hashes:
        """Return a hash of the classes of flows that cross each of some links, by its place."""
        if not links.size:
            return np.zeros(0, np.uint64)
        counts = self._first[links + 1] - self._first[links]
        seen = _scattered(self._crossings(_ranges(self._first, links)))
        return np.add.reduceat(seen, np.cumsum(counts) - counts)

    def _crossings(self, chosen: Numbers | slice) -> Numbers:
        """Return a number for the class of each of some flows at links and the link's place."""
        return np.asarray(self._flow[self._flows[chosen]] * self._longest + self._places[chosen])

    def _seen_by_flows(self, flows: Numbers) -> _Hashes:
        """Return a hash of the classes of both ends, links and the flow back of some flows."""
        return _hashed(self._views(flows))

    def _views(self, flows: Numbers) -> Numbers:
        """Return the classes that some flows see: (flows, any)."""
        ends = (self._host[flows // self._columns], self._host[self._peers[flows]])
        back = () if self._reverse is None else (self._flow[self._reverse[flows]],)
        return np.concatenate(
            (np.stack((*ends, *back), axis=1), self._link[self._ways[flows]]), axis=1
        )

    def _seen_by_hosts(self, hosts: Numbers) -> _Hashes:
        """Return a hash of the classes of flows of each of some hosts."""
        return _hashed(self._flow.reshape(-1, self._columns)[hosts])

    def _check(self) -> None:
        """Check, without hashes, that all members of each class see the same."""
        table = self._flow.reshape(-1, self._columns)
        assert (table == table[_first_of(self._host)[self._host]]).all(), "hosts must see the same"
        table = self._views(np.arange(len(self._flow)))
        assert (table == table[_first_of(self._flow)[self._flow]]).all(), "flows must see the same"
        link = np.repeat(np.arange(len(self._crossed)), np.diff(self._first))
        many = (int(self._flow.max(initial=0)) + 1) * self._longest
        pairs, counts = np.unique(link * many + self._crossings(slice(None)), return_counts=True)
        own, flow = self._link[pairs // many], pairs % many
        sizes = np.bincount(self._link[:-1])
        order = np.lexsort((counts, flow, own))
        table = np.stack((own, flow, counts))[:, order]
        starts = np.flatnonzero(np.append(True, (np.diff(table) != 0).any(axis=0)))
        members = np.diff(np.append(starts, table.shape[1]))
        assert (members == sizes[table[0, starts]]).all(), "links of a class must see the same"


def _hashed(table: Numbers) -> _Hashes:
    """Return a hash of each row."""
    seen = np.zeros(len(table), np.uint64)
    for column in table.T:
        seen = (seen ^ _scattered(column)) * _ODD
        seen ^= seen >> np.uint64(31)
    return seen


def _scattered(numbers: Numbers) -> _Hashes:
    """Return 64 bits for each number, which look unlike those of any other."""
    word = numbers.astype(np.uint64) + _ODD
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ word >> np.uint64(31))


def _by_value(table: Numbers, values: int) -> tuple[Numbers, Numbers]:
    """Return the places that have each value: where those of each begin, and the places."""
    order = np.argsort(table, kind="stable")
    return np.searchsorted(table[order], np.arange(values + 1)), order


def _ranges(first: Numbers, chosen: Numbers) -> Numbers:
    """Return the places of some rows whose starts are in `first`, one after the other."""
    counts = first[chosen + 1] - first[chosen]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.asarray(np.repeat(first[chosen], counts) + within)


def _distinct(*several: Numbers) -> Numbers:
    """Return the numbers that there are, each once and in order, without a sort."""
    return renumbered(np.concatenate(several))[0]


def _first_of(classes: Numbers) -> Numbers:
    """Return the first member of each class, by its number; of a number without members, 0."""
    first = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    first[classes[::-1]] = np.arange(len(classes))[::-1]  # the last one that is written stays
    return first


def _numbered(classes: Numbers) -> Numbers:
    """Return classes numbered in the order of their first members."""
    there, place = renumbered(classes)
    return np.argsort(np.argsort(_first_of(classes)[there]))[place]


def _split(classes: Numbers, seen_by: Numbers, seen: _Hashes) -> tuple[Numbers, Numbers]:
    """Split classes by what some members see, of whom something has changed that they see.

    Members of whom nothing has changed stay together, apart from the others. If all are among the
    latter, the largest part keeps the class.

    Returns:
        The classes, and the members whose class is another now.
    """
    if not seen_by.size:
        return classes, seen_by
    own = classes[seen_by]
    order = np.lexsort((seen, own))
    sorted_own, sorted_seen = own[order], seen[order]
    is_first = np.append(True, np.diff(sorted_own) != 0)
    is_first[1:] |= sorted_seen[1:] != sorted_seen[:-1]
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(order)))
    of_group = sorted_own[starts]
    totals = np.bincount(classes[classes >= 0])
    met = np.bincount(of_group, sizes, len(totals)).astype(np.int64)
    # A class all of whose members are met leaves its number to its largest group.
    largest = np.lexsort((-sizes, of_group))
    heads = largest[np.append(True, np.diff(of_group[largest]) != 0)]
    keeps = np.zeros(len(starts), np.bool_)
    keeps[heads] = met[of_group[heads]] == totals[of_group[heads]]
    number = of_group.copy()
    number[~keeps] = len(totals) + np.arange(int((~keeps).sum()))
    changed = seen_by[order[np.repeat(~keeps, sizes)]]
    classes = classes.copy()
    classes[seen_by[order]] = np.repeat(number, sizes)
    return classes, changed
