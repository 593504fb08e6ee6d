"""OSA: all traffic over circuits, whose pairs and rates follow demand.

Source:
    Chen et al., "OSA: An Optical Switching Architecture for Data Center Networks with
    Unprecedented Flexibility", NSDI 2012.
"""

from __future__ import annotations

from fractions import Fraction

from ringleaf.topologies.switching.colouring import colours, wavelengths
from ringleaf.topologies.switching.matching import connected, several
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    as_weights,
    both_ways,
    unordered,
)
from ringleaf.topologies.switching.settings import CircuitController

PER_PORT = 8
"""Wavelengths of a rack for each of its ports, which it divides among them."""


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Join racks with most demand, all of them, and give links wavelengths by their demand.

    Each rack has as many neighbours as ports. Wavelengths are colours of links, so that a rack
    sends and receives each of them once.
    """
    del now_ps
    bytes_ = demand.waiting + demand.delivered
    weights = unordered(bytes_)
    pairs = connected(several(weights, demand.racks, demand.optical), demand.racks, weights)
    ports = both_ways(pairs).ports
    counts = wavelengths(ports, as_weights(bytes_), PER_PORT * demand.optical)
    assert all(colours(counts).values()), "each link has a wavelength"
    shares = {pair: Fraction(count, PER_PORT) for pair, count in counts.items()}
    return Circuits(ports, shares)


CONTROLLER = CircuitController(
    "k matchings of racks, connected by exchanges, wavelengths by demand; over several circuits",
    decide,
    {"senders": "pause"},
)
