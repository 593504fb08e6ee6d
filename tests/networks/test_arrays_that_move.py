"""Arrays of the arena move as it grows; whoever keeps one across an allocation has a copy."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import ringleaf.networks.virtual.pool as pool
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.arena import Store, Words
from ringleaf.core.tensors import FLOAT32
from ringleaf.ina.registry import find_system
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build

SYSTEMS = sorted(name for name, each in ALGORITHMS.items() if each.in_network)


def run(algorithm: str) -> tuple[int, list[bytes]]:
    """Run a collective of four hosts; return its time and the results."""
    graph = build("leafspine,leaves=2,spines=1,hosts=2")
    system = find_system(algorithm) if ALGORITHMS[algorithm].in_network else None
    schedule = ALGORITHMS[algorithm].build(4, size_bytes=1024, hierarchy=graph.graph["hierarchy"])
    network = VirtualNetwork(graph, NetworkOptions(system=system), seed=1)
    with closing(network):
        arrays = network.arrays(256, FLOAT32, schedule)
        for rank, array in enumerate(arrays):
            array[:] = (1.0, -1.0)[rank % 2]  # what all systems add
        result = network.run(schedule, arrays)
        return result.time_ps, [array.tobytes() for array in arrays]


@pytest.mark.parametrize("algorithm", ["ring", *SYSTEMS])
def test_nothing_keeps_an_array_that_has_moved(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "POOL_PACKETS", 2048)
    usual = run(algorithm)
    allocate = Store.allocate

    def move(store: Store, array: str, count: int) -> int:
        offset = allocate(store, array, count)
        if array in ("words", "fields"):
            old: Words = getattr(store.arena, array)
            new = np.array(old)
            store._put(array, new)
            old[:] = 0x5A5A5A5A5A
            old.flags.writeable = False
        return offset

    monkeypatch.setattr(Store, "allocate", move)
    assert run(algorithm) == usual


def test_an_array_that_has_moved_is_not_written_to() -> None:
    store = Store()
    words = store.arena.words
    store.allocate("words", 2 * len(words))
    with pytest.raises(ValueError, match="read-only"):
        words[0] = 1
