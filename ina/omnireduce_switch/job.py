"""A job of OmniReduce in switches: SwitchML's, with words for each slot's next block."""

from __future__ import annotations

import networkx as nx

import ringleaf.ina.omnireduce_switch.worker as worker
from ringleaf.core.arena import Store
from ringleaf.ina.jobs import WorkersJob
from ringleaf.ina.omnireduce_switch.wire import FIRST_UDP_PORT, HEADER_BYTES
from ringleaf.ina.switchml.job import SwitchMLVariant, join_as
from ringleaf.ina.systems import JobRequest

KIND = SwitchMLVariant(
    "omnireduce-switch",
    worker,
    worker.begin_tensor,
    first_port=FIRST_UDP_PORT,
    header_bytes=HEADER_BYTES,
    extend=worker.make_extras,
)


def join(graph: nx.Graph[str], store: Store, request: JobRequest) -> WorkersJob:
    """Make a job, over the tree of least depth; it needs no servers.

    Raises:
        ConfigError: If it does not fit the switches.
    """
    return join_as(KIND, graph, store, request)
