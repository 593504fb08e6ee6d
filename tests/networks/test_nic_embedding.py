"""Embedding exchange by NICs: exact results, and bytes and times that follow from the look-ups."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nic_runs import RANKS, Exchanges, star

from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.core.tensors import FLOAT32
from ringleaf.errors import ConfigError
from ringleaf.hosts.nic.cache import LFU, LRU
from ringleaf.hosts.nic.embedding.sizes import INVALIDATE, UPDATE, ExchangeSizes
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.virtual import VirtualNetwork

SIZES = ExchangeSizes(RANKS, rows=60, dim=8, bags=6, per_bag=5)


@settings(max_examples=12, deadline=None)
@given(
    st.builds(
        ExchangeSizes,
        ranks=st.integers(2, 4),
        rows=st.integers(4, 70),
        dim=st.integers(1, 20),
        bags=st.integers(1, 6),
        per_bag=st.integers(1, 6),
        cache=st.integers(0, 20),
        policy=st.sampled_from([LRU, LFU]),
        pools=st.booleans(),
        coherence=st.sampled_from([UPDATE, INVALIDATE]),
        local_cache=st.integers(0, 6),
        row_ps=st.sampled_from([0, 50_000]),
    ),
    st.sampled_from([0.0, 0.02]),
    st.integers(1, 9),
)
def test_results_are_those_of_the_whole_table(
    sizes: ExchangeSizes, share: float, seed: int
) -> None:
    """Also if packets are lost, duplicated and late."""
    options = NetworkOptions(mtu_bytes=256, loss=share, duplicate=share, reorder=share)
    found = Exchanges(sizes, seed=seed, options=options)
    for _ in range(3):
        found.iterate()
    assert found.nics.wrong == 0


def test_a_wrong_row_would_be_found() -> None:
    """By hand: a row of rank 1 that it does not own up to makes its bags' sums wrong."""
    from ringleaf.hosts.nic.embedding.state import table_of

    found = Exchanges(SIZES)
    table_of(found.network.arena, found.network.states[1])[:] += 1
    found.nics.forward(found.reference.draw())
    assert found.nics.wrong > 0


def test_without_cache_each_lookup_travels() -> None:
    """4 bytes there, 4 for each element back, and both together for its gradient."""
    found = Exchanges(SIZES)
    found.iterate()
    remote = sum(len(found.remote(0, rank)) for rank in range(RANKS))
    counted = found.nics.counters()
    assert counted["index_bytes"] == 4 * remote
    assert counted["vector_bytes"] == 4 * 8 * remote
    assert counted["gradient_bytes"] == (4 + 4 * 8) * remote
    assert counted["coherence_bytes"] == counted["hits"] == 0


def test_without_cache_it_is_two_plain_all_to_alls() -> None:
    """As many look-ups for each owner: hosts' own all-to-all of as many bytes, then of vectors."""
    dim, bags = 64, 32
    sizes = ExchangeSizes(RANKS, rows=64 * RANKS, dim=dim, bags=bags, per_bag=RANKS)
    plain_ps = plain_bytes = 0
    for chunk in (bags, bags * dim):
        elements = chunk * RANKS
        schedule = ALGORITHMS["alltoall"].build(RANKS, size_bytes=4 * elements)
        network = VirtualNetwork(star(), NetworkOptions())
        arrays = network.arrays(elements, FLOAT32, schedule)
        for array in arrays:
            array[:] = 0
        outcome = network.run(schedule, arrays)
        plain_ps += outcome.time_ps
        plain_bytes += sum(outcome.wire_bytes)
    found = Exchanges(sizes)
    owners = np.arange(RANKS)
    batch = np.random.default_rng(1).integers(0, 64, (RANKS, bags, RANKS)) * RANKS + owners
    found.iterate(batch)  # senders have no credit yet
    forward, _ = found.iterate(batch)
    assert forward.time_ps == pytest.approx(plain_ps, rel=0.01)
    assert sum(forward.wire_bytes) == pytest.approx(plain_bytes, rel=0.02)  # fewer acknowledgements


def test_a_cache_of_all_rows_leaves_first_touches() -> None:
    found = Exchanges(replace(SIZES, cache=60))
    for _ in range(4):
        found.iterate()
    touched = sum(
        len({int(row) for batch in range(4) for row in found.remote(batch, rank)})
        for rank in range(RANKS)
    )
    remote = sum(len(found.remote(batch, rank)) for batch in range(4) for rank in range(RANKS))
    counted = found.nics.counters()
    assert counted["index_bytes"] == 4 * touched
    assert counted["vector_bytes"] == 4 * 8 * touched
    assert counted["hits"] == remote - touched


def test_hits_are_those_of_lru() -> None:
    found = Exchanges(replace(SIZES, cache=7))
    for _ in range(3):
        found.iterate()
    hits = 0
    for rank in range(RANKS):
        kept = OrderedDict[int, None]()
        for row in (int(row) for batch in range(3) for row in found.remote(batch, rank)):
            hits += row in kept
            kept[row] = None
            kept.move_to_end(row)
            if len(kept) > 7:
                kept.popitem(last=False)
    assert found.nics.counters()["hits"] == hits


def test_sums_of_bags_leave_one_vector_for_each_bag_and_owner() -> None:
    found = Exchanges(replace(SIZES, pools=True))
    found.iterate()
    remote = pairs = 0
    for rank, bags in enumerate(found.batches[0]):
        for bag in bags:
            owners = [int(row) % RANKS for row in bag if row % RANKS != rank]
            remote += len(owners)
            pairs += len(set(owners))
    counted = found.nics.counters()
    assert counted["index_bytes"] == 4 * remote
    assert counted["vector_bytes"] == 4 * 8 * pairs
    assert counted["gradient_bytes"] == 4 * remote + 4 * 8 * pairs


@pytest.mark.parametrize(("coherence", "per_copy"), [(UPDATE, 4 + 4 * 8), (INVALIDATE, 4)])
def test_each_copy_of_a_changed_row_is_told_of(coherence: int, per_copy: int) -> None:
    """All rows fit: every rank has a copy of each row that it touched, until that is invalid."""
    found = Exchanges(replace(SIZES, cache=60, coherence=coherence))
    copies: list[set[int]] = [set() for _ in range(RANKS)]
    told = 0
    for batch in range(3):
        found.iterate()
        changed = {int(row) for row in found.batches[batch].reshape(-1)}
        for rank in range(RANKS):
            copies[rank] |= {int(row) for row in found.remote(batch, rank)}
            told += len(copies[rank] & changed)
            if coherence == INVALIDATE:
                copies[rank] -= changed
    assert found.nics.counters()["coherence_bytes"] == per_copy * told


def test_a_row_that_left_a_cache_is_told_of_no_longer() -> None:
    """By hand: rank 0 has room for one row. It looks up 1, then 2, then 2; rank 1 changes row 1.

    After the second batch, rank 0 tells that row 1 has gone: 4 bytes. News of rows: in each
    batch, of the one row that rank 0 has, which it has changed itself: 4 + 4 bytes.
    """
    sizes = ExchangeSizes(2, rows=6, dim=1, bags=1, per_bag=1, cache=1)
    found = Exchanges(sizes)
    for own, other in ((1, 1), (3, 1), (3, 1)):  # rows 1, 3 and 5 are rank 1's
        found.iterate(np.array([[[own]], [[other]]]))
    counted = found.nics.counters()
    assert found.nics.wrong == 0
    assert counted["hits"] == 1
    assert counted["coherence_bytes"] == 4 + 3 * 8


def test_each_host_without_nic_adds_its_latency() -> None:
    """Forward, two messages follow from each other; backward, one. A row takes no time."""
    nic, host = Exchanges(SIZES), Exchanges(SIZES, latency_ps=10_000_000)
    for found in (nic, host):
        found.iterate()  # senders have no credit yet
    fast, slow = nic.iterate(), host.iterate()
    assert slow[0].time_ps - fast[0].time_ps == pytest.approx(20_000_000, abs=200_000)
    assert slow[1].time_ps - fast[1].time_ps == pytest.approx(10_000_000, abs=200_000)


def test_rows_of_the_host_take_time_unless_the_nic_has_them() -> None:
    """By hand: both look the same row of rank 1 up four times. Rank 1 reads it eight times, and
    with a cache of its own rows, once."""
    sizes = ExchangeSizes(2, rows=4, dim=1, bags=1, per_bag=4, row_ps=1_000_000)
    batch = np.full((2, 1, 4), 1)
    times = []
    for local_cache in (0, 1):
        found = Exchanges(replace(sizes, local_cache=local_cache))
        found.iterate(batch)
        before = found.nics.counters()["local_hits"]
        times.append(found.iterate(batch)[0].time_ps)
        hits = found.nics.counters()["local_hits"] - before
        assert hits == (16 if local_cache else 0)  # both passes; the row stays
    assert times[0] - times[1] == pytest.approx(8_000_000, abs=2_500_000)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ranks": 1}, "ranks must be 2 to 256, got 1"),
        ({"rows": 3}, "a row for each rank at least, got 3"),
        ({"dim": 0}, "dim must be >= 1, got 0"),
        ({"bags": 0}, "bags must be >= 1, got 0"),
        ({"per_bag": 0}, "per_bag must be >= 1, got 0"),
    ],
)
def test_sizes_out_of_range_are_refused(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SIZES, **wrong)  # type: ignore[arg-type]
