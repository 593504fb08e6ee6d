"""Maximum flows between ranks, by shortest augmenting paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ringleaf.collectives.wires import Pair

Capacity = Mapping[Pair, int]


def max_flow(capacity: Capacity, sources: Iterable[int], target: int, enough: int) -> int:
    """Return the flow from some ranks together to another one, or `enough` if there is as much.

    Source:
        Edmonds and Karp, JACM 19(2), 1972.
    """
    start = dict.fromkeys(sources)
    if target in start:
        return enough
    left = dict(capacity)
    peers: dict[int, dict[int, None]] = {}
    for a, b in capacity:
        peers.setdefault(a, {})[b] = None
        peers.setdefault(b, {})[a] = None
    flow = 0
    while flow < enough:
        path = _path(left, peers, start, target)
        if not path:
            break
        push = min([enough - flow, *(left[pair] for pair in path)])
        for a, b in path:
            left[a, b] -= push
            left[b, a] = left.get((b, a), 0) + push
        flow += push
    return flow


def _path(
    left: Capacity, peers: Mapping[int, Iterable[int]], start: Mapping[int, None], target: int
) -> list[Pair]:
    """Return the links of a shortest path that has room, from its end; none: there is none."""
    before: dict[int, int] = {}
    frontier = list(start)
    for node in frontier:
        for peer in peers.get(node, ()):
            if peer not in before and peer not in start and left.get((node, peer), 0) > 0:
                before[peer] = node
                frontier.append(peer)
        if target in before:
            break
    path = []
    node = target
    while node in before:
        path.append((before[node], node))
        node = before[node]
    return path


def broadcast_rate(capacity: Capacity, ranks: int, root: int) -> int:
    """Return the most that all ranks can be sent by a root at once: their least maximum flow.

    Source:
        Edmonds, "Edge-disjoint branchings", 1973: as much can be packed in spanning trees.
    """
    most = sum(amount for pair, amount in capacity.items() if pair[0] == root)
    for rank in range(ranks):
        if rank != root:
            most = max_flow(capacity, (root,), rank, most)
    return most
