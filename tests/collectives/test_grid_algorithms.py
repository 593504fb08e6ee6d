"""BML, and all-to-all along a grid: who sends what to whom, by hand and as published."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ringleaf.collectives.algorithms.common import alltoall_grid
from ringleaf.collectives.cost import AlphaBeta
from ringleaf.collectives.critical_path import sent_bytes
from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError
from ringleaf.experiments.setup.placing import embedding_of
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve
from ringleaf.topologies import registry

NEW = ("bml", "bucket-2d", "alltoall-2d", "alltoall-hier")


def factors(ranks: int) -> tuple[int, ...]:
    first = next((size for size in (4, 3, 2) if ranks % size == 0), 1)
    return (first, ranks // first)


@pytest.mark.parametrize("name", NEW)
def test_numbers_of_ranks_to_64(name: str) -> None:
    for ranks in (*range(1, 18), 24, 31, 32, 33, 49, 64):
        order = tuple(np.random.default_rng(ranks).permutation(ranks).tolist())
        embedding = GridEmbedding((), factors(ranks), order, is_torus=ranks % 3 == 0)
        for known in (GridEmbedding(), embedding):
            schedule = ALGORITHMS[name].build(
                ranks, size_bytes=1 << 20, hierarchy=factors(ranks), embedding=known
            )
            assert verify(schedule).identical


def test_bml_sends_as_much_to_each_neighbour_and_no_one_else() -> None:
    """On BCube(3, 1): 2 (n - 1) / n of S, by two ports; the n - 1 servers of each level alike."""
    schedule = ALGORITHMS["bml"].build(9, hierarchy=(3, 3))
    assert sent_bytes(schedule, 18 * 36) == [2 * 8 * 72] * 9
    rows = schedule.columns
    sent: Counter[tuple[int, int]] = Counter()
    for src, dst, size in zip(rows.src, rows.dst, rows.stop - rows.start, strict=True):
        assert src // 3 == dst // 3 or src % 3 == dst % 3
        sent[int(src), int(dst)] += int(size)
    assert set(sent.values()) == {8}  # of 18 chunks; twice 8 / 9 of them, over 4 neighbours
    assert schedule.steps == 4


@pytest.mark.parametrize(("topo", "algo", "least_us"), [("bcube,n=3,k=1", "bml", 298.26)])
def test_bml_takes_half_of_a_parameter_servers_time(topo: str, algo: str, least_us: float) -> None:
    """2 (n - 1) / n of 4 MiB over two ports of 100 Gbit/s takes 298.26 us."""
    fabric = AlphaBeta(rate_bps=200_000_000_000, alpha_ps=0)
    cost = ALGORITHMS[algo].cost(
        9, size_bytes=1 << 22, embedding=embedding_of(registry.build(topo), 9), fabric=fabric
    )
    assert cost.time_ps / 1e6 == pytest.approx(least_us, abs=0.01)


def test_data_goes_to_its_column_first_and_then_to_its_row() -> None:
    """Two by two: data for the opposite rank goes by way of the neighbour in the row."""
    rows = ALGORITHMS["alltoall-hier"].build(4, hierarchy=(2, 2)).columns
    moves = sorted(zip(rows.step.tolist(), rows.src % 4, rows.dst % 4, strict=True))
    first = [(0, 0, 1), (0, 0, 1), (0, 0, 2), (0, 1, 0), (0, 1, 0), (0, 1, 3)]
    first += [(0, 2, 0), (0, 2, 3), (0, 2, 3), (0, 3, 1), (0, 3, 2), (0, 3, 2)]
    assert moves == [*first, (1, 0, 2), (1, 1, 3), (1, 2, 0), (1, 3, 1)]


def test_data_that_is_passed_on_lies_in_one_layer_of_scratch_memory() -> None:
    """Each rank passes on two chunks, of which no two have one number; chunks are numbered by the
    distance that they go, and by their part. In a step, data for the next rank goes first.
    """
    schedule = alltoall_grid.grid_all_to_all(4, (2, 2))
    verify(schedule)
    rows = schedule.columns.by_chunk()
    assert (schedule.chunks, schedule.scratch) == (8, 1)
    to_0 = (rows.dst == 0) & (rows.step == 0)
    chunks = {(int(a), int(c)) for a, c in zip(rows.src[to_0], rows.start[to_0], strict=True)}
    assert chunks == {(1, 6), (1, 7), (2, 4), (2, 5)}
    for step in (0, 1):
        far = (rows.dst % 4 - rows.src % 4)[rows.step == step] % 4
        assert far.tolist() == sorted(far)


def test_opposite_ranks_of_a_torus_are_reached_both_ways() -> None:
    """In a ring of four, each rank sends three chunks of half a block either way, one on."""
    torus = GridEmbedding((), (4,), is_torus=True)
    rows = ALGORITHMS["alltoall-2d"].build(4, size_bytes=1 << 20, embedding=torus).columns
    rows = rows.by_chunk()
    sent = Counter((int(a) % 4, int(b) % 4) for a, b in zip(rows.src, rows.dst, strict=True))
    assert sent == {(a, (a + by) % 4): 4 for a in range(4) for by in (1, 3)}


def test_small_messages_are_not_cut() -> None:
    small, large = (
        ALGORITHMS["alltoall-2d"].build(16, size_bytes=size, hierarchy=(4, 4)).chunks
        for size in (1 << 12, 1 << 20)
    )
    assert (small, large) == (16, 32)


def test_links_of_a_torus_are_loaded_alike() -> None:
    """16 ranks: in a ring of 4, mean distance 1 to all 4; so S / 4 by each link of either way.

    All links of a 4x4 torus carry the same, where routes alone put two thirds on one way.
    """
    experiment = CollectiveExperiment(
        resolve({"topo": "torus2d,x=4,y=4", "algo": "alltoall-2d", "data": "none"})
    )
    rows = experiment.schedule(ALGORITHMS["alltoall-2d"], 1 << 24).columns.by_chunk()
    sent = Counter((int(a) % 16, int(b) % 16) for a, b in zip(rows.src, rows.dst, strict=True))
    assert len(sent) == 64
    assert set(sent.values()) == {32}  # of 64 chunks


def test_a_grid_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ScheduleError, match="product of hierarchy must be 6 ranks, got"):
        ALGORITHMS["bml"].build(6, hierarchy=(4, 2))
