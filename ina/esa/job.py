"""A job of ESA: ATP's agents, and ESA's entities."""

from __future__ import annotations

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.ina.atp.job import join_as
from ringleaf.ina.esa.control import entities
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.systems import JobRequest
from ringleaf.ina.window_registry import AIMD


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job of at most 64 racks of 64 workers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return join_as("esa", AIMD, graph, store, request, entities)
