"""c-Through: hosts' queues as demand, and a matching of racks by Edmonds' algorithm."""

from __future__ import annotations

from ringleaf.topologies.switching.matching import perfect
from ringleaf.topologies.switching.plan import (
    CircuitController,
    Circuits,
    Demand,
    both_ways,
    unordered,
)


def decide(demand: Demand, now_ps: int) -> Circuits:
    """Join the racks whose hosts have most bytes waiting for one another.

    Circuits lead both ways. A rack that has more ports gets as many matchings, of different pairs.
    """
    del now_ps
    weights = unordered(demand.waiting)
    chosen = []
    for _ in range(demand.optical):
        pairs = [pair for pair in perfect(weights, range(demand.racks)) if weights.get(pair)]
        chosen += pairs
        weights = {pair: weight for pair, weight in weights.items() if pair not in pairs}
    return both_ways(chosen)


CONTROLLER = CircuitController(
    "hosts' queues, Edmonds' matching of racks; the rest by packets",
    "Wang et al., 'c-Through: Part-time Optics in Data Centers', SIGCOMM 2010",
    decide,
    needs_core=True,
)
