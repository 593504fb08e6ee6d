"""SwitchML from tensor to tensor, through the real P4 program, on links that misbehave."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import DELAY_PS, Fate, Network, misbehaving, on_time, tree_of

from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.wire import BLOCK_AT, MESSAGE_AT, RESULT, UPDATE
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

ONE_RACK, TWO_TIERS, THREE_TIERS = (3,), (2, 2), (2, 1, 2)
SHAPES = [(1,), ONE_RACK, (5,), TWO_TIERS, (3, 1), (1, 1, 1), THREE_TIERS, (2, 2, 2, 2), (64,)]


def floats(rng: Random, ranks: int, count: int) -> np.ndarray:
    """Normally distributed values over some magnitudes."""
    generator = np.random.default_rng(rng.getrandbits(32))
    scale = 10.0 ** generator.integers(-3, 4, (ranks, count))
    return (generator.standard_normal((ranks, count)) * scale).astype(np.float32)


def integers(rng: Random, ranks: int, count: int) -> np.ndarray:
    generator = np.random.default_rng(rng.getrandbits(32))
    return generator.integers(-(2**31), 2**31, (ranks, count)).astype(np.int32)


@settings(max_examples=60)
@given(
    shape=st.sampled_from(SHAPES),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    twice=st.sampled_from([0.0, 0.1]),
    late=st.sampled_from([0.0, 0.3]),
    slots=st.integers(1, 5),
    counts=st.lists(st.integers(0, 700), min_size=1, max_size=3),
)
def test_every_sum_is_right_whatever_links_do(
    shape: tuple[int, ...],
    seed: int,
    loss: float,
    twice: float,
    late: float,
    slots: int,
    counts: list[int],
) -> None:
    rng = Random(seed)
    graph = tree_of(shape)
    network = Network(graph, [SwitchmlJob(7, slots)], misbehaving(rng, loss, twice, late))
    ranks = len(hosts(graph))

    tensors = [(floats if rng.random() < 0.7 else integers)(rng, ranks, count) for count in counts]
    for part in (tensors[:1], tensors[1:]):  # those of a part follow one another without a gap
        for run in network.stream(*part):
            run.check()


@settings(max_examples=25)
@given(
    spec=st.sampled_from(
        [
            *("fattree,k=2", "fattree,k=4", "leafspine,leaves=3,spines=2,hosts=3"),
            *("leafspine,leaves=8,spines=2,hosts=8", "torus2d,x=3,y=4", "torus3d,x=2,y=2,z=3"),
            *("bcube,n=4,k=1", "hammingmesh,a=2,b=2,x=2,y=2"),
        ]
    ),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.001, 0.05]),
    strange=st.sampled_from([0.0, 0.05]),
)
def test_sums_are_right_on_every_topology(
    spec: str, seed: int, loss: float, strange: float
) -> None:
    rng = Random(seed)
    graph = build(spec)
    network = Network(graph, [SwitchmlJob(2, 8)], misbehaving(rng, loss, strange, strange))

    for count in (rng.randint(1, 1000), 65):
        for run in network.reduce(floats(rng, len(hosts(graph)), count)):
            run.check()


@settings(max_examples=10)
@given(
    shape=st.sampled_from([ONE_RACK, TWO_TIERS, THREE_TIERS]),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.1]),
)
def test_jobs_run_side_by_side(shape: tuple[int, ...], seed: int, loss: float) -> None:
    rng = Random(seed)
    graph = tree_of(shape)
    jobs = [
        SwitchmlJob(3, 4, first_slot=0),
        SwitchmlJob(4, 2, first_slot=6),
        SwitchmlJob(21, 2, first_slot=4),
    ]
    network = Network(graph, jobs, misbehaving(rng, loss, loss, loss))
    ranks = len(hosts(graph))

    for counts in ((300, 64, 500), (1, 0, 400)):
        for run in network.reduce(*(floats(rng, ranks, count) for count in counts)):
            run.check()


@pytest.mark.parametrize("shape", [ONE_RACK, THREE_TIERS])
def test_packets_of_256_lanes(shape: tuple[int, ...]) -> None:
    rng = Random(1)
    graph = tree_of(shape)
    network = Network(graph, [SwitchmlJob(1, 3, lanes=256)], misbehaving(rng, 0.1, 0.1, 0.1))
    ranks = len(hosts(graph))

    for make in (floats, integers):
        for run in network.reduce(make(rng, ranks, 2000)):
            run.check()


@pytest.mark.parametrize("shape", [ONE_RACK, TWO_TIERS])
def test_block_numbers_wrap_around(shape: tuple[int, ...]) -> None:
    rng = Random(2)
    graph = tree_of(shape)
    slots = 3
    fate = misbehaving(rng, 0.1, 0.1, 0.1)
    network = Network(graph, [SwitchmlJob(9, slots)], fate, first=2**32 // slots - 2)

    for run in network.reduce(floats(rng, len(hosts(graph)), 64 * 20)):
        run.check()
    blocks = {packet[BLOCK_AT : BLOCK_AT + 4] for _, _, packet in network.hops}
    assert {b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"} <= blocks


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_of_one_worker_makes_the_block_nan_for_all(bad: float) -> None:
    graph = tree_of(TWO_TIERS)
    parts = np.ones((len(hosts(graph)), 200), np.float32)
    parts[1, 70] = bad

    (run,) = Network(graph, [SwitchmlJob(1, 2)]).reduce(parts)

    for result in run.results:
        assert np.isnan(result).tolist() == [False] * 64 + [True] * 64 + [False] * 72
        assert set(result[~np.isnan(result)]) == {len(hosts(graph))}


def test_a_quiet_network_carries_each_block_once_per_link_and_direction() -> None:
    graph = tree_of(THREE_TIERS)
    network = Network(graph, [SwitchmlJob(1, 4)])
    network.reduce(np.ones((len(hosts(graph)), 64 * 10), np.float32))

    assert network.retransmissions == 0
    each = Counter((src, dst) for src, dst, _ in network.hops)
    assert each == {
        direction: 10 + 4 for a, b in graph.edges for direction in ((a, b), (b, a))
    }  # 10 blocks, and 4 exponents before them


def test_one_worker_gets_its_own_values() -> None:
    values = np.arange(130, dtype=np.float32)[None]

    (run,) = Network(tree_of((1, 1)), [SwitchmlJob(1, 2)]).reduce(values)

    assert run.results.tolist() == values.tolist()


def lose_once(src: str, dst: str, message: int) -> tuple[Fate, list[bytes]]:
    """A fate that loses the first packet of this kind on this hop; and how many there were."""
    seen: list[bytes] = []

    def fate(a: str, b: str, packet: bytes) -> list[int]:
        if (a, b, packet[MESSAGE_AT] >> 4) != (src, dst, message):
            return on_time(a, b, packet)
        seen.append(packet)
        return [] if len(seen) == 1 else [DELAY_PS]

    return fate, seen


# Of tree_of((2, 2)): s0 is the root, s1 and s2 below it, h0 and h1 at s1, h2 and h3 at s2.
@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        ("h0", "s1", UPDATE),
        ("s1", "s0", UPDATE),
        ("s0", "s2", RESULT),
        ("s2", "h3", RESULT),
    ],
)
def test_one_loss_on_any_hop_is_mended(src: str, dst: str, message: int) -> None:
    fate, seen = lose_once(src, dst, message)
    graph = tree_of(TWO_TIERS)
    network = Network(graph, [SwitchmlJob(1, 2)], fate)

    (run,) = network.reduce(np.arange(4 * 10, dtype=np.int32).reshape(4, 10))

    run.check()
    assert len(seen) >= 2
    again = seen[1][MESSAGE_AT:]  # the addresses are those of the update that caused it
    assert again == seen[0][MESSAGE_AT:], "what was lost came again, unchanged"
    assert network.retransmissions > 0
