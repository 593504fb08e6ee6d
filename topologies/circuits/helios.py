"""Helios: counters, natural demand, and a bipartite matching for each circuit switch.

Source:
    Farrington et al., "Helios: A Hybrid Electrical/Optical Switch Architecture for Modular Data
    Centers", SIGCOMM 2010.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

from ringleaf.topologies.switching.hedera import alike, estimate
from ringleaf.topologies.switching.matching import bipartite
from ringleaf.topologies.switching.plan import CircuitDemand, Circuits, Pair
from ringleaf.topologies.switching.settings import CircuitController


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Give circuits to the racks that would send most to one another if NICs were the only limit.

    Circuits are one-way, as a circuit switch's are: a rack may send to one and receive from
    another.
    """
    del now_ps
    left = between_racks(demand)
    ports: dict[Pair, int] = {}
    for _ in range(demand.optical):
        # A circuit carries no more than its rate, so a weight beyond that is worth no more.
        weights = {pair: min(rest, Fraction(1)) for pair, rest in left.items()}
        for pair in bipartite(weights):
            ports[pair] = ports.get(pair, 0) + 1
            left[pair] -= weights[pair]
    return Circuits(dict(sorted(ports.items())))


def between_racks(demand: CircuitDemand) -> dict[Pair, Fraction]:
    """Return the natural demand of each two racks, in rates of a NIC."""
    shares = estimate(demand.flows)
    total: dict[Pair, Fraction] = defaultdict(Fraction)
    for share, flows in alike(range(len(shares)), shares):
        ends = (demand.flows[flow] for flow in flows)
        counts = Counter((demand.rack_of[src], demand.rack_of[dst]) for src, dst in ends)
        for pair, count in counts.items():
            if pair[0] != pair[1]:
                total[pair] += count * share
    return dict(total)


CONTROLLER = CircuitController(
    "counters, Hedera's estimate, a matching per circuit switch; the rest by packets",
    decide,
    needs_core=True,
)
