"""Least times of collectives on a network, by the wires that data must pass to get to a rank."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.wires import RankNetwork
from ringleaf.core.units import FOREVER_PS, PS_PER_S


def gather_bound_ps(wires: RankNetwork, chunks: int, chunk_bytes: int) -> int:
    """Return the least time of an all-gather in which a chunk travels whole.

    Each rank must get all chunks of the others, through the wires that lead to it: through the
    last one of its ways, through the last but one, and so on. Ranks of one switch must get all
    chunks from elsewhere through the wires that lead to that switch. A wire brings whole chunks
    only, one after the other, if all ways through it are as slow as the wire is.

    Args:
        wires: The network.
        chunks: Chunks that each rank contributes.
        chunk_bytes: Size of a chunk.
    """
    bound_ps = 0
    for rank in range(wires.ranks):
        arriving = {pair: way for pair, way in wires.ways.items() if pair[1] == rank}
        shortest = min((len(way) for way in arriving.values()), default=0)
        for back in range(1, shortest + 1):
            lines = {pair: way[-back] for pair, way in arriving.items()}
            need = (wires.ranks - 1) * chunks
            bound_ps = max(bound_ps, _cut_ps(wires, lines, need, chunk_bytes))
    for site in set(wires.sites):
        inside = {rank for rank in range(wires.ranks) if wires.sites[rank] == site}
        arriving = {
            pair: way
            for pair, way in wires.ways.items()
            if pair[1] in inside and pair[0] not in inside
        }
        if len(inside) < 2 or any(len(way) < 2 for way in arriving.values()):
            continue
        lines = {pair: way[-2] for pair, way in arriving.items()}
        need = (wires.ranks - len(inside)) * chunks
        bound_ps = max(bound_ps, _cut_ps(wires, lines, need, chunk_bytes))
    return bound_ps


def _cut_ps(
    wires: RankNetwork, lines: dict[tuple[int, int], int], need: int, chunk_bytes: int
) -> int:
    """Return the least time in which these pairs, each by its line, bring so many chunks."""
    if need < 1 or not lines:
        return 0
    least_ps: dict[int, int] = {}
    is_single: dict[int, bool] = {}
    for pair, line in lines.items():
        time_ps = wires.time_ps(pair, chunk_bytes)
        least_ps[line] = min(least_ps.get(line, time_ps), time_ps)
        alone = 2 * wires.rates_bps[pair] > wires.wires[line].rate_bps
        is_single[line] = is_single.get(line, True) and alone
    if all(is_single.values()):
        return least_time(least_ps.values(), need)
    rate_bps = sum(wires.wires[line].rate_bps for line in least_ps)
    return max(need * chunk_bytes * 8 * PS_PER_S // rate_bps, min(least_ps.values()))


def least_time(times: Iterable[int], need: int) -> int:
    """Return the least time in which machines that take `times` for a piece make `need` pieces."""
    known = [max(each, 1) for each in times]
    low, high = 0, need * min(known)
    while low + 1 < high:
        middle = (low + high) // 2
        if sum(middle // each for each in known) >= need:
            high = middle
        else:
            low = middle
    return high


def least_in_pieces_ps(
    wires: RankNetwork, size_bytes: int, collective: Collective, root: int = 0
) -> int:
    """Return the least time of a collective whose data may be cut as one likes.

    It is that of the rates of wires, or of the delays on the longest of shortest ways.
    """
    return max(
        _least_by_rates_ps(wires, size_bytes, collective), _farthest_ps(wires, collective, root)
    )


def _farthest_ps(wires: RankNetwork, collective: Collective, root: int) -> int:
    """Return the delay from a rank to the one that gets its data last, by others or not."""
    delays = np.full((wires.ranks, wires.ranks), FOREVER_PS // 2)
    np.fill_diagonal(delays, 0)
    for pair, delay_ps in wires.delays_ps.items():
        delays[pair] = delay_ps
    for by in range(wires.ranks):
        np.minimum(delays, delays[:, by, None] + delays[by], out=delays)
    if collective is Collective.BROADCAST:
        return int(delays[root].max())
    return int((delays[:, root] if collective is Collective.REDUCE else delays).max())


def _least_by_rates_ps(wires: RankNetwork, size_bytes: int, collective: Collective) -> int:
    """Return the least time by rates.

    In an all-gather each rank must get (n - 1) / n of the size by the wires that end at it; in a
    reduce-scatter it must send as much by those that begin there, and may get less, as sums are
    added on the way. In an allreduce each rank must get and send all of it, in a broadcast or
    reduce some rank all of it. In an allreduce, n - 1 messages of each element must be added up and
    n - 1 must be sums (Patarasuk and Yuan, JPDC 69(2), 2009), so all ranks together get
    2 (n - 1) sizes.
    """
    ranks = wires.ranks
    if ranks < 2:
        return 0
    sent: list[set[int]] = [set() for _ in range(ranks)]
    got: list[set[int]] = [set() for _ in range(ranks)]
    for (src, dst), way in wires.ways.items():
        sent[src].add(way[0])
        got[dst].add(way[-1])
    sent_bps, got_bps = ([_sum_bps(wires, ends) for ends in all_ends] for all_ends in (sent, got))
    size_ps = size_bytes * 8 * PS_PER_S
    if collective in (Collective.BROADCAST, Collective.REDUCE):
        return size_ps // max(got_bps)
    if collective is Collective.ALLREDUCE:
        all_ps = 2 * (ranks - 1) * size_ps // sum(got_bps)
        return max(size_ps // min(got_bps + sent_bps), all_ps)
    slowest_bps = min(sent_bps if collective is Collective.REDUCE_SCATTER else got_bps)
    return (ranks - 1) * size_ps // (ranks * slowest_bps)


def _sum_bps(wires: RankNetwork, lines: set[int]) -> int:
    return sum(wires.wires[line].rate_bps for line in lines)
