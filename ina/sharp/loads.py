"""The least bytes that SHARP sends over each link, in a tree that may stream."""

from __future__ import annotations

from dataclasses import replace

from ringleaf.ina.loads import Aggregation, Demand
from ringleaf.ina.switchml import loads
from ringleaf.topologies.ways import TopologyRoutes


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return SHARP's demand: SwitchML's, without a round for exponents."""
    return loads.demand(ways, replace(what, is_float=False))
