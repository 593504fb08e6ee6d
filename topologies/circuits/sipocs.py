"""SiP-OCS of SiP-ML: circuits of a job, set up once before it starts.

Source:
    Khani et al., "SiP-ML: High-Bandwidth Optical Network Interconnects for Machine Learning
    Training", SIGCOMM 2021: SiP-OCS; the heuristic is that of ffsim-opera, its release.
"""

from __future__ import annotations

from ringleaf.topologies.switching.matching import heaviest_first
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    as_weights,
    from_links,
    ring,
)
from ringleaf.topologies.switching.settings import CircuitController


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Give one-way circuits to the largest demands of the job, by the release's heuristic.

    Where there are no packet switches, a ring comes first, so that all racks reach one another.
    """
    del now_ps
    fixed = [] if demand.has_core else ring(demand.racks)
    return from_links(heaviest_first(as_weights(demand.whole), demand.optical, fixed))


CONTROLLER = CircuitController(
    "the job's largest demands, once before it starts",
    decide,
    once=True,
)
