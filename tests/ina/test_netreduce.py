"""NetReduce from tensor to tensor, in virtual time: exact sums, bytes on links, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.errors import ConfigError
from ringleaf.ina.netreduce.control import Connection, entities
from ringleaf.ina.netreduce.values import check_range
from ringleaf.ina.registry import SYSTEMS
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.systems import JobRequest, ResourceShare
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build
from ringleaf.topologies.trees import aggregation_tree

LANES = 64
TREE = "leafspine,leaves=3,spines=2,hosts=2"


def network(topology: str = TREE, **options: float | None) -> VirtualNetwork:
    given = NetworkOptions(system=SYSTEMS["netreduce"], lanes=LANES, **options)  # type: ignore[arg-type]
    return VirtualNetwork(build(topology), given)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32 - 1),
    topology=st.sampled_from([TREE, "leafspine,leaves=1,spines=1,hosts=5", "torus2d,x=2,y=2"]),
    loss=st.sampled_from([0.0, 0.01, 0.1]),
    strange=st.sampled_from([0.0, 0.1]),
    slots=st.sampled_from([1, 4, 9, None]),
    counts=st.lists(st.integers(1, 3000), min_size=1, max_size=3),
)
def test_integers_are_exact_whatever_links_do(
    seed: int, topology: str, loss: float, strange: float, slots: int | None, counts: list[int]
) -> None:
    chance = np.random.default_rng(seed)
    used = network(topology, loss=loss, duplicate=strange, reorder=strange, slots=slots)
    ranks = len(hosts(used.graph))
    for count in counts:  # one network, whose sequence numbers go on
        tensors = [chance.integers(-(2**31), 2**31, count).astype(np.int32) for _ in range(ranks)]
        total = np.sum(tensors, axis=0, dtype=np.int32)
        used.run(in_network_allreduce(ranks, "netreduce"), tensors)
        assert all((tensor == total).all() for tensor in tensors)


def test_floats_are_within_half_a_unit_of_each_worker() -> None:
    """20 bits of fraction: half of 2^-20 of each of six, and rounding to float32."""
    chance = np.random.default_rng(3)
    tensors = [chance.uniform(-50, 50, 700).astype(np.float32) for _ in range(6)]
    exact = np.sum(tensors, axis=0, dtype=np.float64)

    network(loss=0.02).run(in_network_allreduce(6, "netreduce"), tensors)

    for tensor in tensors:
        assert (np.abs(tensor - exact) <= 6 * 2.0**-21 + np.abs(exact) * 2.0**-23).all()
        assert tensor.tobytes() == tensors[0].tobytes()


def test_each_packet_passes_each_link_of_the_tree_once_up_and_once_down() -> None:
    """10 packets of 64 values: 14 + 20 + 8 + 12 + 256 + 4 bytes, and 24 of line; other packets are
    acknowledgements, of at most 90 bytes on the line.
    """
    used = network("leafspine,leaves=1,spines=1,hosts=4")
    tensors = [np.ones(640, np.int32) for _ in range(4)]
    result = used.run(in_network_allreduce(4, "netreduce"), tensors)

    data = 10 * (314 + 24)
    for size in result.link_bytes.values():
        if size:
            assert data <= size <= data + 20 * 90
    assert result.retransmissions == 0


def request(**changed: object) -> JobRequest:
    given: dict[str, object] = {
        "number": 1,
        "members": ["h0", "h1"],
        "servers": (),
        "share": ResourceShare(),
        "ring": 0,
        "lanes": LANES,
        "slots": None,
        "rtt_ps": 8_000_000,
        "ecmp": False,
        **changed,
    }
    return JobRequest(**given)  # type: ignore[arg-type]


def test_values_whose_sums_could_overflow_are_refused() -> None:
    check_range(np.array([511.9, -511.9], np.float32), 4)  # 4 * 512 * 2^20 = 2^31
    for bad in (512.0, -600.0, np.inf, np.nan):
        with pytest.raises(ConfigError, match="netreduce: magnitudes must be at most 51"):
            check_range(np.array([bad], np.float32), 4)


@pytest.mark.parametrize(("slots", "window"), [(1, 1), (4, 4), (5, 4), (127, 64), (128, 128)])
def test_a_window_is_the_largest_power_of_two_of_its_slots(slots: int, window: int) -> None:
    job = SYSTEMS["netreduce"].join(build(TREE), network().store, request(slots=slots))
    assert job.window_bytes == 4 * window * LANES


def test_jobs_that_do_not_fit_are_refused() -> None:
    graph = build(TREE)
    store = network().store
    with pytest.raises(ConfigError, match="netreduce job 1: a switch must have a slot for each"):
        SYSTEMS["netreduce"].join(graph, store, request(share=ResourceShare(0, 2, 1)))
    tree = aggregation_tree(graph, ["h0", "h1"])
    ring = [Connection("h0", "h1", 1)] * 1025
    with pytest.raises(ConfigError, match="netreduce job 1: switches know 1024 connections, got 1"):
        entities(graph, tree, SwitchmlJob(1, 4), ring)
    with pytest.raises(ConfigError, match="netreduce: lanes must be one of"):
        SYSTEMS["netreduce"].program(65)
