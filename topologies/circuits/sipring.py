"""SiP-Ring of SiP-ML: wavelengths on a ring's segments, which follow demand.

Source:
    Khani et al., "SiP-ML: High-Bandwidth Optical Network Interconnects for Machine Learning
    Training", SIGCOMM 2021: SiP-Ring.
"""

from __future__ import annotations

from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    as_weights,
    ring,
)
from ringleaf.topologies.switching.segments import heaviest_first
from ringleaf.topologies.switching.settings import CircuitController

PER_SEGMENT = 4
"""Wavelengths of a segment for each that a rack may send."""


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Give wavelengths to the largest demands, each on all segments between two racks.

    The ring's light goes one way. Where there are no packet switches, each rack has a wavelength
    to the next one first, so that all racks reach one another.
    """
    del now_ps
    return Circuits(
        heaviest_first(
            as_weights(demand.waiting + demand.delivered),
            demand.racks,
            most=PER_SEGMENT * demand.optical,
            degree=demand.optical,
            fixed=() if demand.has_core else ring(demand.racks),
        )
    )


CONTROLLER = CircuitController(
    "wavelengths on a ring's segments by demand; senders pause while they change",
    decide,
    {"dead": "25us", "period": "100us", "senders": "pause"},
)
