"""TopoOpt: rings at several strides for allreduces, matchings for the rest, once per job.

Source:
    Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for
    Distributed Training Jobs", NSDI 2023.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

from ringleaf.topologies.switching.matching import discounted
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    Pair,
    from_links,
    unordered,
)
from ringleaf.topologies.switching.settings import CircuitController
from ringleaf.topologies.switching.strides import by_paper, candidates, rings_at

Groups = Mapping[tuple[int, ...], int]
"""Bytes of allreduces by their racks."""


def rings_of(degree: int, reduced: int, whole: int) -> int:
    """Return the ports of a rack that are for rings: at least one, and as its share of bytes says.

    Args:
        degree: Ports of a rack.
        reduced: Bytes of allreduces.
        whole: Bytes of everything.
    """
    return min(max(1, ceil(Fraction(degree * reduced, max(whole, 1)))), degree)


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Join racks in rings at nearly geometric strides, and pairs of racks by matchings.

    The rings' ways are those with the fewest strides (coin change), where all racks are in them
    and no matching is shorter. If some rack would not reach another, a ring of all comes first, as
    in the release.
    """
    del now_ps
    everyone = tuple(range(demand.racks))
    groups = demand.planned.free or {everyone: 0}
    reduced = sum(groups.values())
    count = rings_of(demand.optical, reduced, reduced + int(demand.fixed.sum()))
    if list(groups) == [everyone] and count == demand.optical:
        return rings_at(demand.racks, by_paper(demand.racks, count))
    circuits = _joined(demand, groups, count, [])
    if not demand.has_core and not _reach_one_another(demand.racks, circuits.ports):
        return _joined(demand, groups, count, _ring(everyone, 1))
    return circuits


def _joined(demand: CircuitDemand, groups: Groups, count: int, first: Sequence[Pair]) -> Circuits:
    """Return one-way circuits: the first ones, rings of each group, and matchings.

    A group's rings are its share of all bytes that its racks reduce; and at least one, for which a
    rack's other groups leave it a port.
    """
    links, rings_by_group = list(first), dict[tuple[int, ...], tuple[int, ...]]()
    left = [demand.optical - sum(src == rack for src, _ in links) for rack in range(demand.racks)]
    own = [
        sum(size for group, size in groups.items() if rack in group) for rack in range(len(left))
    ]
    others = Counter(rack for group in groups for rack in group)  # that have no rings yet
    for group, size in sorted(groups.items(), key=lambda each: (-each[1], each[0])):
        others.subtract(group)
        most = max(own[rack] for rack in group)
        share = ceil(Fraction(count * size, most)) if most else count
        spare = min(left[rack] - others[rack] for rack in group)
        least = min(1, *(left[rack] for rack in group))
        rings = max(min(share, spare, len(candidates(len(group)))), least)
        if rings:
            rings_by_group[group] = tuple(by_paper(len(group), rings))
            for stride in rings_by_group[group]:
                links += _ring(group, stride)
        for rack in group:
            left[rack] -= rings
    weights = {pair: Fraction(size) for pair, size in unordered(demand.fixed).items()}
    for _ in range(max(left)):
        served = {pair: size for pair, size in weights.items() if min(left[end] for end in pair)}
        [chosen], halved = discounted(served, 1)
        weights |= halved
        for a, b in chosen:
            links += [(a, b), (b, a)]
            left[a] -= 1
            left[b] -= 1
    return replace(from_links(links), rings=rings_by_group)


def _ring(group: Sequence[int], stride: int) -> list[Pair]:
    """Return the links of a ring of some racks."""
    return [(rack, group[(place + stride) % len(group)]) for place, rack in enumerate(group)]


def _reach_one_another(racks: int, links: Collection[Pair]) -> bool:
    """Whether a way leads from each rack to each other one."""
    return all(len(_reached(links, end)) == racks for end in (0, 1))


def _reached(links: Collection[Pair], end: int) -> set[int]:
    """Return what is reached from rack 0 along links, or against them (end 1)."""
    after: dict[int, list[int]] = {}
    for link in links:
        after.setdefault(link[end], []).append(link[1 - end])
    seen, waiting = {0}, [0]
    while waiting:
        new = [rack for rack in after.get(waiting.pop(), ()) if rack not in seen]
        seen.update(new)
        waiting += new
    return seen


CONTROLLER = CircuitController(
    "rings at several strides and matchings, once before a job starts; racks forward",
    decide,
    once=True,
)
