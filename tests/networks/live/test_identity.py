"""The same SwitchML job in virtual time and live gives the same bits."""

from __future__ import annotations

import pytest
import torch
from namespaces import needs_root

from collectives.registry import ALGORITHMS
from experiments.network import build_topology
from ina.registry import SYSTEMS
from networks.options import Options
from networks.virtual import VirtualNetwork

pytest.importorskip("mininet", reason="needs Mininet")
from networks.mininet.fabric import Settings
from networks.mininet.network import MininetNetwork, Testbed

pytestmark = needs_root
ELEMENTS = 5000


def test_switchml_gives_the_same_tensors_live() -> None:
    topology = "leafspine,leaves=2,spines=1,hosts=2"
    graph = build_topology(topology, rate_bps=10**8, delay_ps=10**6, hosts=None)
    options = Options(system=SYSTEMS["switchml"])
    schedule = ALGORITHMS["switchml"].build(
        4, size_bytes=4 * ELEMENTS, hierarchy=graph.graph["hierarchy"]
    )
    generator = torch.Generator().manual_seed(7)
    inputs = [torch.randn(ELEMENTS, generator=generator) for _ in range(4)]
    results = []
    with Testbed(graph, Settings(scale=1)) as testbed:
        for network in (MininetNetwork(testbed, options), VirtualNetwork(graph, options)):
            tensors = network.tensors(ELEMENTS, torch.float32, schedule)
            for tensor, given in zip(tensors, inputs, strict=True):
                tensor.copy_(given)
            network.run(schedule, tensors)
            results.append([tensor.clone() for tensor in tensors])

    live, virtual = results
    assert all(torch.equal(a, b) for a, b in zip(live, virtual, strict=True))
    assert all(torch.equal(a, live[0]) for a in live)
