"""Rings of one group at several strides: which to take, and how to get from one to another.

A ring of stride p joins each of g racks to the p-th after it; it is one ring if p and g have no
common factor. An allreduce may go over any of them, as all orders of ranks are alike to it.

Source:
    Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for
    Distributed Training Jobs", NSDI 2023: TotientPerms, SelectPermutations, coin-change routing.
    Its release (FlexFlow, `src/runtime/network.cc`) chooses strides in another way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import gcd

from ringleaf.core.units import format_count
from ringleaf.errors import TopologyError
from ringleaf.topologies.switching.plan import Circuits, from_links


def candidates(group: int) -> list[int]:
    """Return the strides of single rings over a group: those coprime to its size."""
    return [stride for stride in range(1, group) if gcd(stride, group) == 1]


def by_paper(group: int, count: int) -> list[int]:
    """Return nearly geometric strides: from 1 on, the nearest to g^(1/count) times the last one.

    Of two that are as near, the lower one is taken.

    Raises:
        TopologyError: If there are fewer candidates.
    """
    free = _enough(group, count)
    factor = group ** (1 / count)
    chosen = [free.pop(0)]
    while len(chosen) < count:
        target = chosen[-1] * factor
        best = min(free, key=lambda stride: (abs(stride - target), stride))
        free.remove(best)
        chosen.append(best)
    return chosen


def by_release(group: int, count: int) -> list[int]:
    """Return the release's strides for one-way links: a geometric row from first to last.

    Raises:
        TopologyError: If there are fewer candidates.
    """
    return _row(group, count, max(count - 1, 1))


def by_release_both_ways(group: int, count: int) -> list[int]:
    """Return the release's strides for links both ways, of which each takes two ports.

    Raises:
        TopologyError: If there are fewer candidates.
    """
    return _row(group, count, count)


Rule = Callable[[int, int], list[int]]
PAPER, RELEASE = "paper", "release"
RULES: Mapping[str, Rule] = {PAPER: by_paper, RELEASE: by_release}
"""Rules that choose the strides of a number of rings."""


def rings_at(racks: int, strides: Sequence[int]) -> Circuits:
    """Return one-way rings of racks at some strides, and the ways over them, by coin change."""
    links = [(rack, (rack + step) % racks) for step in strides for rack in range(racks)]
    ways = coins(racks, strides)
    following = {
        (rack, (rack + offset) % racks): (rack + ways[offset][0]) % racks
        for rack in range(racks)
        for offset in range(1, racks)
    }
    rings = {tuple(range(racks)): tuple(strides)}
    return Circuits(from_links(links).ports, following=following, rings=rings)


def _row(group: int, count: int, parts: int) -> list[int]:
    """Return candidates from each member of a geometric row on, the next one that is free."""
    free = _enough(group, count)
    ratio = (free[-1] / free[0]) ** (1 / parts)
    chosen = []
    for number in range(count):
        # A power that should be the last candidate may come out a little above it.
        place = min(bisect_left(free, free_target(ratio, number)), len(free) - 1)
        chosen.append(free.pop(place))
    return chosen


def free_target(ratio: float, number: int) -> float:
    """Return a member of a geometric row from 1, without the error of floating point."""
    return round(ratio**number, 9)


def _enough(group: int, count: int) -> list[int]:
    strides = candidates(group)
    if not 1 <= count <= len(strides):
        most = format_count(len(strides), "ring")
        raise TopologyError(f"strides: a group of {group} has at most {most}, got {count}")
    return strides


def coins(group: int, strides: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the fewest strides that lead to each offset, modulo the size of the group.

    Those of equal number are tried in the order given, so ways are the same at every rack.
    Negative strides go the other way.

    Raises:
        TopologyError: If an offset can't be reached.
    """
    ways: dict[int, tuple[int, ...]] = {0: ()}
    waiting = [0]
    for offset in waiting:  # it grows
        for stride in strides:
            after = (offset + stride) % group
            if after not in ways:
                ways[after] = (*ways[offset], stride)
                waiting.append(after)
    if len(ways) < group:
        racks = format_count(group, "rack")
        raise TopologyError(f"coins: strides {list(strides)} do not reach all of {racks}")
    return [ways[offset] for offset in range(group)]


def diameter(group: int, strides: Sequence[int]) -> int:
    """Return the most strides between two of a group."""
    return max(len(each) for each in coins(group, strides))


def mean_hops(group: int, strides: Sequence[int]) -> Fraction:
    """Return the mean number of strides between two different ones of a group."""
    return Fraction(sum(len(each) for each in coins(group, strides)), group - 1)
