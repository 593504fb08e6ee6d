"""ATP from tensor to tensor, through the real P4 program, on links that misbehave."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from atp_network import (
    ONE_RACK,
    SHAPES,
    TWO_RACKS,
    free_aggregators,
    job_on,
    message,
    sequence,
    wide,
    with_mark,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import Network, misbehaving, tree_of
from test_switchml_network import floats, integers

from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp.control import AtpJob
from ringleaf.ina.atp.state import ALLOWED, INCREASE
from ringleaf.ina.atp.wire import GRADIENT, MESSAGE_AT, RAW
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build


@settings(max_examples=30)
@given(
    shape=st.sampled_from(SHAPES),
    servers=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    twice=st.sampled_from([0.0, 0.1]),
    late=st.sampled_from([0.0, 0.3]),
    aggregators=st.sampled_from([1, 2, 5, 8, 64]),
    window=st.sampled_from([1, 2, 8]),
    counts=st.lists(st.integers(0, 700), min_size=1, max_size=3),
)
def test_every_sum_is_right_whatever_links_do(
    shape: tuple[int, ...],
    servers: int,
    seed: int,
    loss: float,
    twice: float,
    late: float,
    aggregators: int,
    window: int,
    counts: list[int],
) -> None:
    rng = Random(seed)
    graph = tree_of(shape)
    servers = min(servers, len(hosts(graph)) - 1)
    job = job_on(graph, servers, number=rng.randint(1, 255), aggregators=aggregators, window=window)
    network = Network(graph, [job], misbehaving(rng, loss, twice, late))

    tensors = [
        rng.choice([floats, integers, wide])(rng, len(job.workers), count) for count in counts
    ]
    for part in (tensors[:1], tensors[1:]):  # those of a part follow one another without a gap
        for run in network.stream(*part):
            run.check()


@settings(max_examples=5)
@given(
    spec=st.sampled_from(
        [
            *("fattree,k=4", "leafspine,leaves=3,spines=2,hosts=3", "torus2d,x=3,y=4"),
            *("bcube,n=4,k=1", "hammingmesh,a=2,b=2,x=2,y=2"),
        ]
    ),
    servers=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
    strange=st.sampled_from([0.0, 0.02]),
)
def test_sums_are_right_on_every_topology(
    spec: str, servers: int, seed: int, strange: float
) -> None:
    rng = Random(seed)
    graph = build(spec)
    job = job_on(graph, servers)
    network = Network(graph, [job], misbehaving(rng, strange, strange, strange))

    for count in (rng.randint(1, 1000), 65):
        for run in network.reduce(floats(rng, len(job.workers), count)):
            run.check()


@pytest.mark.parametrize("shape", [ONE_RACK, TWO_RACKS])
def test_packets_of_256_lanes(shape: tuple[int, ...]) -> None:
    rng = Random(1)
    graph = tree_of(shape)
    job = job_on(graph, lanes=256)
    network = Network(graph, [job], misbehaving(rng, 0.1, 0.1, 0.1))

    for make in (floats, integers, wide):
        for run in network.reduce(make(rng, len(job.workers), 2000)):
            run.check()


@pytest.mark.parametrize("servers", [1, 3])
def test_sequence_numbers_wrap_around(servers: int) -> None:
    rng = Random(2)
    graph = tree_of((3, 2))
    job = job_on(graph, servers)
    fate = misbehaving(rng, 0.1, 0.1, 0.1)
    network = Network(graph, [job], fate, first=2**32 - 10)

    for _ in range(2):
        for run in network.reduce(floats(rng, len(job.workers), 64 * 20)):
            run.check()
    seen = {sequence(packet) for _, _, packet in network.hops}
    assert {2**32 - 10, 2**32 - 1, 0, 29} <= seen


def test_64_workers() -> None:
    graph = tree_of((8, 8))
    names = hosts(graph)
    job = AtpJob(1, tuple(names), (names[5],), aggregators=64, window=4)
    network = Network(graph, [job], misbehaving(Random(3), 0.01, 0.01, 0.01))

    (run,) = network.reduce(integers(Random(3), 64, 300))

    run.check()


def test_nan_and_infinity_come_back_where_they_were() -> None:
    graph = tree_of(TWO_RACKS)
    job = job_on(graph)
    parts = np.ones((len(job.workers), 200), np.float32)
    parts[1, 70], parts[2, 130], parts[3, 199] = np.nan, np.inf, 1e30

    (run,) = Network(graph, [job]).reduce(parts)

    expected = parts.sum(axis=0)
    for result in run.results:
        assert result.tolist() == pytest.approx(expected.tolist(), nan_ok=True)


def test_a_quiet_network_carries_each_block_once_per_link_and_direction() -> None:
    graph = tree_of(TWO_RACKS)  # racks s1: h0 to h2, s2: h3, h4 and the server h5
    job = job_on(graph)
    network = Network(graph, [job])
    network.reduce(np.ones((5, 64 * 10), np.float32))

    assert network.retransmissions == 0
    each = Counter((src, dst) for src, dst, _ in network.hops)
    gradients = {("s1", "s0"), ("s0", "s2"), ("s2", "h5"), *((f"h{i}", "s1") for i in range(3))}
    gradients |= {("h3", "s2"), ("h4", "s2")}
    parameters = {(dst, src) for src, dst in gradients}
    assert each == dict.fromkeys(gradients | parameters, 10)
    network.settle()
    assert free_aggregators(network)


def test_only_overflowing_blocks_go_raw() -> None:
    graph = tree_of((4,))
    parts = np.full((3, 64 * 4), 100.0, np.float32)
    parts[:, 64:128] = 1500.0  # each fits, their sum does not
    parts[1, 130] = 5000.0  # does not fit
    network = Network(graph, [job_on(graph)])

    (run,) = network.reduce(parts)

    run.check()
    raw = {sequence(packet) for _, _, packet in network.hops if packet[MESSAGE_AT] & RAW}
    assert raw == {1, 2}


def test_saturated_sums_do_not_come_back() -> None:
    """Overflow up and then down again by a third worker must not look like a sum."""
    graph = tree_of((2, 2))
    for order in ([2000.0, 2000.0, -2000.0], [-2000.0, -1000.0, 2000.0]):
        parts = np.tile(np.array(order, np.float32)[:, None], (1, 64))

        (run,) = Network(graph, [job_on(graph)]).reduce(parts)

        assert run.results.tolist() == [[sum(order)] * 64] * 3


def test_congestion_marks_reach_all_workers_through_a_sum() -> None:
    """One marked gradient of one of three workers halves the windows of all, once."""
    graph = tree_of((4,))
    job = job_on(graph, window=64)
    network = Network(graph, [job])
    send = network.send
    unmarked = [True]

    def mark(src: str, dst: str, packet: bytes) -> None:
        if unmarked[0] and src == "h1" and message(packet) == GRADIENT:
            unmarked[0] = False
            packet = with_mark(packet)
        send(src, dst, packet)

    network.send = mark  # type: ignore[method-assign]
    network.reduce(np.ones((3, 64 * 32), np.float32))

    own = [agent.block + AGENT_WORDS for agent in network.parties[0].agents[:3]]
    assert [network.words[at + ALLOWED] - network.words[at + INCREASE] for at in own] == [16] * 3


def test_a_tensor_does_not_wait_for_the_one_before() -> None:
    graph = tree_of((3,))
    network = Network(graph, [job_on(graph, window=8)])
    network.stream(*(np.ones((2, count), np.float32) for count in (64, 0, 65, 1)))
    answered = next(i for i, (_, dst, _) in enumerate(network.hops) if dst == "h0")
    assert sum(src == "h0" for src, _, _ in network.hops[:answered]) == 4
