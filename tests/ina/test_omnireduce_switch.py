"""OmniReduce in switches, from tensor to tensor, on links that misbehave; its loads."""

from __future__ import annotations

import heapq
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_network import Network, OmniJob, misbehaving, on_time, tree_of

from ringleaf.errors import ConfigError
from ringleaf.ina.loads import Aggregation
from ringleaf.ina.omnireduce_switch.loads import demand
from ringleaf.ina.omnireduce_switch.wire import NEXT_AT, NONE, VALUES_AT
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml.wire import MESSAGE_AT, RESULT
from ringleaf.topologies.registry import build
from ringleaf.topologies.ways import TopologyRoutes

LANES = 64


def sparse(rng: Random, ranks: int, count: int, share: float) -> np.ndarray:
    """Tensors whose blocks are zero on each rank by itself, but for this share of them."""
    generator = np.random.default_rng(rng.randrange(2**32))
    if rng.random() < 0.3:
        values = generator.integers(-(2**31), 2**31, (ranks, count)).astype(np.int32)
    else:
        values = generator.standard_normal((ranks, count)).astype(np.float32)
    blocks = generator.random((ranks, -(-count // LANES))) < share
    kept: np.ndarray = values * np.repeat(blocks, LANES, axis=1)[:, :count]
    return kept.astype(values.dtype)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    levels=st.sampled_from([(1,), (3,), (2, 2), (2, 1, 2)]),
    slots=st.integers(1, 5),
    loss=st.sampled_from([0.0, 0.01, 0.2]),
    strange=st.sampled_from([0.0, 0.2]),
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    counts=st.lists(st.integers(0, 1500), min_size=1, max_size=3),
    first=st.sampled_from([0, 2**32 - 3]),
)
def test_every_sum_is_right_whatever_links_do_and_wherever_zeros_are(
    seed: int,
    levels: tuple[int, ...],
    slots: int,
    loss: float,
    strange: float,
    share: float,
    counts: list[int],
    first: int,
) -> None:
    rng = Random(seed)
    fate = misbehaving(rng, loss, strange, strange)
    network = Network(tree_of(levels), [OmniJob(7, slots)], fate, first=first)
    ranks = int(np.prod(levels))
    tensors = [sparse(rng, ranks, count, share) for count in counts]

    for part in (tensors[:1], tensors[1:]):
        for run in network.stream(*part):
            run.check()


def test_only_blocks_with_values_travel_and_results_name_the_least_next_one() -> None:
    """By hand, one slot: h0 has blocks 1 and 4, h1 has 1 and 2; block 0 and 3 are nobody's."""
    parts = np.zeros((2, 5 * LANES), np.int32)
    parts[0, [1 * LANES, 4 * LANES]] = 10, 40
    parts[1, [1 * LANES, 2 * LANES]] = 1, 2
    network = Network(tree_of((2,)), [OmniJob(1, 1)], on_time)

    (run,) = network.stream(parts)

    run.check()

    def told(packet: bytes) -> tuple[int, list[int]]:
        values = np.frombuffer(packet[VALUES_AT:], ">i4")
        return int.from_bytes(packet[NEXT_AT:VALUES_AT]), values[:1].tolist()

    up = {h: [told(p) for src, _, p in network.hops if src == h] for h in ("h0", "h1")}
    assert up["h0"] == [(1, []), (4, [10]), (4, []), (NONE, [40])]
    assert up["h1"] == [(1, []), (2, [1]), (NONE, [2]), (NONE, [])]
    down = [told(p) for _, dst, p in network.hops if dst == "h0"]
    assert down == [(1, []), (2, [11]), (4, [2]), (NONE, [40])]


def test_a_block_that_no_rank_below_a_switch_has_goes_up_without_values() -> None:
    parts = np.zeros((4, 2 * LANES), np.float32)
    parts[3, LANES] = -1.5
    network = Network(tree_of((2, 2)), [OmniJob(1, 1)], on_time)

    (run,) = network.stream(parts)

    run.check()
    assert run.results[0][LANES] == -1.5
    sizes = Counter(
        (src, dst, len(packet) > VALUES_AT)
        for src, dst, packet in network.hops
        if {src, dst} <= {"s0", "s1", "s2"}
    )
    assert sizes["s1", "s0", True] == 0
    assert sizes["s2", "s0", True] == 1
    assert sizes["s0", "s1", True] == sizes["s0", "s2", True] == 1


@pytest.mark.parametrize("strange", [0, 2, 9, NONE - 1])
def test_a_result_that_names_no_block_behind_the_rounds_is_ignored(strange: int) -> None:
    """Of 5 blocks and 2 slots, slot 0 can go on with 2 and 4; after block 2 with 4 alone."""

    class Forged(Network):
        def send(self, src: str, dst: str, packet: bytes) -> None:
            super().send(src, dst, packet)
            if dst[0] == "h" and packet[MESSAGE_AT] >> 4 == RESULT and len(packet) > VALUES_AT:
                forged = bytearray(packet)
                forged[NEXT_AT:VALUES_AT] = strange.to_bytes(4)
                heapq.heappush(self.events, (self.now_ps, -1, src, dst, bytes(forged)))

    network = Forged(tree_of((2,)), [OmniJob(1, 2)], on_time)
    parts = np.arange(2 * 5 * LANES, dtype=np.int32).reshape(2, -1) + 1
    parts[:, : 2 * LANES] = 0
    (run,) = network.stream(parts)
    run.check()


def test_loads_by_hand() -> None:
    """Racks of one host; h0 has block 0, h1 has 0 and 3 of 4, so there are 2 + 1 rounds."""
    ways = TopologyRoutes(build("leafspine,leaves=2,spines=1,hosts=1"))
    parts = np.zeros((2, 4 * LANES), np.int32)
    parts[:, 0] = parts[1, 3 * LANES] = 1
    what = Aggregation((0, 1), (), 4 * LANES, False, LANES, slots=1, inputs=list(parts))

    loads = demand(ways, what).loads

    small, values = 60 + 24, VALUES_AT + 4 * LANES - 60
    links = {(node, peers[0]): load.size_bytes for (node, peers), load in loads.items()}
    assert links["h0", "s0"] == links["s0", "s2"] == 3 * small + values
    assert links["h1", "s1"] == links["s1", "s2"] == 3 * small + 2 * values
    assert links["s2", "s0"] == links["s0", "h0"] == links["s1", "h1"] == 3 * small + 2 * values


def test_it_is_a_system_with_programs_of_its_own() -> None:
    system = SYSTEMS["omnireduce-switch"]
    assert system.program(256) == "omnireduce-256"
    with pytest.raises(ConfigError, match="omnireduce-switch: lanes must be one of"):
        system.program(65)
