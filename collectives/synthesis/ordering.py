"""The order of chunks on each link, by a heuristic, and the times that follow from it.

Source:
    Shah et al., "TACCL", NSDI 2023, section 5.2: chunks with the longest way to go come first, of
    these the ones that have come the shortest way.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ringleaf.collectives.synthesis.routing import Routes
from ringleaf.collectives.synthesis.timed import Timed
from ringleaf.collectives.wires import Pair, RankNetwork


class _Links:
    """Links that take ready chunks, one after the other.

    Args:
        wires: A network in which ways do not meet.
        routes: The tree of each chunk.
        chunk_bytes: Size of a chunk.
    """

    def __init__(self, wires: RankNetwork, routes: Routes, chunk_bytes: int) -> None:
        self._time_ps = {pair: wires.time_ps(pair, chunk_bytes) for pair in wires.ways}
        self._onward: dict[tuple[int, int], list[int]] = {}
        for chunk, tree in routes.items():
            for dst, src in tree.items():
                self._onward.setdefault((chunk, src), []).append(dst)
        self._rest: dict[tuple[int, int], int] = {}
        self._ready: dict[Pair, list[tuple[int, int, int]]] = {}
        self._busy: set[Pair] = set()
        self.ends: list[tuple[int, int, int, int]] = []  # time, chunk, src, dst: a heap
        self.transfers: list[Timed] = []

    def _rest_ps(self, chunk: int, rank: int) -> int:
        """Return the time of a chunk's longest way on from a rank."""
        if (chunk, rank) not in self._rest:
            onward = self._onward.get((chunk, rank), ())
            times = [self._time_ps[rank, b] + self._rest_ps(chunk, b) for b in onward]
            self._rest[chunk, rank] = max(times, default=0)
        return self._rest[chunk, rank]

    def arrive(self, chunk: int, rank: int, now_ps: int) -> list[Pair]:
        """Have a chunk be ready at a rank; return the links that want it."""
        pairs = [(rank, b) for b in self._onward.get((chunk, rank), ())]
        for pair in pairs:
            urgency = -self._rest_ps(chunk, pair[1])
            heappush(self._ready.setdefault(pair, []), (urgency, now_ps, chunk))
        return pairs

    def take(self, pair: Pair, now_ps: int) -> None:
        """Start the most urgent chunk that is ready, if the link is free."""
        if pair in self._busy or not self._ready.get(pair):
            return
        chunk, end_ps = heappop(self._ready[pair])[2], now_ps + self._time_ps[pair]
        self._busy.add(pair)
        self.transfers.append(Timed(now_ps, end_ps, *pair, chunk))
        heappush(self.ends, (end_ps, chunk, *pair))

    def end(self, now_ps: int) -> list[Pair]:
        """End what ends now; return the links that may start something."""
        touched: dict[Pair, None] = {}
        while self.ends and self.ends[0][0] == now_ps:
            _, chunk, src, dst = heappop(self.ends)
            self._busy.remove((src, dst))
            touched[src, dst] = None
            touched.update(dict.fromkeys(self.arrive(chunk, dst, now_ps)))
        return list(touched)


def ordered(wires: RankNetwork, routes: Routes, chunks: int, chunk_bytes: int) -> list[Timed]:
    """Return all transfers, each link taking one ready chunk after the other.

    A message keeps its link busy from its first bit to its last one, delay included.
    """
    links = _Links(wires, routes, chunk_bytes)
    first = [pair for chunk in routes for pair in links.arrive(chunk, chunk // chunks, 0)]
    for pair in dict.fromkeys(first):
        links.take(pair, 0)
    while links.ends:
        now_ps = links.ends[0][0]
        for pair in links.end(now_ps):
            links.take(pair, now_ps)
    return links.transfers
