"""Other orders of ranks: the same collective, by other ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.collectives.rank_order import reordered
from ringleaf.collectives.registry import ALGORITHMS
from ringleaf.collectives.schedule import Collective
from ringleaf.collectives.verify import verify
from ringleaf.errors import ScheduleError
from ringleaf.experiments.workloads.collective.experiment import CollectiveExperiment
from ringleaf.experiments.workloads.collective.kind import resolve


@given(st.data(), st.integers(1, 12))
def test_any_order_does_the_collective(data: st.DataObject, ranks: int) -> None:
    names = [
        name
        for name, each in ALGORITHMS.items()
        if each.collective is not Collective.ALL_TO_ALL or name == "alltoall"  # others pass data on
    ]
    algorithm = ALGORITHMS[data.draw(st.sampled_from(names))]
    order = data.draw(st.permutations(range(ranks)))
    root = data.draw(st.integers(0, ranks - 1))
    rooted = algorithm.collective in (Collective.BROADCAST, Collective.REDUCE)

    schedule = reordered(algorithm.build(ranks, size_bytes=1 << 14, root=order.index(root)), order)

    verify(schedule)
    assert schedule.root == (root if rooted else schedule.root)


def test_a_ring_goes_by_the_order() -> None:
    rows = reordered(ALGORITHMS["ring"].build(4), (0, 2, 1, 3)).columns
    assert {(a, b) for a, b in zip(rows.src.tolist(), rows.dst.tolist(), strict=True)} == {
        *((0, 2), (2, 1), (1, 3), (3, 0))
    }


@pytest.mark.parametrize(
    ("name", "order", "complaint"),
    [
        (
            "ring",
            (0, 1, 1),
            r"ring rank order: order must have each of 3 ranks once, got \(0, 1, 1",
        ),
        (
            "alltoall-bruck",
            (1, 0, 2, 3),
            "bruck rank order: can't change that of an all-to-all that",
        ),
    ],
)
def test_orders_that_do_not_fit_are_refused(
    name: str, order: tuple[int, ...], complaint: str
) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        reordered(ALGORITHMS[name].build(3 if name == "ring" else 4), order)


@pytest.mark.parametrize(("rank_order", "most"), [("given", 2), ("topology", 1)])
def test_a_ring_by_the_topology_has_neighbours_only(rank_order: str, most: int) -> None:
    """In a torus by number, the ring's ends of rows are two links apart, or in opposite corners."""
    experiment = CollectiveExperiment(
        resolve({"topo": "torus2d,x=4,y=4", "algo": "ring", "rank_order": rank_order})
    )
    rows = experiment.schedule(ALGORITHMS["ring"], 1 << 10).columns
    steps = {
        min(abs(a % 4 - b % 4), 4 - abs(a % 4 - b % 4))
        + min(abs(a // 4 - b // 4), 4 - abs(a // 4 - b // 4))
        for a, b in zip(rows.src.tolist(), rows.dst.tolist(), strict=True)
    }
    assert max(steps) == most


def test_a_random_order_is_the_seeds() -> None:
    def sources(seed: str) -> list[int]:
        experiment = CollectiveExperiment(
            resolve({"topo": "leafspine", "algo": "ring", "rank_order": "random", "seed": seed})
        )
        return list(experiment.schedule(ALGORITHMS["ring"], 1 << 10).columns.dst[:16])

    assert sources("1") == sources("1") != sources("2")
