"""Networks whose ways meet, made ones of a few ways that have shares of wires to themselves.

Hosts send to all their peers at once, and to each in the order of the schedule. A plan that gives a
NIC to one peer after the other is not kept, then; one in which each peer has its share is. So a
host behind switches gets few peers: its neighbours in a ring through all ranks, one way or both,
and others where wires have room left. The ring begins in rank order, in which near ranks are
neighbours, and pairs of ranks change places while that makes its slowest way faster.

TACOS and TACCL, too, replace switches by links between few ranks; this choice of links is ours.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from ringleaf.collectives.wires import Pair, RankNetwork

SWAPS = 40  # that are tried, for each rank


def unwound(wires: RankNetwork, seed: int) -> list[RankNetwork]:
    """Return networks whose ways do not meet, each of them a part of this one.

    Args:
        wires: A network; a pair that has a way has one back.
        seed: Seeds the draws of ranks that change places.
    """
    if not _meet(wires, wires.ways) or wires.ranks < 3:
        return [parted(wires, wires.ways)]
    order = _ring(wires, random.Random(seed))
    hops = list(pairwise([*order, order[0]]))
    both = list(dict.fromkeys([*hops, *(pair[::-1] for pair in hops)]))
    known = [pairs for pairs in (hops, both) if _known(wires, pairs)] or [_joined(wires)]
    return [parted(wires, _filled(wires, pairs)) for pairs in known]


def _known(wires: RankNetwork, pairs: Iterable[Pair]) -> bool:
    return all(pair in wires.ways for pair in pairs)


def _meet(wires: RankNetwork, pairs: Iterable[Pair]) -> bool:
    """Return whether some wire can't carry all its ways at their rates."""
    carried: Counter[int] = Counter()
    for pair in pairs:
        carried.update(dict.fromkeys(wires.ways[pair], wires.rates_bps[pair]))
    return any(wires.wires[wire].rate_bps < rate_bps for wire, rate_bps in carried.items())


def _shares_bps(wires: RankNetwork, pairs: Iterable[Pair]) -> dict[Pair, int]:
    """Return the rate of each way if its wires are shared evenly."""
    known = list(pairs)
    ways = Counter(wire for pair in known for wire in wires.ways[pair])
    return {
        pair: max(min(wires.wires[w].rate_bps // ways[w] for w in wires.ways[pair]), 1)
        for pair in known
    }


def _ring(wires: RankNetwork, rng: random.Random) -> list[int]:
    """Return an order of ranks, in which the slowest hop of a ring is as fast as could be found."""
    order = list(range(wires.ranks))
    best = _worth(wires, order)
    fastest = min(wires.rates_bps.values())
    for _ in range(SWAPS * wires.ranks):
        if best[0] >= fastest:
            break
        a, b = rng.sample(range(wires.ranks), 2)
        order[a], order[b] = order[b], order[a]
        worth = _worth(wires, order)
        if worth >= best:
            best = worth
        else:
            order[a], order[b] = order[b], order[a]
    return order


def _worth(wires: RankNetwork, order: list[int]) -> tuple[int, int]:
    """Return the rate of a ring's slowest hop, and less the longer its hops are."""
    hops = list(pairwise([*order, order[0]]))
    if not _known(wires, hops):
        return 0, -sum(pair not in wires.ways for pair in hops)
    shares = _shares_bps(wires, hops)
    return min(shares.values()), -sum(wires.delays_ps[pair] for pair in hops)


def _joined(wires: RankNetwork) -> list[Pair]:
    """Return ways both ways, of a tree of the fastest and nearest pairs that joins all ranks."""
    island = list(range(wires.ranks))
    tree = []
    for src, dst in sorted(wires.ways, key=lambda pair: _rank_of(wires, pair)):
        if island[src] != island[dst] and (dst, src) in wires.ways:
            tree += [(src, dst), (dst, src)]
            old, new = island[src], island[dst]
            island = [new if each == old else each for each in island]
    return tree


def _rank_of(wires: RankNetwork, pair: Pair) -> tuple[int, int, Pair]:
    return -wires.rates_bps[pair], wires.delays_ps[pair], pair


def _filled(wires: RankNetwork, pairs: list[Pair]) -> list[Pair]:
    """Return pairs, and others that leave all shares as they are, fast and near ones first."""
    chosen = dict.fromkeys(pairs)
    free_bps = [wire.rate_bps for wire in wires.wires]
    for pair, rate_bps in _shares_bps(wires, pairs).items():
        for wire in wires.ways[pair]:
            free_bps[wire] -= rate_bps
    others = [pair for pair in wires.ways if pair not in chosen]
    others.sort(key=lambda pair: _rank_of(wires, pair))
    for pair in others:
        rate_bps = wires.rates_bps[pair]
        if all(free_bps[wire] >= rate_bps for wire in wires.ways[pair]):
            chosen[pair] = None
            for wire in wires.ways[pair]:
                free_bps[wire] -= rate_bps
    return list(chosen)


def parted(wires: RankNetwork, pairs: Iterable[Pair]) -> RankNetwork:
    """Return the network of these ways, each with a wire of its own: a share of those that meet."""
    known = list(pairs)
    rates = _rates_bps(wires, known)
    links = [(*pair, rates[pair], wires.delays_ps[pair]) for pair in known]
    return RankNetwork.direct(wires.ranks, links)


def _rates_bps(wires: RankNetwork, pairs: list[Pair]) -> dict[Pair, int]:
    """Return the rates of ways: their own where none meet, else shares of wires that are full."""
    carried: Counter[int] = Counter()
    for pair in pairs:
        for wire in wires.ways[pair]:
            carried[wire] += wires.rates_bps[pair]
    full = {wire for wire, rate in carried.items() if rate > wires.wires[wire].rate_bps}
    ways = Counter(wire for pair in pairs for wire in wires.ways[pair] if wire in full)
    return {
        pair: min(
            [wires.rates_bps[pair]]
            + [max(wires.wires[w].rate_bps // ways[w], 1) for w in wires.ways[pair] if w in full]
        )
        for pair in pairs
    }
