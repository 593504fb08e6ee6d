"""Allreduces in two halves: what both do together is what the whole does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.aggregate import in_network_allreduce
from ringleaf.collectives.algorithms.ring import ring_all_gather, ring_allreduce
from ringleaf.collectives.collective import Collective
from ringleaf.collectives.oracle import execute
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Op, Schedule, Transfer, check
from ringleaf.core.tensors import as_arrays, as_tensors
from ringleaf.networks.endpoints.halves import halves

OF_HOSTS = [
    name
    for name, each in ALGORITHMS.items()
    if each.collective is Collective.ALLREDUCE and not each.in_network
]


@given(st.sampled_from(OF_HOSTS), st.integers(2, 9), st.integers(1, 40))
def test_both_halves_do_what_the_whole_does(name: str, ranks: int, elements: int) -> None:
    whole = ALGORITHMS[name].build(ranks, size_bytes=4 * elements)
    parts = halves(whole)
    if parts is None:
        return
    given = [np.random.default_rng(rank).random(elements, np.float32) for rank in range(ranks)]
    wanted = as_arrays(execute(whole, as_tensors(given)))
    for part in parts:
        check(part)
        given = as_arrays(execute(part, as_tensors(given)))

    assert all(np.array_equal(a, b) for a, b in zip(given, wanted, strict=True))


@pytest.mark.parametrize("name", ["ring", "halvingdoubling"])
def test_halves_of_lower_bound_algorithms_have_half_the_rows(name: str) -> None:
    whole = ALGORITHMS[name].build(8, size_bytes=1 << 20)
    parts = halves(whole)
    assert parts is not None
    assert [2 * len(part.columns) for part in parts] == [len(whole.columns)] * 2


def test_sums_of_switches_and_other_collectives_have_no_halves() -> None:
    assert halves(in_network_allreduce(4)) is None
    assert halves(ring_all_gather(4)) is None
    assert halves(ring_allreduce(1)) is None
    assert halves(ALGORITHMS["ps"].build(4, size_bytes=64, servers=2)) is None


def test_what_is_copied_before_it_is_added_up_has_no_halves() -> None:
    rows = (Transfer(0, 0, 1, 0, Op.COPY), Transfer(1, 1, 0, 0, Op.REDUCE))
    assert halves(Schedule(Collective.ALLREDUCE, "by hand", 2, 1, rows)) is None
