"""OmniReduce: sums are exact and in the order of ranks, whatever becomes of packets."""

from __future__ import annotations

from itertools import count
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omnireduce_network import DELAY_PS, Network, in_order, misbehaving

from ringleaf.errors import ConfigError
from ringleaf.ina.omnireduce.wire import (
    BLOCK,
    MESSAGE_AT,
    NONE,
    PRESENT_AT,
    ROUND_MASK,
    aggregator_port,
    values_at,
    worker_port,
)

KINDS = (np.float32, np.int32)


@st.composite
def sparse_parts(draw: st.DrawFn, most_ranks: int = 5, most_elements: int = 900) -> np.ndarray:
    """Tensors of all ranks, each with its own density: none, some, all elements or blocks."""
    ranks, elements = draw(st.integers(1, most_ranks)), draw(st.integers(0, most_elements))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    kind = draw(st.sampled_from(KINDS))
    if kind is np.int32:
        parts = rng.integers(-(1 << 31), 1 << 31, (ranks, elements), np.int64).astype(np.int32)
    else:
        parts = rng.standard_normal((ranks, elements)).astype(np.float32)
    for part in parts:
        density = draw(st.sampled_from((0.0, 0.01, 0.1, 1.0)))
        run = draw(st.sampled_from((1, BLOCK, 100)))
        kept = np.repeat(rng.random(elements // run + 1) < density, run)[:elements]
        part[~kept] = 0
    return parts


def check(network: Network, *tensors: np.ndarray) -> None:
    """All ranks have the very bits of the sum."""
    for parts, results in zip(tensors, network.reduce(*tensors), strict=True):
        wanted = in_order(parts).tobytes()
        assert [result.tobytes() for result in results] == [wanted] * len(parts)


@settings(max_examples=60)
@given(
    parts=sparse_parts(),
    servers=st.integers(0, 3),
    slots=st.sampled_from((1, 2, 5, 40)),
    lanes=st.sampled_from((32, 64, 256)),
)
def test_sums_are_those_of_ranks_in_order(
    parts: np.ndarray, servers: int, slots: int, lanes: int
) -> None:
    network = Network(len(parts), servers, slots=slots, lanes=lanes)
    check(network, parts)
    assert network.retransmissions == 0


@settings(max_examples=60)
@given(
    parts=sparse_parts(most_ranks=4, most_elements=500),
    servers=st.integers(0, 2),
    slots=st.sampled_from((1, 3)),
    first_round=st.sampled_from((0, ROUND_MASK, ROUND_MASK - 1)),
    odds=st.sampled_from(((0.1, 0.0, 0.0), (0.0, 0.2, 0.5), (0.3, 0.2, 0.3))),
    seed=st.integers(0, 1 << 30),
)
def test_nothing_that_becomes_of_packets_matters(
    parts: np.ndarray,
    servers: int,
    slots: int,
    first_round: int,
    odds: tuple[float, float, float],
    seed: int,
) -> None:
    fate = misbehaving(Random(seed), *odds)
    network = Network(len(parts), servers, slots=slots, fate=fate, first_round=first_round)
    check(network, parts, parts[:, : parts.shape[1] // 3].copy(), parts[::-1].copy())


def test_a_dense_worker_among_empty_ones_gives_all_of_them_its_values() -> None:
    parts = np.zeros((4, 1000), np.float32)
    parts[2] = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    check(Network(4, 2, fate=misbehaving(Random(2), 0.2, 0.1, 0.2)), parts)


@pytest.mark.parametrize("kind", KINDS)
def test_all_zero_costs_a_head_per_slot_and_direction(kind: type) -> None:
    network = Network(3, 1, slots=4, lanes=64)
    check(network, np.zeros((3, 4096), kind))
    assert len(network.packets) == 2 * 3 * 4
    assert {len(packet) for packet in network.packets} == {values_at(2)}


def test_only_blocks_that_are_not_zero_are_sent() -> None:
    """Ranks have every fifth block, and all those of the first; one slot of one column."""
    parts = np.zeros((2, 20, BLOCK), np.int32)
    parts[0, 3::5, 7] = 1
    parts[1, 3::5, 9] = 2
    parts[1, 0] = 5
    network = Network(2, 1, slots=1, lanes=32)
    check(network, parts.reshape(2, -1))
    updates = [packet for packet in network.packets if packet[MESSAGE_AT] >> 4 == 1]
    assert sum(packet[PRESENT_AT].bit_count() for packet in updates) == 4 + 5
    assert len(network.packets) == 2 * 2 * 5  # blocks 0, 3, 8, 13 and 18


@pytest.mark.parametrize(("blocks", "slots"), [(2, 1), (3, 2), (4, 2), (8, 4), (9, 4)])
def test_slots_without_a_block_send_nothing(blocks: int, slots: int) -> None:
    """A packet has two columns, so a slot has two blocks of a round, or one at the end.

    Of four slots two begin with a first tensor of two; four more are dealt from there on.
    """
    network = Network(2, 1, slots=4, lanes=64)
    check(network, np.ones((2, 2 * BLOCK), np.int32))
    assert len(network.packets) == 2 * 2
    network.packets.clear()
    check(network, np.ones((2, blocks * BLOCK), np.int32))
    rounds = -(-blocks // 2)
    assert len(network.packets) == 2 * 2 * rounds
    used = {packet[MESSAGE_AT + 2 : MESSAGE_AT + 4] for packet in network.packets}
    assert used == {((1 + place) % 4).to_bytes(2) for place in range(slots)}


def test_negative_zeros_and_nans_are_values() -> None:
    parts = np.zeros((2, 96), np.float32)
    parts[:, 0] = -0.0  # in both
    parts[0, 40] = -0.0  # in one: the sum is 0.0
    parts[1, 90] = np.nan
    (results,) = Network(2).reduce(parts)
    for result in results:
        assert np.signbit(result[[0, 40]]).tolist() == [True, False]
        assert np.isnan(result[90])
        assert np.count_nonzero(result) == 1


def test_a_result_that_is_lost_is_sent_again_to_whoever_lacks_it() -> None:
    lost: list[bytes] = []

    def fate(packet: bytes) -> list[int]:
        if packet[MESSAGE_AT] >> 4 == 2 and not lost:
            lost.append(packet)
            return []
        return [DELAY_PS]

    network = Network(3, 1, slots=1, lanes=32, fate=fate)
    check(network, np.arange(3 * 32, dtype=np.int32).reshape(3, 32))
    assert len(network.packets) == 6 + 2
    assert network.retransmissions == 2  # the update, and the result


def test_packets_that_are_no_ones_business_change_nothing() -> None:
    """Wrong slots, jobs, workers, types and lengths: heads at random, and packets cut short."""
    rng = Random(7)
    network = Network(2, 1, slots=2, lanes=64)

    def fate(packet: bytes) -> list[int]:
        spoilt = bytearray(packet)
        for _ in range(rng.randint(1, 3)):
            spoilt[rng.randrange(MESSAGE_AT, MESSAGE_AT + 12)] ^= 1 << rng.randrange(8)
        keep = {MESSAGE_AT + 4 + i for i in range(4)}  # a round that is not the present one
        for place in set(range(MESSAGE_AT, MESSAGE_AT + 12)) - keep:
            if rng.random() < 0.5:
                spoilt[place] = packet[place]
        spoilt[MESSAGE_AT + 4] ^= 0x40
        host = network._host[packet[30:34]]
        network.deliver(host, bytes(spoilt))
        network.deliver(host, packet[: rng.randint(60, len(packet) - 1)])
        return [DELAY_PS]

    network.fate = fate
    check(network, np.arange(2 * 300, dtype=np.int32).reshape(2, 300))


def test_rounds_go_on_through_tensors_of_all_sizes() -> None:
    rng = np.random.default_rng(3)
    sizes = (1, 0, 33, 700, 64, 5)
    tensors = [rng.integers(0, 3, (3, size)).astype(np.int32) for size in sizes]
    network = Network(3, 2, fate=misbehaving(Random(1), 0.1, 0.1, 0.1))
    check(network, *tensors)
    check(network, *tensors)


def test_lanes_must_make_blocks() -> None:
    for lanes in (0, 48, 288):
        with pytest.raises(ConfigError, match=f"lanes must be a multiple of 32 .*, got {lanes}"):
            Network(2, lanes=lanes)


def test_none_is_behind_all_positions() -> None:
    assert NONE == 0xFFFFFFFF


def test_jobs_beside_each_other_have_ports_of_their_own() -> None:
    ports = [port(job) for job in range(1, 17) for port in (aggregator_port, worker_port)]
    assert len(set(ports)) == 32


def test_a_queue_that_others_fill_lets_nothing_be_sent_again() -> None:
    """Each packet takes a tenth of a hop longer than the one before, up to sixty hops, as if
    others' packets came faster than their line takes them. The least timeout is twenty hops."""
    packets = count()
    network = Network(2, 1, slots=16, fate=lambda _: [DELAY_PS + DELAY_PS // 10 * next(packets)])
    check(network, np.ones((2, 150 * 64), np.float32))
    assert network.retransmissions == 0
