"""Classes of hosts and links that look the same from everywhere: the coarsest equitable partition.

Hosts send to peers over links. Two hosts are of one class if they are of one kind and if, column by
column, their peers are of one class and the links to these, in order, too. Two links are of one
class if they have one colour and are crossed by as many flows of each class. What is true of one
member at the beginning then stays true of all, however long they share links: the classes' system
of equations is the whole one's.

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

_Hashes = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Partition:
    """Classes of hosts and links, numbered from 0.

    Attributes:
        of_host: (hosts,) each host's class.
        of_link: (links,) each link's class; -1: nobody crosses it.
    """

    of_host: Numbers
    of_link: Numbers


def refine(kind: Numbers, peers: Numbers, ways: npt.NDArray[Any], colour: Numbers) -> Partition:
    """Return the coarsest partition in which all members of a class see the same.

    Args:
        kind: (hosts, any) what tells hosts apart from the beginning.
        peers: (hosts, columns) each one's peers.
        ways: (hosts, columns, longest) the links to each peer, in order, then -1.
        colour: (links,) what tells links apart from the beginning.
    """
    return _Refinement(kind, peers, ways, colour).partition()


class _Refinement:
    """A partition that becomes finer, round by round."""

    def __init__(
        self, kind: Numbers, peers: Numbers, ways: npt.NDArray[Any], colour: Numbers
    ) -> None:
        hosts, self._columns, longest = ways.shape
        self._peers = peers
        self._colour = colour
        self._crossed = np.unique(ways[ways >= 0])  # links by their number here
        place = np.full(len(colour) + 1, len(self._crossed))  # the last one is no link
        place[self._crossed] = np.arange(len(self._crossed))
        self._ways = place[ways].reshape(hosts, -1)
        flow = np.repeat(np.arange(hosts * self._columns), longest)
        there = np.flatnonzero(self._ways.reshape(-1) < len(self._crossed))
        by_link = there[np.argsort(self._ways.reshape(-1)[there], kind="stable")]
        self._flows = flow[by_link]  # that cross each link, link by link
        self._first = np.searchsorted(
            self._ways.reshape(-1)[by_link], np.arange(len(self._crossed) + 1)
        )
        _, self._host = np.unique(kind, axis=0, return_inverse=True)
        _, link = np.unique(colour[self._crossed], return_inverse=True)
        self._link = np.append(link, -1)
        self._salt = _scattered(np.arange(self._columns) + (1 << 40))
        self._pointers = _by_value(peers, hosts)

    def partition(self) -> Partition:
        """Return the partition, as fine as it must be."""
        hosts, links = np.arange(len(self._host)), np.arange(len(self._crossed))
        while hosts.size or links.size:
            self._link, split_links = _split(self._link, links, self._seen_by_links(links))
            touched = self._flows[_ranges(self._first, split_links)] // self._columns
            hosts = np.union1d(hosts, touched)
            self._host, split_hosts = _split(self._host, hosts, self._seen_by_hosts(hosts))
            own = self._ways[split_hosts].reshape(-1)
            links = np.unique(own[own < len(self._crossed)])
            first, pointing = self._pointers
            hosts = np.unique(pointing[_ranges(first, split_hosts)])
        self._check()
        of_link = np.full(len(self._colour), -1)
        of_link[self._crossed] = _numbered(self._link[:-1])
        return Partition(_numbered(self._host), of_link)

    def _seen_by_links(self, links: Numbers) -> _Hashes:
        """Return a hash of the classes of flows that cross each of some links."""
        if not links.size:
            return np.zeros(0, np.uint64)
        counts = self._first[links + 1] - self._first[links]
        flows = self._flows[_ranges(self._first, links)]
        seen = _scattered(self._host[flows // self._columns])
        seen = (seen ^ self._salt[flows % self._columns]) * _ODD
        seen ^= seen >> np.uint64(29)
        starts = np.cumsum(counts) - counts
        return np.add.reduceat(seen, starts)

    def _seen_by_hosts(self, hosts: Numbers) -> _Hashes:
        """Return a hash of the classes of peers, and of links to them, of each of some hosts."""
        seen = np.zeros(len(hosts), np.uint64)
        for classes in (self._host[self._peers[hosts]], self._link[self._ways[hosts]]):
            for column in classes.T:
                seen = (seen ^ _scattered(column)) * _ODD
                seen ^= seen >> np.uint64(31)
        return seen

    def _check(self) -> None:
        """Check, without hashes, that all members of each class see the same."""
        for table in (self._host[self._peers], self._link[self._ways]):
            first = _first_of(self._host)
            assert (table == table[first[self._host]]).all(), "hosts of a class must see the same"
        link = np.repeat(np.arange(len(self._crossed)), np.diff(self._first))
        flow = self._host[self._flows // self._columns] * self._columns
        flow += self._flows % self._columns
        many = int(flow.max(initial=0)) + 1
        pairs, counts = np.unique(link * many + flow, return_counts=True)
        own, flow = self._link[pairs // many], pairs % many
        sizes = np.bincount(self._link[:-1])
        order = np.lexsort((counts, flow, own))
        table = np.stack((own, flow, counts))[:, order]
        starts = np.flatnonzero(np.append(True, (np.diff(table) != 0).any(axis=0)))
        members = np.diff(np.append(starts, table.shape[1]))
        assert (members == sizes[table[0, starts]]).all(), "links of a class must see the same"


def _scattered(numbers: Numbers) -> _Hashes:
    """Return 64 bits for each number, which look unlike those of any other."""
    word = numbers.astype(np.uint64) + _ODD
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(word ^ word >> np.uint64(31))


def _by_value(table: Numbers, values: int) -> tuple[Numbers, Numbers]:
    """Return the rows that have each value: where those of each begin, and the rows."""
    order = np.argsort(table.reshape(-1), kind="stable")
    first = np.searchsorted(table.reshape(-1)[order], np.arange(values + 1))
    return first, order // table.shape[1]


def _ranges(first: Numbers, chosen: Numbers) -> Numbers:
    """Return the places of some rows whose starts are in `first`, one after the other."""
    counts = first[chosen + 1] - first[chosen]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.asarray(np.repeat(first[chosen], counts) + within)


def _first_of(classes: Numbers) -> Numbers:
    """Return the first member of each class."""
    _, first = np.unique(classes, return_index=True)
    return first


def _numbered(classes: Numbers) -> Numbers:
    """Return classes numbered in the order of their first members."""
    _, first, number = np.unique(classes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


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
