"""Algorithms of few steps, and those of tori: what they send, by hand or as published."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from ringleaf.collectives.algorithms.swing import partners
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.verify import verify
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve

NEW = (
    *("recursivedoubling", "allgather-bruck", "alltoall-bruck", "allgather-pat", "binomial"),
    *("reducescatter-pat", "swing", "bucket", "biring", "broadcast-scatter", "reduce-gather"),
    *("allpairs", "chain"),
)


def moved(schedule: Schedule) -> list[int]:
    """Return the chunks that the busiest rank sends in each step in which any does."""
    rows = schedule.columns.take(~schedule.is_local(schedule.columns))
    sizes = np.zeros((schedule.steps, schedule.ranks), np.int64)
    np.add.at(sizes, (rows.step, rows.src % schedule.ranks), rows.stop - rows.start)
    return [int(most) for most in sizes.max(axis=1) if most]


@pytest.mark.parametrize("name", NEW)
def test_all_numbers_of_ranks_to_64(name: str) -> None:
    for ranks in range(1, 65):
        sizes = (2, ranks // 2) if ranks % 2 == 0 else (ranks,)
        assert verify(ALGORITHMS[name].build(ranks, size_bytes=1 << 16, hierarchy=sizes)).identical


@pytest.mark.parametrize(
    ("name", "ranks", "chunks"),
    [
        ("recursivedoubling", 8, [1, 1, 1]),
        ("recursivedoubling", 6, [1, 1, 1, 1]),
        ("allgather-bruck", 8, [1, 2, 4]),
        ("allgather-bruck", 5, [1, 2, 1]),  # the paper's example of five
        ("allgather-pat", 8, [1, 2, 4]),
        ("reducescatter-pat", 8, [4, 2, 1]),
        ("alltoall-bruck", 8, [4, 4, 4]),
        ("alltoall-bruck", 5, [2, 2, 1]),  # chunks 1, 3; 2, 3; 4
        ("swing", 8, [4, 2, 1, 1, 2, 4]),
        ("broadcast-scatter", 4, [2, 1, 1, 1, 1]),
        ("binomial", 8, [1] * 6),
    ],
)
def test_steps_and_their_messages(name: str, ranks: int, chunks: list[int]) -> None:
    assert moved(ALGORITHMS[name].build(ranks)) == chunks


def test_far_messages_of_pat_are_small_and_those_of_bruck_large() -> None:
    for name, distances in (("allgather-pat", [4, 2, 1]), ("allgather-bruck", [1, 2, 4])):
        rows = ALGORITHMS[name].build(8).columns
        apart = (rows.dst - rows.src) % 8
        if name == "allgather-bruck":
            apart = 8 - apart  # backwards
        assert [sorted(set(apart[rows.step == step].tolist())) for step in range(3)] == [
            [each] for each in distances
        ]


def test_swing_meets_its_published_partners() -> None:
    """Distances 1, -1, 3 from rank 0 of 8, and -1, 1, -3 from rank 1."""
    met = np.stack([partners(8, step) for step in range(3)])
    assert met[:, 0].tolist() == [1, 7, 3]
    assert met[:, 1].tolist() == [0, 2, 6]
    for row in met:
        assert row[row].tolist() == list(range(8))


@pytest.mark.parametrize(("x", "y"), [(4, 4), (3, 5), (8, 8)])
def test_a_link_of_a_torus_carries_one_part_at_a_time(x: int, y: int) -> None:
    """In each step a rank sends to different neighbours, on half of its links in 2D at least."""
    rows = ALGORITHMS["bucket"].build(x * y, hierarchy=(x, y)).columns
    torus = nx.grid_2d_graph(y, x, periodic=True)
    seen: set[tuple[int, int, int]] = set()
    for step, src, dst in zip(
        rows.step.tolist(), rows.src.tolist(), rows.dst.tolist(), strict=True
    ):
        assert torus.has_edge(divmod(src, x), divmod(dst, x))
        assert (step, src, dst) not in seen or x != y
        seen.add((step, src, dst))


def test_a_torus_is_used_in_all_directions(tmp_path: object) -> None:
    """4 x 4 at 4 MiB and 100 Gbit/s: 2 x 15/16 x 1 MiB on each of four links is 157 us."""
    times = {}
    for algo in ("ring", "biring", "bucket"):
        given = {"topo": "torus2d,x=4,y=4", "algo": algo, "size": "4M", "data": "none"}
        (found,) = CollectiveExperiment(resolve({**given, "out": str(tmp_path)})).run()
        times[algo] = found.row.time_ps / 1e6
    assert times["bucket"] < 1.15 * 157.3
    assert 1.7 < times["ring"] / times["biring"] < 2.1
    assert times["ring"] / times["bucket"] > 3.4
