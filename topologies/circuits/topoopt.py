"""TopoOpt: rings at several strides for allreduce, matchings for the rest, once per job.

Source:
    Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for
    Distributed Training Jobs", NSDI 2023.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from ringleaf.topologies.switching.matching import discounted
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    Pair,
    both_ways,
    from_links,
    unordered,
)
from ringleaf.topologies.switching.settings import CircuitController
from ringleaf.topologies.switching.strides import by_paper, coins


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

    The rings' ways are those with the fewest strides (coin change), where no matching is shorter.
    """
    del now_ps
    whole = int(demand.whole.sum())
    count = rings_of(demand.optical, whole if demand.planned.is_free else 0, whole)
    strides = by_paper(demand.racks, count)
    links = [
        (rack, (rack + step) % demand.racks) for step in strides for rack in range(demand.racks)
    ]
    others = demand.optical - count
    if not others:
        return Circuits(from_links(links).ports, following=next_racks(demand.racks, strides))
    rounds, _ = discounted(unordered(demand.whole), others)
    extra = both_ways([pair for each in rounds for pair in each])
    return from_links([*links, *(pair for pair, n in extra.ports.items() for _ in range(n))])


def next_racks(racks: int, strides: list[int]) -> dict[Pair, int]:
    """Return the rack that comes next on the way from one to another, by coin change."""
    ways = coins(racks, strides)
    return {
        (rack, (rack + offset) % racks): (rack + ways[offset][0]) % racks
        for rack in range(racks)
        for offset in range(1, racks)
    }


CONTROLLER = CircuitController(
    "rings at several strides and matchings, once before a job starts; racks forward",
    decide,
    once=True,
)
