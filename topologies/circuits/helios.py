"""Helios: counters, natural demand, and a bipartite matching for each circuit switch.

Source:
    Farrington et al., "Helios: A Hybrid Electrical/Optical Switch Architecture for Modular Data
    Centers", SIGCOMM 2010.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm

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
    return Circuits(dict(_ports(tuple(demand.flows), tuple(demand.rack_of), demand.optical)))


@lru_cache(maxsize=64)
def _ports(
    flows: tuple[Pair, ...], rack_of: tuple[int, ...], optical: int
) -> tuple[tuple[Pair, int], ...]:
    """Return the ports of each pair of racks; a collective asks for the same ones again."""
    natural = between_racks(flows, rack_of)
    # Shares as whole numbers of their common part: a matching takes longer with fractions.
    circuit = lcm(*(rate.denominator for rate in natural.values()))
    left = {pair: int(rate * circuit) for pair, rate in natural.items()}
    ports: Counter[Pair] = Counter()
    for _ in range(optical):
        # A circuit carries no more than its rate, so a weight beyond that is worth no more.
        weights = {pair: min(rest, circuit) for pair, rest in left.items()}
        for pair in bipartite(weights):
            ports[pair] += 1
            left[pair] -= weights[pair]
    return tuple(sorted(ports.items()))


def between_racks(flows: Sequence[Pair], rack_of: Sequence[int]) -> dict[Pair, Fraction]:
    """Return the natural demand of each two racks, in rates of a NIC."""
    shares = estimate(flows)
    total: dict[Pair, Fraction] = defaultdict(Fraction)
    for share, alike_flows in alike(range(len(shares)), shares):
        ends = (flows[flow] for flow in alike_flows)
        counts = Counter((rack_of[src], rack_of[dst]) for src, dst in ends)
        for pair, count in counts.items():
            if pair[0] != pair[1]:
                total[pair] += count * share
    return dict(total)


CONTROLLER = CircuitController(
    "counters, Hedera's estimate, a matching per circuit switch; the rest by packets",
    decide,
    needs_core=True,
)
