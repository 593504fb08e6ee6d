"""A job of SHARP on Quantum-2."""

from __future__ import annotations

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.ina.sharp import job
from ringleaf.ina.systems import JobRequest


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> job.SharpJob:
    """Make a job, which may stream if no earlier one needs the same ports.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return job.join(graph, store, request, job.QUANTUM_2)
