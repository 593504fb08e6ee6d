"""A job of A2TP: ATP's agents and entities, with A2TP's windows."""

from __future__ import annotations

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.ina.atp.job import join_as
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.systems import JobRequest

WINDOWS = "a2tp"
"""The released windows, which are taken if none are named."""


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job of at most 64 racks of 64 workers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return join_as("a2tp", WINDOWS, graph, store, request)
