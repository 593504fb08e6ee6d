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
    both_ways,
    from_links,
    unordered,
)
from ringleaf.topologies.switching.settings import CircuitController
from ringleaf.topologies.switching.strides import by_paper, rings_at


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
    rings = rings_at(demand.racks, by_paper(demand.racks, count))
    others = demand.optical - count
    if not others:
        return rings
    rounds, _ = discounted(unordered(demand.whole), others)
    extra = both_ways([pair for each in rounds for pair in each])
    every = (*rings.ports.items(), *extra.ports.items())
    return from_links([pair for pair, number in every for _ in range(number)])


CONTROLLER = CircuitController(
    "rings at several strides and matchings, once before a job starts; racks forward",
    decide,
    once=True,
)
