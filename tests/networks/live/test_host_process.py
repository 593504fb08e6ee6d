"""A live host's process, without its interface."""

from __future__ import annotations

import numpy as np
import pytest

import ringleaf.networks.virtual.loop as loop
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.endpoints.execution import Execution
from ringleaf.networks.live.host_process import Host
from ringleaf.networks.live.hosts import LiveHosts
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.registry import build


class Unconnected(Host):
    """A host that has agents, and no interface."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution


def test_what_a_system_refuses_ends_the_host() -> None:
    """A vote is of +1 and -1; who refuses another element is called by compiled code."""
    graph = build("leafspine,leaves=1,spines=1,hosts=2,rate=1G")
    crew = LiveHosts(graph, NetworkOptions(system=SYSTEMS["vote"]))
    schedule = ALGORITHMS["switchml"].build(2, size_bytes=64)
    tensors = crew.arrays(16, schedule=schedule)
    for tensor in tensors:
        tensor[:] = np.float32(0.5)
    execution = Execution(crew.endpoints, crew.store, wake=loop.hold, networks=[0])
    with crew.endpoints.operation(schedule, tensors) as operation:
        execution.start(operation, 0)
        with pytest.raises(ConfigError, match=r"\+1 and -1, got 0.5"):
            Unconnected(execution).dispatch()
