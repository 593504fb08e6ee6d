"""Circuits that change inside a collective, for the steps that come.

Source:
    SWOT, arXiv 2510.19322: reconfiguration overlapped with a collective's transmission.
"""

from __future__ import annotations

import numpy as np

from ringleaf.topologies.switching.matching import heaviest_first
from ringleaf.topologies.switching.plan import (
    CircuitDemand,
    Circuits,
    Matrix,
    Pair,
    as_weights,
    from_links,
)
from ringleaf.topologies.switching.settings import CircuitController


def decide(demand: CircuitDemand, now_ps: int) -> Circuits:
    """Set up circuits for the first step that is not over, and with spare ports for later ones.

    A circuit that an earlier step needs is not taken away for a later one.
    """
    del now_ps
    links: list[Pair] = []
    for left in remaining(demand) if demand.planned.steps else [demand.waiting]:
        links = heaviest_first(as_weights(left), demand.optical, links)
    return from_links(links)


def remaining(demand: CircuitDemand) -> list[Matrix]:
    """Return what is left of each step that is not over; earlier steps' bytes come first."""
    left, done = [], demand.done.copy()
    for step in demand.planned.steps:
        served = np.minimum(step, done)
        done = done - served
        if (step > served).any():
            left.append(step - served)
    return left


CONTROLLER = CircuitController(
    "circuits for a collective's coming steps, changed inside it",
    decide,
    {"period": "5us", "dead": "1us"},
    needs_core=True,
    inside=True,
)
