"""Ternary sums in switches, from tensor to tensor, against sums of whole numbers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import Network, TernJob, misbehaving, on_time, tree_of

from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.ina.tern.job import join
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.sampled_from([(1,), (4,), (2, 3), (2, 2, 2)]),
    slots=st.integers(1, 4),
    loss=st.sampled_from([0.0, 0.01, 0.2]),
    strange=st.sampled_from([0.0, 0.2]),
    counts=st.lists(st.integers(0, 4000), min_size=1, max_size=3),
    zeros=st.sampled_from([0.1, 0.9999]),
)
def test_sums_are_whole_multiples_whatever_links_do(
    seed: int,
    levels: tuple[int, ...],
    slots: int,
    loss: float,
    strange: float,
    counts: list[int],
    zeros: float,
) -> None:
    """With nearly all zeros, workers have blocks that don't know the scale."""
    fate = misbehaving(Random(seed), loss, strange, strange)
    network = Network(tree_of(levels), [TernJob(7, slots, lanes=48)], fate)
    generator = np.random.default_rng(seed)
    ranks, scale = int(np.prod(levels)), np.float32(generator.integers(1, 4096)) * 2.0**-20
    levels_of = [
        generator.choice([-1, 0, 1], (ranks, count), p=[(1 - zeros) / 2, zeros, (1 - zeros) / 2])
        for count in counts
    ]

    tensors = [(levels * scale).astype(np.float32) for levels in levels_of]
    for whole, run in zip(levels_of, network.stream(*tensors), strict=True):
        wanted = (whole.sum(axis=0) * scale).astype(np.float32)
        for result in run.results:
            assert result.tolist() == wanted.tolist()


def test_workers_send_two_bits_per_element_and_get_six() -> None:
    network = Network(tree_of((2,)), [TernJob(1, 2, lanes=48)], on_time)
    network.stream(np.ones((2, 1536), np.float32))
    assert [len(packet) for src, _, packet in network.hops if src == "h0"] == 2 * [56 + 192]
    assert [len(packet) for _, dst, packet in network.hops if dst == "h0"] == 2 * [56 + 576]


@pytest.mark.parametrize("levels", [(3,), (2, 2)])
def test_different_scales_make_no_numbers(levels: tuple[int, ...]) -> None:
    """The second block is the same for all."""
    ranks = int(np.prod(levels))
    parts = np.ones((ranks, 2 * 768), np.float32)
    parts[ranks - 1, :768] = 2
    network = Network(tree_of(levels), [TernJob(1, 2, lanes=48)], on_time)
    (run,) = network.stream(parts)
    assert np.isnan(run.results[:, :768]).all()
    assert (run.results[:, 768:] == ranks).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 0, 0.5], np.float32), r"tern: elements must be 0, or one .* got 0.5 beside"),
        (np.array([0, np.inf], np.float32), r"tern: elements must be 0, or one .* got inf"),
        (np.array([1, -1], np.int32), "tern: elements must be float32, got int32"),
    ],
)
def test_what_is_not_ternary_is_refused(values: np.ndarray, message: str) -> None:
    graph, store = build("leafspine,leaves=1,spines=1,hosts=2"), Store()
    job = join(
        graph,
        store,
        JobRequest(1, hosts(graph), (), ResourceShare(), 0, 64, None, 8_000_000, False),
    )
    at = store.register_memory(values.nbytes)
    store.arena.memory[at : at + values.nbytes] = values.view(np.uint8)
    with pytest.raises(ConfigError, match=message):
        job.start(store.arena, 0, at, values.size, 0, values.dtype, 0)


def test_more_workers_than_counts_have_room_for_are_refused() -> None:
    graph = build("leafspine,leaves=2,spines=1,hosts=16")
    request = JobRequest(1, hosts(graph), (), ResourceShare(), 0, 64, None, 8_000_000, False)
    with pytest.raises(ConfigError, match="tern job 1: switches add up 31 workers, got 32"):
        join(graph, Store(), request)
