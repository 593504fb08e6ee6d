"""An opaque network: messages between ranks can be timed, and nothing else is known.

Times are those of the wires, with wires that several messages pass shared evenly. Callers see
times only, as on machines that are rented.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ringleaf.collectives.synthesis.relays import relayed
from ringleaf.collectives.wires import Pair, RankNetwork
from ringleaf.core.units import PS_PER_S

Probe = Callable[[Sequence[Pair], int], list[int]]
"""Sends messages of some bytes between pairs, all at once; returns the time of each in ps."""

SMALL_BYTES, LARGE_BYTES = 64, 1 << 20


def probe_of(wires: RankNetwork) -> Probe:
    """Return the way to time messages on a network."""
    ways = relayed(wires)

    def probe(pairs: Sequence[Pair], size_bytes: int) -> list[int]:
        load = Counter(wire for pair in pairs for wire in ways[pair])
        times = []
        for pair in pairs:
            rate_bps = min(wires.wires[wire].rate_bps / load[wire] for wire in ways[pair])
            delay_ps = sum(wires.wires[wire].delay_ps for wire in ways[pair])
            times.append(delay_ps + round(size_bytes * 8 * PS_PER_S / rate_bps))
        return times

    return probe


@dataclass(frozen=True, slots=True)
class FittedTimes:
    """The time of messages by their size: so much for each, and so much for a byte."""

    message_ps: float
    byte_ps: float

    @classmethod
    def measured(cls, probe: Probe, pairs: Sequence[Pair]) -> FittedTimes:
        """Return the line through the slowest of messages at once, small ones and large ones."""
        small, large = (max(probe(pairs, size)) for size in (SMALL_BYTES, LARGE_BYTES))
        byte_ps = (large - small) / (LARGE_BYTES - SMALL_BYTES)
        return cls(small - SMALL_BYTES * byte_ps, byte_ps)

    def time_ps(self, size_bytes: float) -> float:
        """Return the time of a message."""
        return self.message_ps + self.byte_ps * size_bytes


def latencies(probe: Probe, ranks: int) -> dict[Pair, int]:
    """Return the time of a small message between each two ranks, the slower way, alone."""
    return {
        (a, b): max(probe([(a, b)], SMALL_BYTES)[0], probe([(b, a)], SMALL_BYTES)[0])
        for a in range(ranks)
        for b in range(a + 1, ranks)
    }


def groupings(latency: dict[Pair, int], ranks: int) -> list[list[list[int]]]:
    """Return groups of near ranks for each gap in the latencies, the widest gap first.

    Ranks are in one group if a chain of latencies below the gap joins them. There are at least
    two groups, and at most half as many as ranks.
    """
    times = sorted(set(latency.values()))
    gaps = sorted(pairwise(times), key=lambda pair: pair[0] / pair[1])
    partitions: list[list[list[int]]] = []
    for below, _ in gaps:
        name = list(range(ranks))
        for (a, b), time_ps in latency.items():
            if time_ps <= below and name[a] != name[b]:
                old, new = max(name[a], name[b]), min(name[a], name[b])
                name = [new if each == old else each for each in name]
        groups = [[rank for rank in range(ranks) if name[rank] == one] for one in sorted({*name})]
        if 2 <= len(groups) <= ranks // 2 and groups not in partitions:
            partitions.append(groups)
    return partitions
