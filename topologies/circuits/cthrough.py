"""c-Through: hosts' queues as demand, and a matching of racks by Edmonds' algorithm.

Source:
    Wang et al., "c-Through: Part-time Optics in Data Centers", SIGCOMM 2010.
"""

from __future__ import annotations

from fractions import Fraction

from ringleaf.topologies.switching.matching import perfect
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    Pair,
    both_ways,
    unordered,
)
from ringleaf.topologies.switching.settings import CircuitController


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Join the racks whose hosts have most bytes waiting for one another.

    Circuits lead both ways. A rack that has more ports gets as many matchings; what a matching has
    served counts half for the next, as a circuit takes half of what two would carry.
    """
    del now_ps
    weights = {pair: Fraction(size) for pair, size in unordered(demand.waiting).items()}
    chosen: list[Pair] = []
    for _ in range(demand.optical):
        pairs = [pair for pair in perfect(weights, range(demand.racks)) if weights.get(pair)]
        chosen += pairs
        weights |= {pair: weights[pair] / 2 for pair in pairs}
    return both_ways(chosen)


CONTROLLER = CircuitController(
    "hosts' queues, Edmonds' matching of racks; the rest by packets",
    decide,
    needs_core=True,
)
