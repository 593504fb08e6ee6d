"""Ways of all pairs: those that have none of their own go by the quickest relays."""

from __future__ import annotations

from heapq import heappop, heappush

from ringleaf.collectives.wires import Pair, RankNetwork


def relayed(wires: RankNetwork) -> dict[Pair, tuple[int, ...]]:
    """Return the wires between each two ranks: of least delay (Dijkstra), then fewest relays."""
    onward: dict[int, list[int]] = {}
    for src, dst in wires.ways:
        onward.setdefault(src, []).append(dst)
    ways = dict(wires.ways)
    for start in range(wires.ranks):
        done: set[int] = set()
        heap: list[tuple[int, int, int, tuple[int, ...]]] = [(0, 0, start, ())]
        while heap:
            delay_ps, relays, node, way = heappop(heap)
            if node in done:
                continue
            done.add(node)
            if node != start:
                ways.setdefault((start, node), way)
            for peer in onward.get(node, ()):
                if peer not in done:
                    pair = node, peer
                    after_ps = delay_ps + wires.delays_ps[pair]
                    heappush(heap, (after_ps, relays + 1, peer, way + wires.ways[pair]))
    return ways
