"""TopoOpt as released: all ports for rings, whose strides are a geometric row.

Source:
    Wang et al., "TopoOpt", NSDI 2023; the release, FlexFlow's `src/runtime/network.cc`, where it
    differs from the paper.
"""

from __future__ import annotations

from ringleaf.topologies.switching.plan import CircuitDemand, Circuits
from ringleaf.topologies.switching.settings import CircuitController
from ringleaf.topologies.switching.strides import RELEASE, by_release, rings_at


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Join racks in as many rings as they have ports, from the least stride to the greatest."""
    del now_ps
    return rings_at(demand.racks, by_release(demand.racks, demand.optical))


CONTROLLER = CircuitController(
    "as released: rings alone, at strides of a geometric row; once, racks forward",
    decide,
    once=True,
    strides=RELEASE,
)
