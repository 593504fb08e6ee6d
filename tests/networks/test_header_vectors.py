"""Packets on wires have no P4 fields, so a few header vectors serve any number of them."""

from __future__ import annotations

import pytest
import torch

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.packets import FIELD_COUNT, FIELDS_AT, VECTORS
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build


def used_vectors(network: VirtualNetwork) -> int:
    """Return how many header vectors have ever been written to: an unused one is all zeros."""
    arena = network.store.arena
    start, width = int(arena.words[FIELDS_AT]), int(arena.words[FIELD_COUNT])
    size = (int(arena.words[VECTORS]) + 1) * width
    return int(arena.fields[start : start + size].reshape(-1, width).any(axis=1).sum())


@pytest.mark.parametrize("delay", ["1us", "100us"])
def test_longer_wires_need_no_more_header_vectors(delay: str) -> None:
    """At 100 Gbit/s, a wire of 100 us holds 300 packets of 4 KiB; queues hold next to none."""
    graph = build(f"leafspine,leaves=1,spines=1,hosts=2,delay={delay}")
    network = VirtualNetwork(graph, NetworkOptions(), seed=1)
    tensors = [torch.ones(1 << 20) for _ in range(2)]

    outcome = network.run(ALGORITHMS["ring"].build(2), tensors)

    assert outcome.drops == 0
    assert 0 < used_vectors(network) <= 4
