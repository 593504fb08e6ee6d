"""Colours of links such that no rack sends, or receives, two of one colour: wavelengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ringleaf.topologies.switching.plan import Pair


def colours(counts: Mapping[Pair, int]) -> dict[Pair, list[int]]:
    """Return the colours of each pair's links, of which there are as many as the highest degree.

    Senders and receivers are two sides, so a path of two colours never comes back to where it
    began, and its colours can be exchanged.

    Args:
        counts: The number of links of each pair, (sender, receiver).

    Source:
        König, "Über Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre", Math.
        Ann. 77, 1916.
    """
    most = highest_degree(counts)
    at: dict[tuple[int, int], dict[int, Pair]] = {}  # side and rack -> colour -> pair
    chosen: dict[Pair, list[int]] = {pair: [] for pair in counts}
    for pair, count in sorted(counts.items()):
        for _ in range(count):
            here, there = at.setdefault((0, pair[0]), {}), at.setdefault((1, pair[1]), {})
            free = next(colour for colour in range(most) if colour not in here)
            beyond = next(colour for colour in range(most) if colour not in there)
            if free != beyond:
                _exchange(at, chosen, (1, pair[1]), free, beyond)
            here[free] = there[free] = pair
            chosen[pair].append(free)
    return {pair: sorted(each) for pair, each in chosen.items()}


def _exchange(
    at: dict[tuple[int, int], dict[int, Pair]],
    chosen: dict[Pair, list[int]],
    end: tuple[int, int],
    one: int,
    other: int,
) -> None:
    """Exchange two colours on the path that begins with the first of them at a rack's side."""
    path: list[tuple[Pair, int]] = []
    colour = one
    while colour in at.get(end, {}):
        pair = at[end][colour]
        path.append((pair, colour))
        end = (1 - end[0], pair[1 - end[0]])
        colour = other if colour == one else one
    for pair, old in path:
        for side in (0, 1):
            if at[side, pair[side]].get(old) == pair:
                del at[side, pair[side]][old]
        chosen[pair].remove(old)
    for pair, old in path:
        new = other if old == one else one
        at[0, pair[0]][new] = at[1, pair[1]][new] = pair
        chosen[pair].append(new)


def highest_degree(counts: Mapping[Pair, int]) -> int:
    """Return the most links that leave a rack, or reach it."""
    degrees: Counter[tuple[int, int]] = Counter()
    for pair, count in counts.items():
        degrees[0, pair[0]] += count
        degrees[1, pair[1]] += count
    return max(degrees.values(), default=0)


def wavelengths(
    pairs: Mapping[Pair, int], weights: Mapping[Pair, int], most: int
) -> dict[Pair, int]:
    """Return the wavelengths of each pair's link: one, and more for those with more demand.

    Each rack sends and receives `most` at the most. The next one goes to the link with the most
    demand per wavelength, as long as both of its ends have some left.

    Args:
        pairs: Links, each in both directions.
        weights: Demand by direction; the greater of a link's two counts.
        most: Wavelengths of a rack.
    """
    links = sorted({(min(pair), max(pair)) for pair in pairs})
    need = {pair: max(weights.get(pair, 0), weights.get(pair[::-1], 0)) for pair in links}
    counts = dict.fromkeys(links, 1)
    left = Counter({rack: most for pair in links for rack in pair})
    for pair in links:
        left.subtract(pair)
    while True:
        open_ = [pair for pair in links if min(left[pair[0]], left[pair[1]]) > 0]
        if not open_:
            break
        best = max(open_, key=lambda pair: (need[pair] / counts[pair], -counts[pair]))
        counts[best] += 1
        left.subtract(best)
    return {each: count for pair, count in counts.items() for each in (pair, pair[::-1])}
