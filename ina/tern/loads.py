"""The least bytes that ternary sums send over each link."""

from __future__ import annotations

from ringleaf.ina.loads import Aggregation, Demand
from ringleaf.ina.tern.wire import ELEMENTS, SUM_WORDS, VALUES_AT, WORDS
from ringleaf.ina.vote.loads import Form, demand_of
from ringleaf.topologies.ways import TopologyRoutes

FORM = Form(ELEMENTS, VALUES_AT, up_words=WORDS, sum_words=SUM_WORDS, down_words=SUM_WORDS)


def demand(ways: TopologyRoutes, what: Aggregation) -> Demand:
    """Return the demand: elements from hosts, and sums between switches and to all."""
    return demand_of(FORM, ways, what)
