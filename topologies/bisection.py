"""Bisection bandwidth: the most that half of the hosts can send to the other, for the worst halves.

By max-flow and min-cut, it is the least cut: over all halves of the hosts, and over all sets of
switches on the senders' side. A set of switches says which halves are worst for it, so a small
network's sets are all tried. Of others, some halves are tried, which gives an upper bound.
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

MOST_KINDS = 64
"""Kinds of hosts (by switch and rates) of such a network."""

MOST_SPECTRAL = 800
"""Switches of a network whose eigenvectors are computed; a second for the largest."""

Ints = npt.NDArray[np.int64]


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
    if len(switch_graph(graph)) <= MOST_SWITCHES and len(kinds) <= MOST_KINDS:
        return Bisection(_least_cut(graph, kinds), True)
    halves = [*_halves(graph)]
    if not _is_regular(graph):
        halves += _other_halves(graph)
    return Bisection(min(max_flow_bps(graph, half) for half in halves), _is_regular(graph))


def _is_regular(graph: nx.Graph[str]) -> bool:
    sizes: tuple[int, ...] = graph.graph["hierarchy"]
    return not graph.graph.get("named", False) and all(size % 2 == 0 for size in sizes)


def _kinds(graph: nx.Graph[str]) -> Counter[tuple[int, int, int]]:
    """Return the number of hosts of each switch (by number) and rates (up, down)."""
    number = {switch: index for index, switch in enumerate(switch_graph(graph))}
    found: Counter[tuple[int, int, int]] = Counter()
    for host in hosts(graph):
        switch = attachment(graph, host)
        up, down = link(graph, host, switch).rate_bps, link(graph, switch, host).rate_bps
        found[number[switch], up, down] += 1
    return found


def _least_cut(graph: nx.Graph[str], kinds: Counter[tuple[int, int, int]]) -> int:
    """Return the least cut of all sets of switches, each with the halves that are worst for it.

    A host whose switch is in the set adds what it can receive, unless it is a sender; one whose
    switch is not adds what it can send, if it is one. So the senders are those hosts that add
    least by being one.
    """
    rates = _rates(graph)
    count = len(rates)
    sets = (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(np.int64)
    cuts = ((sets @ rates) * (1 - sets)).sum(axis=1)
    switch, up, down = (np.array(column, dtype=np.int64) for column in zip(*kinds, strict=True))
    members = np.array([*kinds.values()], dtype=np.int64)
    inside = sets[:, switch] == 1
    cuts += (inside * down * members).sum(axis=1)
    added = np.where(inside, -down, up)
    order = np.argsort(added, axis=1)
    added = np.take_along_axis(added, order, axis=1)
    before = np.cumsum(members[order], axis=1) - members[order]
    total = int(members.sum())
    least = []
    for senders in {total // 2, total - total // 2}:
        taken = np.clip(senders - before, 0, members[order])
        least.append(int((cuts + (added * taken).sum(axis=1)).min()))
    return min(least)


def _rates(graph: nx.Graph[str]) -> Ints:
    """Return the rate from each switch to each other, 0 where no link joins them."""
    peers = switch_graph(graph)
    number = {switch: index for index, switch in enumerate(peers)}
    rates = np.zeros((len(peers), len(peers)), dtype=np.int64)
    for a, near in peers.items():
        for b in near:
            rates[number[a], number[b]] = link(graph, a, b).rate_bps
    return rates


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


def _other_halves(graph: nx.Graph[str]) -> Iterator[list[str]]:
    """Yield halves of hosts whose switches are near: by distance, and by the second eigenvector.

    The eigenvector of the graph's Laplacian with the second smallest eigenvalue (Fiedler's) parts
    a graph where few links cross.
    """
    peers = switch_graph(graph)
    places = []
    start = next(iter(peers))
    for _ in range(2):  # from any switch, and from the one that is farthest from it
        reached = dict.fromkeys([start])
        for name in (waiting := [start]):
            new = [peer for peer in peers[name] if peer not in reached]
            reached |= dict.fromkeys(new)
            waiting += new
        places.append({name: float(index) for index, name in enumerate(reached)})
        start = next(reversed(reached))
    if 1 < len(peers) <= MOST_SPECTRAL:
        rates = _rates(graph).astype(float)
        rates = (rates + rates.T) / max(rates.max(), 1.0)
        _, vectors = np.linalg.eigh(np.diag(rates.sum(axis=1)) - rates)
        places.append(dict(zip(peers, vectors[:, 1].tolist(), strict=True)))
    members = hosts(graph)
    for place in places:
        order = sorted(members, key=lambda host: place[attachment(graph, host)])
        half = len(members) // 2
        yield order[:half]
        if len(members) % 2 or not is_even(graph):
            yield order[half:]
