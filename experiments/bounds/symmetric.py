"""The least time of a symmetric schedule, by classes of its ranks: no row of all is made.

It is the larger one of two, as for all schedules (`ringleaf.experiments.bounds.bounds`): the
longest chain of messages, where each step waits for the one before; and the bytes that each link
must carry, with the delays of the shortest way over it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ringleaf.collectives.rows import Column
from ringleaf.core.units import PS_PER_S
from ringleaf.networks.flow.classes import Classes
from ringleaf.topologies.ways import RouteLinks

LineBytes = Callable[[int], int]
"""A function that returns the bytes of a message's packets on the line."""


def least_ps(
    classes: Classes, edges: Column, element_bytes: int, mtu_bytes: int, line_bytes: LineBytes
) -> int:
    """Return the larger bound, in ps.

    Args:
        classes: The classes of a schedule's ranks.
        edges: (chunks + 1,) the element at which each chunk starts, and the end.
        element_bytes: Bytes of an element.
        mtu_bytes: Payload of a full packet.
        line_bytes: Bytes of a message on the line.
    """
    sent = np.zeros((len(classes.examples), classes.peers.shape[1]), np.int64)
    chain_ps = 0
    for kind, class_ in enumerate(classes.examples):
        rank, rows = int(classes.first_rank[class_]), classes.rows_of(class_)
        own = rows.take(rows.src == rank)
        column = {peer: i for i, peer in reversed(list(enumerate(classes.peers[class_].tolist())))}
        columns = np.array([column[peer] for peer in own.dst.tolist()], np.int64)
        sizes = (edges[own.stop] - edges[own.start]) * element_bytes
        distinct, place = np.unique(sizes, return_inverse=True)
        on_line = np.array([line_bytes(size) for size in distinct.tolist()], np.int64)
        np.add.at(sent[kind], columns, on_line[place])
        if classes.symmetry.is_chain and len(classes.examples) == 1:
            alone = _Alone(classes, mtu_bytes, line_bytes)
            chain_ps = _chain_ps(classes, columns, sizes, alone)
    return max(chain_ps, _load_ps(classes, sent[classes.kind]))


def _load_ps(classes: Classes, sent: Column) -> int:
    """Return the bound of links' bytes; `sent` are those of each class to each peer."""
    links = len(classes.first_link)
    carried, nearest_ps = np.zeros(links), np.full(links, np.iinfo(np.int64).max)
    for class_, column in np.argwhere(sent > 0).tolist():
        way = classes.way(class_, column)
        delay_ps = sum(_delay_ps(classes, link) for link, _ in way)
        for link, flows in dict(way).items():
            carried[link] += flows * sent[class_, column]
            nearest_ps[link] = min(nearest_ps[link], delay_ps)
    rates = classes.columns.rate_bps[classes.first_link]
    busy = np.flatnonzero(carried)
    times_ps = carried[busy] * (8 * PS_PER_S / rates[busy])
    return int((times_ps.astype(np.int64) + nearest_ps[busy]).max(initial=0))


def _delay_ps(classes: Classes, link: int) -> int:
    return int(classes.columns.delay_ps[classes.first_link[link]])


class _Alone:
    """Times of messages that are alone, from all classes to a column of peers."""

    def __init__(self, classes: Classes, mtu_bytes: int, line_bytes: LineBytes) -> None:
        self._classes, self._mtu_bytes, self._line_bytes = classes, mtu_bytes, line_bytes
        self._known: dict[tuple[int, int], Column] = {}

    def __call__(self, column: int, size_bytes: int) -> Column:
        """Return the times of messages of a size: (classes,)."""
        key = column, size_bytes
        if key not in self._known:
            times = [self._time_ps(each, *key) for each in range(self._classes.count)]
            self._known[key] = np.array(times, np.int64)
        return self._known[key]

    def _time_ps(self, class_: int, column: int, size_bytes: int) -> int:
        links = [link for link, _ in self._classes.way(class_, column)]
        rates = self._classes.columns.rate_bps[self._classes.first_link[links]]
        way = RouteLinks(
            sum(_delay_ps(self._classes, link) for link in links), tuple(rates.tolist())
        )
        first_bytes, last_bytes = (
            min(size_bytes, self._mtu_bytes),
            (size_bytes - 1) % self._mtu_bytes + 1,
        )
        sizes = (self._line_bytes(each) for each in (first_bytes, size_bytes, last_bytes))
        return way.alone_ps(*sizes)


def _chain_ps(classes: Classes, columns: Column, sizes: Column, alone: _Alone) -> int:
    """Return when all can have what came in the last step, which began with the step before."""
    peers = classes.of_rank[classes.peers]
    there_ps = np.zeros(classes.count, np.int64)
    for column, size in zip(columns.tolist(), sizes.tolist(), strict=True):
        arrival_ps = np.zeros(classes.count, np.int64)
        np.maximum.at(arrival_ps, peers[:, column], there_ps + alone(column, size))
        there_ps = arrival_ps
    return int(there_ps.max(initial=0))
