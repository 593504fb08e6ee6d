"""SwitchML over whole networks: never a wrong sum, never a hang, whatever the links do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.experiments.setup.network import keep_hosts
from ringleaf.ina.registry import SYSTEMS
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

SWITCHML = SYSTEMS["switchml"]
TOPOLOGIES = ("fattree,k=4", "leafspine", "torus2d", "bcube", "hammingmesh")
LARGE = {
    "fattree,k=8": 64,
    "leafspine,leaves=8,spines=2,hosts=8": 64,
    "torus2d,x=8,y=8": 64,
    "bcube,n=8,k=1": 64,
    "hammingmesh,a=2,b=2,x=4,y=4": 64,
}


def bound_of(tensors: list[torch.Tensor], lanes: int) -> torch.Tensor:
    """Return the documented bound on the error of sums; integers are exact."""
    if not tensors[0].is_floating_point():
        return torch.zeros(tensors[0].shape, dtype=torch.float64)
    return torch.from_numpy(SWITCHML.error_bound(torch.stack(tensors).numpy(), lanes))


def check(
    topology: str, workers: int, tensors: list[torch.Tensor], **options: Any
) -> tuple[RunResult, list[torch.Tensor]]:
    """Aggregate on the first `workers` hosts; all must be within the documented bound."""
    graph = keep_hosts(build(topology), workers)
    network = VirtualNetwork(graph, NetworkOptions(system=SWITCHML, **options))
    exact = torch.stack([tensor.double() for tensor in tensors]).sum(0)
    bound = bound_of(tensors, network.options.lanes)
    schedule = ALGORITHMS["switchml"].build(len(hosts(graph)))
    results = [tensor.clone() for tensor in tensors]
    outcome = network.run(schedule, results)

    for result in results:
        assert torch.equal(result, results[0]), "ranks differ"
        assert ((result.double() - exact).abs() <= bound).all()
    return outcome, results


def random_tensors(workers: int, elements: int, seed: int) -> list[torch.Tensor]:
    """Values of very different sizes, so that a wrong exponent or block would show."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.logspace(-6, 6, max(elements, 1))[:elements]
    return [scales * torch.randn(elements, generator=generator) for _ in range(workers)]


@settings(max_examples=30)
@given(
    topology=st.sampled_from(TOPOLOGIES),
    workers=st.integers(2, 16),
    elements=st.sampled_from([0, 1, 63, 64, 1000, 5000]),
    lanes=st.sampled_from([64, 256]),
    loss=st.sampled_from([0.0, 0.001, 0.05]),
    duplicate=st.sampled_from([0.0, 0.05]),
    reorder=st.sampled_from([0.0, 0.05]),
    seed=st.integers(1, 1 << 30),
)
def test_sums_are_within_the_bound_whatever_the_links_do(
    topology: str,
    workers: int,
    elements: int,
    lanes: int,
    loss: float,
    duplicate: float,
    reorder: float,
    seed: int,
) -> None:
    check(
        topology,
        workers,
        random_tensors(workers, elements, seed),
        lanes=lanes,
        slots=16,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
    )


@pytest.mark.parametrize(("topology", "workers"), LARGE.items())
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.05])
def test_64_workers(topology: str, workers: int, loss: float) -> None:
    outcome, _ = check(
        topology,
        workers,
        random_tensors(workers, 2000, seed=workers),
        loss=loss,
        duplicate=0.01 if loss else 0.0,
        reorder=0.01 if loss else 0.0,
    )
    assert (outcome.retransmissions > 0) == (outcome.lost > 0)


def test_one_rack_reaches_twice_the_bandwidth_of_a_ring() -> None:
    """The published shape: algbw over ring's approaches 2 (n - 1) / n (peers: 1.75 at 8)."""
    topology = "leafspine,leaves=1,spines=1,hosts=8"
    elements = 1 << 20
    aggregated, _ = check(topology, 8, random_tensors(8, elements, seed=1))
    network = VirtualNetwork(build(topology), NetworkOptions())
    ring = network.run(ALGORITHMS["ring"].build(8), random_tensors(8, elements, seed=1))

    assert ring.time_ps / aggregated.time_ps == pytest.approx(2 * 7 / 8, rel=0.1)


def test_nan_and_infinity_make_their_block_nan_on_every_rank() -> None:
    tensors = random_tensors(4, 64 * 4, seed=3)
    tensors[1][70] = torch.nan
    tensors[2][130] = torch.inf
    graph = keep_hosts(build("leafspine"), 4)
    network = VirtualNetwork(graph, NetworkOptions(system=SWITCHML, lanes=64))
    results = [tensor.clone() for tensor in tensors]
    network.run(ALGORITHMS["switchml"].build(4), results)

    for result in results:
        blocks = result.view(4, 64)
        assert blocks[1:3].isnan().all()
        assert blocks[[0, 3]].isfinite().all()


def test_blocks_go_on_counting_from_tensor_to_tensor() -> None:
    """Slots and versions continue: a second tensor must not meet the first one's state."""
    graph = build("fattree,k=4")
    network = VirtualNetwork(graph, NetworkOptions(system=SWITCHML, lanes=64, slots=8, loss=0.01))
    schedule = ALGORITHMS["switchml"].build(16)
    for seed, elements in enumerate((1000, 1, 64 * 8, 0, 777)):
        tensors = random_tensors(16, elements, seed)
        exact = torch.stack([tensor.double() for tensor in tensors]).sum(0)
        bound = bound_of(tensors, 64)
        network.run(schedule, tensors)
        assert all(((tensor.double() - exact).abs() <= bound).all() for tensor in tensors)


def test_integers_are_added_exactly_and_wrap() -> None:
    big = 2**31 - 1
    tensors = [torch.tensor([1, -5, big, rank], dtype=torch.int32) for rank in range(3)]
    graph = keep_hosts(build("leafspine"), 3)
    network = VirtualNetwork(graph, NetworkOptions(system=SWITCHML))
    network.run(ALGORITHMS["switchml"].build(3), tensors)

    wrapped = (3 * big + 2**31) % 2**32 - 2**31
    assert all(tensor.tolist() == [3, -15, wrapped, 3] for tensor in tensors)
