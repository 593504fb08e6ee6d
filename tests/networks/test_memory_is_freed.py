"""A network's memory is free when nobody refers to it, before Python looks for garbage."""

from __future__ import annotations

import gc
import weakref

import pytest

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.tensors import FLOAT32
from ringleaf.ina.registry import find_system
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build


def run(algorithm: str) -> weakref.ref[object]:
    graph = build("leafspine,leaves=2,spines=1,hosts=2")
    system = find_system(algorithm) if ALGORITHMS[algorithm].in_network else None
    network = VirtualNetwork(graph, NetworkOptions(system=system), seed=1)
    schedule = ALGORITHMS[algorithm].build(4, size_bytes=4096, hierarchy=graph.graph["hierarchy"])
    arrays = network.arrays(1024, FLOAT32, schedule)
    for array in arrays:
        array[:] = 1
    network.run(schedule, arrays)
    network.close()
    return weakref.ref(network.store)


@pytest.mark.parametrize("algorithm", ["ring", "switchml", "atp"])
def test_a_networks_arena_is_freed_with_it(algorithm: str) -> None:
    run(algorithm)  # loads what is loaded once
    gc.collect()
    gc.disable()
    try:
        assert run(algorithm)() is None
    finally:
        gc.enable()
