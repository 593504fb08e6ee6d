"""Wavelengths on the segments of a ring, which are used again where ways do not overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from ringleaf.topologies.switching.plan import Pair


def segments(racks: int, pair: Pair) -> list[int]:
    """Return the segments from one rack to another, in the ring's only direction.

    Segment i leads from rack i to the next one.
    """
    src, dst = pair
    return [(src + step) % racks for step in range((dst - src) % racks)]


def fits(racks: int, counts: Mapping[Pair, int], most: int) -> bool:
    """Return whether no segment carries more than `most` wavelengths."""
    used = Counter(
        segment
        for pair, count in counts.items()
        for segment in segments(racks, pair)
        for _ in range(count)
    )
    return max(used.values(), default=0) <= most


def heaviest_first(
    weights: Mapping[Pair, int],
    racks: int,
    *,
    most: int,
    degree: int,
    fixed: Sequence[Pair] = (),
) -> dict[Pair, int]:
    """Return wavelengths for the largest demands, which are halved where they get one.

    Args:
        weights: Demand by ordered pair of racks.
        racks: Racks on the ring.
        most: Wavelengths of a segment.
        degree: Wavelengths that a rack sends, and receives, at most.
        fixed: Pairs that have one before.

    Source:
        Khani et al., "SiP-ML: High-Bandwidth Optical Network Interconnects for Machine Learning
        Training", SIGCOMM 2021; its release serves demands in this order.
    """
    left = {pair: Fraction(weight) for pair, weight in weights.items() if weight > 0}
    room = Counter(dict.fromkeys(range(racks), most))
    out, into = (Counter(dict.fromkeys(range(racks), degree)) for _ in range(2))
    counts: Counter[Pair] = Counter()

    def can_have(pair: Pair) -> bool:
        return (
            out[pair[0]] > 0
            and into[pair[1]] > 0
            and all(room[segment] > 0 for segment in segments(racks, pair))
        )

    def take(pair: Pair) -> None:
        counts[pair] += 1
        out[pair[0]] -= 1
        into[pair[1]] -= 1
        room.subtract(segments(racks, pair))

    for pair in fixed:
        take(pair)
    while open_ := [pair for pair in left if can_have(pair)]:
        best = min(open_, key=lambda pair: (-left[pair], pair))
        take(best)
        left[best] /= 2
    return dict(sorted(counts.items()))
