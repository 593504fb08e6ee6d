"""OmniReduce over whole networks, its aggregators on hosts of their own or with the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.errors import ConfigError
from ringleaf.experiments.setup.network import keep_hosts
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.registry import build

OMNIREDUCE = SYSTEMS["omnireduce"]
STAR = "leafspine,leaves=1,spines=1,hosts=16"


def sparse_tensors(workers: int, elements: int, density: float, seed: int) -> list[torch.Tensor]:
    """Runs of 32 elements, of which so many are not zero, differ from rank to rank."""
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(elements, generator=generator) for _ in range(workers)]
    for tensor in tensors:
        runs = torch.rand(elements // 32 + 1, generator=generator) >= density
        tensor[runs.repeat_interleave(32)[:elements]] = 0
    return tensors


def run(
    tensors: list[torch.Tensor], *, topology: str = STAR, servers: int = 0, **options: Any
) -> RunResult:
    """Sum, and expect the very bits of the sum in the order of ranks."""
    graph = keep_hosts(build(topology), len(tensors) + servers)
    network = VirtualNetwork(graph, NetworkOptions(system=OMNIREDUCE, servers=servers, **options))
    wanted = tensors[0].clone()
    for tensor in tensors[1:]:
        wanted += tensor
    outcome = network.run(ALGORITHMS["omnireduce"].build(len(tensors)), tensors)
    network.close()
    for tensor in tensors:
        assert torch.equal(tensor.view(torch.int32), wanted.view(torch.int32))
    return outcome


@settings(max_examples=20)
@given(
    workers=st.integers(2, 6),
    servers=st.integers(0, 3),
    elements=st.sampled_from([0, 1, 33, 1000, 5000]),
    density=st.sampled_from([0.0, 0.1, 1.0]),
    lanes=st.sampled_from([64, 256]),
    loss=st.sampled_from([0.0, 0.001, 0.05]),
    duplicate=st.sampled_from([0.0, 0.05]),
    reorder=st.sampled_from([0.0, 0.05]),
    seed=st.integers(1, 1 << 30),
)
def test_sums_have_the_same_bits_whatever_the_links_do(
    workers: int,
    servers: int,
    elements: int,
    density: float,
    lanes: int,
    loss: float,
    duplicate: float,
    reorder: float,
    seed: int,
) -> None:
    run(
        sparse_tensors(workers, elements, density, seed),
        topology="leafspine,leaves=2,spines=2,hosts=6",
        servers=servers,
        lanes=lanes,
        slots=16,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
    )


def test_time_follows_the_density_of_blocks_as_published() -> None:
    """As many aggregators as workers: D S / B, a ring's time by 2 (n - 1) / (n D), and latency.

    The ring's 14 steps of 2 us and a packet's time each are a fifth of its time, so that the ratio
    may be somewhat more than the formula's, which has no latency.
    """
    elements = 1 << 18
    ring = VirtualNetwork(keep_hosts(build(STAR), 8), NetworkOptions())
    ring_ps = ring.run(ALGORITHMS["ring"].build(8), sparse_tensors(8, elements, 1.0, 1)).time_ps
    for density in (1.0, 0.25):
        tensors = sparse_tensors(8, elements, density, seed=1)
        for tensor in tensors[1:]:  # all have the same blocks
            tensor.copy_(tensors[0] * 3)
        took_ps = run(tensors, servers=8).time_ps
        assert 0.6 < ring_ps / took_ps / (2 * 7 / 8 / density) < 1.2


def test_nobody_loses_a_packet_however_few_aggregators_there_are() -> None:
    outcome = run(sparse_tensors(15, 1 << 16, 1.0, seed=2), servers=1)
    assert (outcome.drops, outcome.retransmissions) == (0, 0)


def test_recorded_packets_have_room_though_they_exceed_the_mtu(tmp_path: Path) -> None:
    run(sparse_tensors(3, 4000, 1.0, seed=3), servers=1, mtu_bytes=256, record=tmp_path)
    assert (tmp_path / "s0" / "trace.yaml").exists()


def test_types_that_cannot_be_added_are_refused() -> None:
    network = VirtualNetwork(keep_hosts(build(STAR), 2), NetworkOptions(system=OMNIREDUCE))
    halves = [torch.ones(10, dtype=torch.float16) for _ in range(2)]
    with pytest.raises(ConfigError, match=r"omnireduce: adds up float32 .*, got float16"):
        network.run(ALGORITHMS["omnireduce"].build(2), halves)
