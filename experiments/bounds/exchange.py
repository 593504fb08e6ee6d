"""The least time of an exchange, in which all ranks send to all others at once.

It is what `ringleaf.experiments.bounds.bounds` finds from all rows. No message waits for another,
so it needs no rows: the ways of many pairs of ranks are followed together.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.pair_links import LinkColumns, PairLinks
from ringleaf.topologies.ways import least_ps

_BLOCK = 1 << 17  # pairs that are followed at once

Sizes = tuple[int, int, int]
"""Bytes on the line of a message's first packet, of all its packets, and of its last one."""


def exchange_ps(pairs: PairLinks, ranks: int, sizes: Sizes) -> int:
    """Return the larger one of the times of the longest message and of the busiest link, in ps.

    A link's bytes begin when the first of its flows can be there; after the last ones comes the
    rest of the shortest way.

    Args:
        pairs: The ways between hosts.
        ranks: The number of ranks: the first hosts.
        sizes: The bytes of each message.
    """
    columns = pairs.columns
    times_ps = _times_ps(columns, sizes)
    flows, longest_ps = np.zeros(len(columns.ends), np.int64), 0
    before_ps, after_ps = np.full((2, len(flows)), np.iinfo(np.int64).max // 2)
    for src, dst in _blocks(ranks):
        ways = pairs.find(src, dst)
        is_link, crossed = ways >= 0, ways[ways >= 0]
        delay_ps = np.where(is_link, columns.delay_ps[ways], 0)
        gone_ps = np.cumsum(delay_ps, axis=1)
        flows += np.bincount(crossed, minlength=len(flows))
        np.minimum.at(before_ps, crossed, (gone_ps - delay_ps)[is_link])
        np.minimum.at(after_ps, crossed, (gone_ps[:, -1:] - gone_ps + delay_ps)[is_link])
        alone_ps = gone_ps[:, -1] + _alone_ps(np.where(is_link, times_ps[:, ways], 0))
        longest_ps = max(longest_ps, int(alone_ps.max()))
    busy, bytes_of_all = np.flatnonzero(flows), sizes[1] * flows
    loads_ps = [least_ps(bytes_of_all[link], columns.rate_bps[link]) for link in busy.tolist()]
    ends_ps = before_ps[busy] + after_ps[busy] + np.array(loads_ps, np.int64)
    return max(longest_ps, int(ends_ps.max(initial=0)))


def _blocks(ranks: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the sources and destinations of all pairs of ranks, so many at a time."""
    rank, others = np.arange(ranks), np.arange(1, ranks)
    rows = max(_BLOCK // max(ranks, 1), 1)
    for first in range(0, ranks if ranks > 1 else 0, rows):
        src = np.repeat(rank[first : first + rows], ranks - 1)
        yield src, (src + np.tile(others, len(src) // (ranks - 1))) % ranks


def _times_ps(columns: LinkColumns, sizes: Sizes) -> Numbers:
    """Return the times that these bytes take on each link: (sizes, links)."""
    distinct, place = np.unique(columns.rate_bps, return_inverse=True)
    times = [[least_ps(size, rate) for rate in distinct.tolist()] for size in sizes]
    return np.array(times, np.int64)[:, place]


def _alone_ps(times_ps: Numbers) -> Numbers:
    """Return the times of messages on their ways, without delays, as `RouteLinks.alone_ps`.

    Args:
        times_ps: (sizes, pairs, longest) the time of each of the sizes on each link of a way.
    """
    first, whole, last = times_ps
    before = np.cumsum(first, axis=1) - first
    after = np.cumsum(last[:, ::-1], axis=1)[:, ::-1] - last
    return np.asarray((before + whole + after).max(axis=1))
