"""Flow schedulers' decisions in small situations, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import Item, Release, Situation, Standing
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.pieces import GradientPiece

STANDING = Standing(
    layers=4, iterations=10, iterations_done=0, size_bytes=4000, compute_ps=1000, weight=1.0
)
JOBS = {0: STANDING, 1: STANDING}


def item(front: int, ready_ps: int, job: int = 0) -> Item:
    """Return a piece whose front-most layer is `front`."""
    return Item(job, GradientPiece(0, 0, 100, (front,)), 400, ready_ps)


def released(name: str, waiting: list[Item], under_way: list[Item] | None = None) -> list[Item]:
    """Return what a scheduler starts, in its order."""
    now = Situation(
        now_ps=100,
        waiting=waiting,
        under_way=[Release(each) for each in under_way or []],
        jobs=JOBS,
    )
    return [release.item for release in SCHEDULERS[name].release(now)]


BACK, MIDDLE, FRONT = item(3, 1), item(2, 2), item(0, 3)


def test_fifo_starts_the_oldest_gradient_whatever_its_layer() -> None:
    assert released("fifo", [BACK, MIDDLE, FRONT]) == [BACK]


def test_layer_priority_serves_front_layers_first() -> None:
    """P3, section 3: the layers that the next forward pass needs first; two at a time here."""
    assert released("layers", [BACK, MIDDLE, FRONT]) == [FRONT, MIDDLE]


def test_layer_priority_of_equal_layers_goes_by_age() -> None:
    older, younger = item(1, 5), item(1, 6)
    assert released("layers", [younger, older]) == [older, younger]


def test_layer_priority_counts_what_is_under_way_per_job() -> None:
    other = item(3, 4, job=1)
    assert released("layers", [MIDDLE, FRONT, other], under_way=[BACK]) == [FRONT, other]
    assert released("layers", [FRONT], under_way=[BACK, MIDDLE]) == []


def decisions(name: str, waiting: list[Item], jobs: dict[int, Standing]) -> list[Release]:
    now = Situation(now_ps=100, waiting=waiting, under_way=[], jobs=jobs)
    return SCHEDULERS[name].release(now)


def test_tensorexpress_gives_front_layers_the_most_urgent_class() -> None:
    """Eight classes over four layers: layers 0, 2 and 3 get 7, 3 and 1."""
    found = decisions("tensorexpress", [BACK, MIDDLE, FRONT], JOBS)
    assert [(each.item, each.priority) for each in found] == [(FRONT, 7), (MIDDLE, 3), (BACK, 1)]


def test_jpas_serves_jobs_in_an_early_stage_first() -> None:
    late, early = replace(STANDING, iterations_done=9), replace(STANDING, iterations_done=1)

    found = decisions("jpas", [item(0, 1, job=0), item(0, 2, job=1)], {0: late, 1: early})

    assert [(each.item.job, each.priority) for each in found] == [(1, 7), (0, 6)]


def test_jpas_breaks_ties_by_weight() -> None:
    light, heavy = STANDING, replace(STANDING, weight=2.0)

    found = decisions("jpas", [item(0, 1, job=0), item(0, 2, job=1)], {0: light, 1: heavy})

    assert [each.item.job for each in found] == [1, 0]


def test_shares_divide_the_line_among_rivals_by_weight() -> None:
    """Weights 3 and 1 on a line of 100 Gbit/s: 75 and 25."""
    jobs = {
        0: replace(STANDING, weight=3.0, link_bps=100 * 10**9, rivals=frozenset({1})),
        1: replace(STANDING, weight=1.0, link_bps=100 * 10**9, rivals=frozenset({0})),
    }

    found = decisions("shares", [item(0, 1, job=0), item(0, 2, job=1)], jobs)

    assert [each.rate_bps for each in found] == [75 * 10**9, 25 * 10**9]
