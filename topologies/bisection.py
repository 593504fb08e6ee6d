"""Bisection bandwidth: the most that half of the hosts can send to the other, for the worst halves.

By max-flow and min-cut, it is the least cut: over all halves of the hosts, and over all sets of
switches on the senders' side. A set of switches says which halves are worst for it, so a small
network's sets are all tried. Of others, sets of switches that are near each other are tried, and
changed switch by switch while that helps, which gives an upper bound.

Source:
    Fiduccia and Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.topologies.graph import attachment, hosts, is_even, link, switch_graph
from ringleaf.topologies.metrics import max_flow_bps

MOST_SWITCHES = 16
"""Switches of a network whose sets of switches are all tried."""

MOST_SPECTRAL = 800
"""Switches of a network whose eigenvectors are computed; a second for the largest."""

MOST_REFINED = 256
"""Switches of a network whose sets are changed switch by switch; seconds for the largest."""

MOST_SETS = 512
"""Sets of switches that are tried of one order, if there are more."""

MOST_CELLS = 4_000_000
"""Sets of switches, times kinds of hosts, that are tried at once."""

Sets = npt.NDArray[np.bool_]  # (sets, switches)
Cuts = npt.NDArray[np.int64]  # (sets,) bit/s


@dataclass(frozen=True, slots=True)
class Bisection:
    """A bisection bandwidth in bit/s; if it is not exact, the true one may be lower."""

    bps: int
    is_exact: bool


def bisection(graph: nx.Graph[str]) -> Bisection:
    """Return the bisection bandwidth; that of an odd number of hosts leaves one more in a half.

    It is exact for networks of up to 16 switches, and for those of the families whose levels are
    all of even size, where a cut of one level is the worst (tested against all halves).
    """
    if len(hosts(graph)) < 2:
        return Bisection(0, True)
    kinds = _kinds(graph)
    count = len(switch_graph(graph))
    if count <= MOST_SWITCHES and len(kinds) << count <= MOST_CELLS:
        every = (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(bool)
        return Bisection(int(_cuts(graph, kinds, every).min()), True)
    least = min(max_flow_bps(graph, half) for half in _halves(graph))
    if _is_regular(graph):
        return Bisection(least, True)
    for sets in _near_sets(graph, len(kinds)):
        cuts = _cuts(graph, kinds, sets)
        least = min(least, int(cuts.min()))
        if count <= MOST_REFINED:
            least = min(least, _refined(graph, kinds, sets[cuts.argmin()]))
    return Bisection(least, False)


def _is_regular(graph: nx.Graph[str]) -> bool:
    sizes: tuple[int, ...] = graph.graph["hierarchy"]
    is_uneven = graph.graph.get("named", False) or graph.graph.get("irregular", False)
    return not is_uneven and all(size % 2 == 0 for size in sizes)


def _kinds(graph: nx.Graph[str]) -> Counter[tuple[int, int, int]]:
    """Return the number of hosts of each switch (by number) and rates (up, down)."""
    number = {switch: index for index, switch in enumerate(switch_graph(graph))}
    counts: Counter[tuple[int, int, int]] = Counter()
    for host in hosts(graph):
        switch = attachment(graph, host)
        up, down = link(graph, host, switch).rate_bps, link(graph, switch, host).rate_bps
        counts[number[switch], up, down] += 1
    return counts


def _cuts(graph: nx.Graph[str], kinds: Counter[tuple[int, int, int]], sets: Sets) -> Cuts:
    """Return the cut of each of some sets of switches, with the halves that are worst for it."""
    cuts = np.zeros(len(sets), dtype=np.int64)
    for a, b, rate_bps in _rates(graph):
        cuts += rate_bps * (sets[:, a] & ~sets[:, b])
    return cuts + _host_cuts(kinds, sets)


def _host_cuts(kinds: Counter[tuple[int, int, int]], sets: Sets) -> Cuts:
    """Return what hosts' links add to the cut of each set.

    A host whose switch is in the set adds what it can receive, unless it is a sender; one whose
    switch is not adds what it can send, if it is one. So the senders are those hosts that add
    least by being one.
    """
    switch, up, down = (np.array(column, dtype=np.int64) for column in zip(*kinds, strict=True))
    members = np.array([*kinds.values()], dtype=np.int64)
    total = int(members.sum())
    halves = {total // 2, total - total // 2}
    inside = sets[:, switch]
    if len({*up, *down}) == 1:  # the senders are as many as there are, those inside first
        here = inside @ members
        alike: Cuts = np.minimum.reduce([up[0] * abs(here - senders) for senders in halves])
        return alike
    always = (inside * down * members).sum(axis=1)
    added = np.where(inside, -down, up)
    order = np.argsort(added, axis=1)
    added = np.take_along_axis(added, order, axis=1)
    before = np.cumsum(members[order], axis=1) - members[order]
    taken = [np.clip(senders - before, 0, members[order]) for senders in halves]
    least: Cuts = always + np.minimum.reduce([(added * each).sum(axis=1) for each in taken])
    return least


def _refined(graph: nx.Graph[str], kinds: Counter[tuple[int, int, int]], start: Sets) -> int:
    """Return the least cut that changes of one set of switches lead to.

    In a pass each switch changes sides once, the one next that gives the least cut then, also if
    it is more than before; the next pass begins with the best set of this one.
    """
    single = np.eye(len(start), dtype=bool)
    rates = np.zeros(single.shape, dtype=np.int64)
    for a, b, rate_bps in _rates(graph):
        rates[a, b] += rate_bps
    best, least, before = start, int(_cuts(graph, kinds, start[None])[0]), None
    while before is None or least < before:
        before, inside, left = least, best, ~np.zeros_like(start)
        while left.any():
            out, back = rates @ ~inside, inside @ rates
            change = np.where(inside, back - out, out - back)
            sets = inside ^ single
            cuts = out[inside].sum() + change + _host_cuts(kinds, sets)
            chosen = int(np.where(left, cuts, cuts.max() + 1).argmin())
            inside, left[chosen] = sets[chosen], False
            if cuts[chosen] < least:
                best, least = inside, int(cuts[chosen])
    return least


def _rates(graph: nx.Graph[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the switches of each link between two, by number, and its rate, for each direction."""
    peers = switch_graph(graph)
    number = {switch: index for index, switch in enumerate(peers)}
    for a, near in peers.items():
        for b in near:
            yield number[a], number[b], link(graph, a, b).rate_bps


def _halves(graph: nx.Graph[str]) -> Iterator[list[str]]:
    """Yield, for each level, the half of the hosts that comes first when sorted by its digit."""
    members = hosts(graph)
    sizes: tuple[int, ...] = graph.graph["hierarchy"]
    for level, size in enumerate(sizes):
        stride = prod(sizes[:level])
        order = sorted(range(len(members)), key=lambda rank: (rank // stride % size, rank))
        half = len(members) // 2
        yield [members[rank] for rank in order[:half]]
        if not is_even(graph):
            yield [members[rank] for rank in order[half:]]


def _near_sets(graph: nx.Graph[str], kinds: int) -> Iterator[Sets]:
    """Yield sets of switches that are near each other: those that come first in some orders.

    The orders are by distance, and by the eigenvector of the graph's Laplacian with the second
    smallest eigenvalue (Fiedler's), which parts a graph where few links cross.
    """
    count = len(switch_graph(graph))
    ends = np.unique(
        np.linspace(1, count, min(count, MOST_SETS, MOST_CELLS // kinds + 1)).astype(np.int64)
    )
    for order in _orders(graph):
        place = np.empty(count, dtype=np.int64)
        place[order] = np.arange(count)
        sets: Sets = place < ends[:, None]
        yield np.concatenate((sets, ~sets))


def _orders(graph: nx.Graph[str]) -> Iterator[list[int]]:
    """Yield orders of switches, by number."""
    peers = switch_graph(graph)
    number = {switch: index for index, switch in enumerate(peers)}
    start = next(iter(peers))
    for _ in range(2):  # from any switch, and from the one that is farthest from it
        reached = dict.fromkeys([start])
        waiting = [start]
        for name in waiting:  # it grows
            new = [peer for peer in peers[name] if peer not in reached]
            reached |= dict.fromkeys(new)
            waiting += new
        yield [number[name] for name in reached]
        start = waiting[-1]
    if 1 < len(peers) <= MOST_SPECTRAL:
        rates = np.zeros((len(peers), len(peers)))
        for a, b, rate_bps in _rates(graph):
            rates[a, b] += rate_bps
            rates[b, a] += rate_bps
        rates /= max(rates.max(), 1.0)
        _, vectors = np.linalg.eigh(np.diag(rates.sum(axis=1)) - rates)
        yield np.argsort(vectors[:, 1], kind="stable").tolist()
