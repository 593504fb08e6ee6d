"""Votes in switches, from tensor to tensor, bit for bit as hosts count them (`signsgd`)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import Network, VotingJob, misbehaving, on_time, tree_of

from ringleaf.collectives.compressors.signsgd import SignSGD
from ringleaf.core.arena import Store
from ringleaf.errors import ConfigError
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.ina.vote.job import join
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build


def by_hosts(parts: np.ndarray) -> np.ndarray:
    """The majority's signs as the compressor has them, which are times the ranks."""
    compressor = SignSGD()
    vars(compressor)["ranks"] = len(parts)
    signs: np.ndarray = np.sign(compressor.result(parts.sum(axis=0), parts.shape[1]))
    return signs


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.sampled_from([(1,), (4,), (2, 3), (2, 2, 2)]),
    slots=st.integers(1, 4),
    loss=st.sampled_from([0.0, 0.01, 0.2]),
    strange=st.sampled_from([0.0, 0.2]),
    counts=st.lists(st.integers(0, 5000), min_size=1, max_size=3),
)
def test_the_majority_is_the_hosts_whatever_links_do(
    seed: int, levels: tuple[int, ...], slots: int, loss: float, strange: float, counts: list[int]
) -> None:
    fate = misbehaving(Random(seed), loss, strange, strange)
    network = Network(tree_of(levels), [VotingJob(7, slots, lanes=24)], fate)
    generator = np.random.default_rng(seed)
    shapes = [(int(np.prod(levels)), count) for count in counts]
    tensors = [(2 * generator.integers(0, 2, shape) - 1).astype(np.float32) for shape in shapes]

    for part in (tensors[:1], tensors[1:]):
        for run in network.stream(*part):
            for result in run.results:
                assert result.tobytes() == by_hosts(run.parts).astype(np.float32).tobytes()


def test_a_worker_sends_a_bit_per_element() -> None:
    network = Network(tree_of((2,)), [VotingJob(1, 2, lanes=24)], on_time)
    network.stream(np.ones((2, 3000), np.float32))
    assert [len(packet) for src, _, packet in network.hops if src == "h0"] == 4 * [52 + 96]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 0.5], np.float32), r"vote: elements must be \+1 and -1, got 0.5"),
        (np.array([1, np.nan], np.float32), r"vote: elements must be \+1 and -1, got nan"),
        (np.array([1, -1], np.int32), "vote: elements must be float32, got int32"),
    ],
)
def test_what_is_no_sign_is_refused(values: np.ndarray, message: str) -> None:
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
    graph = build("leafspine,leaves=2,spines=1,hosts=32")
    request = JobRequest(1, hosts(graph), (), ResourceShare(), 0, 64, None, 8_000_000, False)
    with pytest.raises(ConfigError, match="vote job 1: switches count to 63, got 64 workers"):
        join(graph, Store(), request)


def test_the_bound_leaves_the_majority_alone() -> None:
    """Sums 3, 1, 0 and -1 of elements, whose votes are 1, 1, 1 and -1."""
    parts = np.array([[1, 1, 1, -1], [1, 1, -1, -1], [1, -1, 0, 1]], np.float32)
    assert SYSTEMS["vote"].error_bound(parts, 64).tolist() == [2, 0, 1, 0]
