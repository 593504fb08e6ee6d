"""Ranks whose memory is given back and had again end up with the same bits, in the same time.

Pages that are given back are written over here, so that it shows if anybody reads them.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_regions import assert_same

import ringleaf.networks.endpoints.leases as leases
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.experiments.data import Noise
from ringleaf.networks.endpoints.leases import can_lease
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.tensors import FLOAT32, Array
from ringleaf.topologies.graph import hosts
from ringleaf.topologies.registry import build

PAGE = 1024
GARBAGE = 0xAB

FAST = settings(
    max_examples=4 if numba.config.DISABLE_JIT else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the addresses of pages that were given back, which have garbage in them."""
    pages: list[int] = []

    def spoil(address: int, size: int) -> None:
        ctypes.memset(address, GARBAGE, size)
        pages.append(address)

    monkeypatch.setattr(leases, "_discard", spoil)
    monkeypatch.setattr(leases, "PAGE_BYTES", PAGE)
    return pages


def make(topology: str, **options: Any) -> VirtualNetwork:
    return VirtualNetwork(build(topology), NetworkOptions(**options), seed=5)


def schedule_of(network: VirtualNetwork, algorithm: str, elements: int) -> Schedule:
    ranks, hierarchy = len(hosts(network.graph)), network.graph.graph["hierarchy"]
    return ALGORITHMS[algorithm].build(ranks, size_bytes=4 * elements, hierarchy=hierarchy)


def spoiled(network: VirtualNetwork, elements: int, schedule: Schedule) -> list[Array]:
    arrays = network.arrays(elements, FLOAT32, schedule)
    for array in arrays:
        array.view(np.uint8)[:] = GARBAGE
    return arrays


@FAST
@given(
    topology=st.sampled_from(("leafspine,leaves=1,spines=1,hosts=5", "fattree,k=4", "bcube")),
    algorithm=st.sampled_from(
        (
            *("ring", "biring", "tree", "doubletree", "halvingdoubling", "recursivedoubling"),
            *("chain", "binomial", "swing", "allpairs", "alltoall", "allgather", "reducescatter"),
            *("broadcast", "reduce", "hierring", "blueconnect", "broadcast-scatter"),
        )
    ),
    elements=st.integers(1, 40_000),
    threads=st.sampled_from((1, 2)),
    loss=st.sampled_from((0.0, 0.02)),
)
def test_results_and_times_are_those_of_whole_tensors(
    given_back: list[int], topology: str, algorithm: str, elements: int, threads: int, loss: float
) -> None:
    options = {"loss": loss, "threads": threads, "watch_messages": 10_000}
    inputs = Noise(7, len(hosts(build(topology))), elements, FLOAT32)

    network = make(topology, **options)
    schedule = schedule_of(network, algorithm, elements)
    whole = network.arrays(elements, FLOAT32, schedule)
    for rank, array in enumerate(whole):
        inputs.fill(rank, 0, array)
    expected = network.run(schedule, whole)

    leased = make(topology, **options)
    arrays = spoiled(leased, elements, schedule)
    found = leased.run(schedule, arrays, fill=inputs.fill)

    assert_same(found, expected)
    assert leased.leases is not None
    leased.leases.restore()
    for mine, right in zip(arrays, whole, strict=True):
        assert (mine.view(np.int32) == right.view(np.int32)).all()


def test_a_ring_gives_back_what_it_has_passed_on_and_what_all_have(given_back: list[int]) -> None:
    ranks, elements = 8, 8 * 4096  # chunks of 16 pages
    network = make(f"leafspine,leaves=1,spines=1,hosts={ranks}")
    schedule = schedule_of(network, "ring", elements)
    arrays = spoiled(network, elements, schedule)
    network.run(schedule, arrays, fill=Noise(7, ranks, elements, FLOAT32).fill)

    # Each rank passes on its sums of all chunks but one, and 7 of 8 results of a chunk are the
    # first's. A chunk does not begin with a page: at least 15 whole pages are given back.
    chunks = ranks * (ranks - 1) + ranks * (ranks - 1)
    assert chunks * 15 <= len(given_back) <= chunks * 17
    assert network.leases is not None
    assert len(np.unique(network.leases.addresses)) == schedule.chunks


def test_inputs_are_made_once_and_only_those_that_are_read(given_back: list[int]) -> None:
    ranks, elements = 4, 4 * 1024
    network = make(f"leafspine,leaves=1,spines=1,hosts={ranks}")
    schedule = schedule_of(network, "broadcast", elements)
    made: list[tuple[int, int, int]] = []

    def fill(rank: int, start: int, out: Array) -> None:
        made.append((rank, start, start + out.size))
        out[:] = rank

    arrays = spoiled(network, elements, schedule)
    network.run(schedule, arrays, fill=fill)
    assert {rank for rank, _, _ in made} == {0}
    assert sum(stop - start for _, start, stop in made) == elements


def test_an_error_while_inputs_are_made_ends_the_run(given_back: list[int]) -> None:
    network = make("leafspine,leaves=1,spines=1,hosts=4")
    schedule = schedule_of(network, "ring", 4096)

    def fill(rank: int, start: int, out: Array) -> None:
        raise OSError("nothing to read")

    with pytest.raises(OSError, match="nothing to read"):
        network.run(schedule, spoiled(network, 4096, schedule), fill=fill)


@pytest.mark.parametrize(
    ("algorithm", "leased"),
    [
        ("ring", True),
        ("ps", False),  # servers hold sums of their own
        ("switchml", False),
        ("dsar-split", False),  # codecs look at whole parts of tensors
    ],
)
def test_tensors_of_ranks_alone_can_be_leased(algorithm: str, leased: bool) -> None:
    schedule = ALGORITHMS[algorithm].build(16, size_bytes=1 << 20, servers=2)
    assert can_lease(schedule) is leased
