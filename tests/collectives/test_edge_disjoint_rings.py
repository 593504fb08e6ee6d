"""Rings on several cycles: what each rank sends, and where."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ringleaf.collectives.embedding import GridEmbedding
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError
from ringleaf.topologies.cycles import grid_cycles

RINGS = ("rings", "allgather-rings", "reducescatter-rings", "broadcast-rings", "reduce-rings")


@pytest.mark.parametrize("name", RINGS)
def test_numbers_of_ranks_to_64(name: str) -> None:
    for ranks in (*range(1, 18), 24, 31, 32, 33, 49, 64):
        sizes = next((s for s in (8, 4, 3, 2) if ranks % s == 0), 1)
        embedding = GridEmbedding(grid_cycles((sizes, ranks // sizes)))
        schedule = ALGORITHMS[name].build(
            ranks, segments=1 + ranks % 2, root=ranks // 3, embedding=embedding
        )
        assert verify(schedule).identical


@pytest.mark.parametrize(("name", "rounds"), [("rings", 2), ("allgather-rings", 1)])
def test_each_neighbour_gets_its_quarter(name: str, rounds: int) -> None:
    """On two cycles a rank sends `rounds` (n - 1) / n of a quarter to each of its neighbours."""
    cycles = grid_cycles((4, 4))
    rows = ALGORITHMS[name].build(16, embedding=GridEmbedding(cycles)).columns
    sent = Counter(zip(rows.src.tolist(), rows.dst.tolist(), strict=True))
    near = {(a, b) for cycle in cycles for a, b in zip(cycle, np.roll(cycle, 1), strict=True)}
    assert set(sent) == near | {(b, a) for a, b in near}
    assert set(sent.values()) == {rounds * 15}  # of 64 chunks


def test_a_broadcast_goes_round_each_ring_from_its_root() -> None:
    rows = ALGORITHMS["broadcast-rings"].build(5, segments=1, root=2).columns
    hops = list(zip(rows.src.tolist(), rows.dst.tolist(), strict=True))
    ways = [
        [hop for hop, at in zip(hops, rows.start, strict=True) if at == part] for part in (0, 1)
    ]
    assert ways == [[(2, 3), (3, 4), (4, 0), (0, 1)], [(2, 1), (1, 0), (0, 4), (4, 3)]]
    assert rows.step.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_more_segments_for_larger_tensors() -> None:
    few, many = (
        ALGORITHMS["rings"].build(8, size_bytes=size).chunks for size in (1 << 12, 1 << 19)
    )
    assert few == 16
    assert many > few


def test_a_cycle_without_a_rank_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"rings: order must have each of 3 ranks once"):
        ALGORITHMS["rings"].build(3, embedding=GridEmbedding(((0, 1, 1),)))
