"""The search for classes of ranks, links and flows of a symmetric schedule on a topology."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.symmetry import Exchange, Symmetry
from ringleaf.networks.flow.classes import Classes
from ringleaf.topologies.arrays import Numbers
from ringleaf.topologies.exchange import refine_exchange
from ringleaf.topologies.pair_links import LinkColumns, PairLinks
from ringleaf.topologies.partition import Partition, refine


def find_classes(symmetry: Symmetry | Exchange, pairs: PairLinks, hosts: Numbers) -> Classes | None:
    """Return the classes of a schedule's ranks; None if nearly each rank would be its own.

    Args:
        symmetry: What its ranks have in common.
        pairs: Finds the links between hosts.
        hosts: (ranks,) the number of each rank's host.
    """
    if isinstance(symmetry, Exchange):
        return _of_exchange(symmetry, pairs, hosts)
    all_ranks, columns = np.arange(symmetry.ranks), pairs.columns
    ways = _ways(all_ranks, symmetry.peers, pairs, hosts)
    colour = _told_apart(columns.apart)
    path_bps = _path_bps(all_ranks, symmetry.peers, pairs, hosts)
    groups = symmetry.groups
    flows = np.stack(np.broadcast_arrays(groups, groups[symmetry.back], path_bps), axis=2)
    flow = _told_apart(flows.reshape(-1, 3))
    partition = refine(
        *(_kinds(symmetry, ways, colour)[:, None], symmetry.peers, ways, colour),
        flow=flow.reshape(ways.shape[:2]),
        back=symmetry.back,
    )
    return _classes(symmetry, hosts, columns, partition, ways, path_bps)


def _told_apart(table: Numbers) -> Numbers:
    """Return a number for each row, in the rows' order: as `np.unique` does, by integers' sorts."""
    number = np.zeros(len(table), np.int64)
    for column in table.T:
        if (column != column[:1]).any():
            values, place = np.unique(column, return_inverse=True)
            _, number = np.unique(number * len(values) + place, return_inverse=True)
    return number


def _classes(
    symmetry: Symmetry,
    hosts: Numbers,
    columns: LinkColumns,
    partition: Partition,
    ways: Numbers,
    path_bps: Numbers,
) -> Classes:
    """Return classes, with those peers of their first ranks that do as no peer before."""
    of_rank, of_flow = _kinds_first(symmetry, partition), partition.of_flow
    first = np.unique(of_rank, return_index=True)[1]
    kept = _kept(symmetry, of_flow, first)
    peers, back = symmetry.peers[first], symmetry.back[first]
    flow_back = of_flow[peers, back]
    there = of_flow[first][of_rank[peers]]  # (classes, columns, columns): flows of peers' classes
    sizes = np.bincount(of_flow[symmetry.peers != np.arange(symmetry.ranks)[:, None]])
    return Classes(
        *(symmetry, hosts, columns, of_rank, partition.of_link, first),
        kind=_kinds_of(symmetry, of_flow, first),
        peers=np.where(kept, peers, -1),
        back=(there == flow_back[:, :, None]).argmax(axis=2),
        flows=np.where(kept, sizes[np.where(kept, of_flow[first], 0)], 0),
        ways=ways[first],
        path_bps=path_bps[first],
    )


def _path_bps(ranks: Numbers, peers: Numbers, pairs: PairLinks, hosts: Numbers) -> Numbers:
    """Return the rates by which hosts choose windows: (some ranks, columns).

    As in `Connections`, they are those of the first one of all ways, not of the one that is dealt.
    """
    rates = pairs.columns.rate_bps
    if len(np.unique(rates)) == 1:
        return np.full(peers.shape, rates[0])
    ways = _ways(ranks, peers, pairs, hosts, is_dealt=False)
    passed = np.where(ways >= 0, rates[ways], np.iinfo(np.int64).max)
    return np.asarray(passed.min(axis=2))


def _ways(
    ranks: Numbers, peers: Numbers, pairs: PairLinks, hosts: Numbers, *, is_dealt: bool = True
) -> Numbers:
    """Return the links from some ranks to each peer: (some ranks, columns, longest)."""
    src, dst = np.repeat(ranks, peers.shape[1]), peers.reshape(-1)
    there = (src != dst) & (dst >= 0)
    crossed = pairs.find(hosts[src[there]], hosts[dst[there]], is_dealt=is_dealt)
    ways = np.full((len(src), crossed.shape[1]), -1, np.int64)
    ways[there] = crossed
    return ways.reshape(*peers.shape, -1)


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


MOST_FLOWS = 1 << 15
"""The most flows by classes of an exchange: more take longer than they are worth."""


def _of_exchange(exchange: Exchange, pairs: PairLinks, hosts: Numbers) -> Classes | None:
    """Return the classes of ranks that send to all others, as `find_classes`."""
    columns = pairs.columns
    colour = _told_apart(columns.apart)
    refined = refine_exchange(pairs, hosts, colour, most_flows=MOST_FLOWS)
    if refined is None:
        return None
    first, peers = refined.first_host, refined.peers
    return Classes(
        *(exchange, hosts, columns, refined.of_host, refined.of_link, first),
        kind=np.arange(len(first)),
        peers=peers,
        back=refined.back,
        flows=refined.counts * np.bincount(refined.of_host)[:, None],
        ways=_ways(first, peers, pairs, hosts),
        path_bps=_path_bps(first, peers, pairs, hosts),
    )
