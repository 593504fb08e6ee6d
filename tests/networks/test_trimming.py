"""Packet trimming: sums are exact whatever is cut, and nothing is dropped while headers fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective, Op, Schedule, Transfer
from ringleaf.errors import ConfigError
from ringleaf.networks.options import Assigned
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual import NetworkOptions, VirtualNetwork
from ringleaf.pausing import Pausing
from ringleaf.tensors import INT32, Array
from ringleaf.topologies.registry import build

FAST = settings(max_examples=4 if numba.config.DISABLE_JIT else 25, deadline=None)
RANKS = 6
TOPOLOGY = "leafspine,leaves=2,spines=2,hosts=3"


def run(elements: int, schedule: Schedule | None = None, **options: Any) -> tuple[RunResult, Array]:
    """Have five hosts send to the sixth, which adds, or another schedule; check the sum."""
    network = VirtualNetwork(build(TOPOLOGY), NetworkOptions(**options))
    if schedule is None:
        moves = tuple(Transfer(0, rank, 0, 0, Op.REDUCE) for rank in range(1, RANKS))
        schedule = Schedule(Collective.REDUCE, "incast", RANKS, 1, moves)
    arrays = network.arrays(elements, INT32, schedule)
    for rank, array in enumerate(arrays):
        array[:] = np.arange(elements) * (rank + 1) % 1009
    factors = np.arange(1, RANKS + 1)[:, None]
    total = (np.arange(elements) * factors % 1009).sum(axis=0)
    result = network.run(schedule, arrays)
    assert network.drain() == 0, "a packet leaked"
    assert np.array_equal(arrays[0], total)
    return result, arrays[0].copy()


@FAST
@given(
    elements=st.integers(1, 30_000),
    queue=st.integers(5_000, 150_000),
    room=st.integers(1, 20_000),
    congestion=st.sampled_from(("dctcp", "nscc", "hpcc", "swift", "dcqcn")),
    more=st.sampled_from(
        ({}, {"mtu": 1024}, {"loss": 0.02}, {"ecmp": True}, {"discipline": "drr"})
    ),
)
def test_sums_are_exact_whatever_is_cut(
    elements: int, queue: int, room: int, congestion: str, more: dict[str, Any]
) -> None:
    run(elements, queue_bytes=queue, trim_bytes=room, congestion=congestion, **more)


@pytest.mark.parametrize("algorithm", ["ring", "halvingdoubling", "tree"])
def test_collectives_are_exact(algorithm: str) -> None:
    schedule = ALGORITHMS[algorithm].build(RANKS, size_bytes=120_000)
    run(30_000, schedule, queue_bytes=8_000, trim_bytes=4_000, congestion="nscc")


@pytest.mark.parametrize("congestion", ["dctcp", "nscc"])
def test_headers_that_fit_leave_nothing_to_drop(congestion: str) -> None:
    dropped, _ = run(60_000, queue_bytes=30_000, congestion=congestion)
    trimmed, _ = run(60_000, queue_bytes=30_000, trim_bytes=1 << 20, congestion=congestion)
    assert dropped.drops > 0
    assert dropped.trims == 0
    assert trimmed.drops == 0
    assert trimmed.trims > 0
    assert trimmed.time_ps < dropped.time_ps


def test_headers_have_room_of_their_own_and_no_more() -> None:
    """Headers have 54 bytes, so a second one is dropped."""
    result, _ = run(60_000, queue_bytes=30_000, trim_bytes=60, congestion="nscc")
    assert result.drops > 0
    assert result.trims > 0
    assert result.peak_queue_bytes <= 30_000 + 60


def test_queues_that_are_never_full_cut_nothing() -> None:
    plain, _ = run(20_000, congestion="dctcp")
    trimming, _ = run(20_000, congestion="dctcp", trim_bytes=1 << 16)
    assert trimming.trims == 0
    assert plain.finish_ps == trimming.finish_ps
    assert plain.link_bytes == trimming.link_bytes


@FAST
@given(threads=st.integers(2, 4), queue=st.integers(10_000, 60_000))
def test_any_number_of_threads_gives_the_same(threads: int, queue: int) -> None:
    found = []
    for count in (1, threads):
        result, _ = run(
            20_000, queue_bytes=queue, trim_bytes=8_000, congestion="nscc", threads=count
        )
        found.append((result.finish_ps, result.link_bytes, result.trims, result.drops))
    assert found[0] == found[1]


def test_what_does_not_go_together_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="trim: traces can't replay it yet, got record"):
        NetworkOptions(trim_bytes=1000, record=tmp_path)
    with pytest.raises(ConfigError, match="trim: with pfc no queue is full, got 1000 and pfc 9:9"):
        NetworkOptions(trim_bytes=1000, pfc=Pausing(9, 9))
    other = Assigned(Path(__file__).parents[1] / "switches" / "programs" / "padding.json", ())
    with pytest.raises(ConfigError, match=r"trim: s0 must run a program with ipv4\.dscp"):
        VirtualNetwork(build(TOPOLOGY), NetworkOptions(trim_bytes=1000, assigned={"s0": other}))
