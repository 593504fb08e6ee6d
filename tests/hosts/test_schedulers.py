"""Flow schedulers' decisions in small situations, worked out by hand."""

from __future__ import annotations

from hosts.schedulers.interface import Item, Release, Situation, Standing
from hosts.schedulers.registry import SCHEDULERS
from hosts.training.pieces import Piece

STANDING = Standing(
    layers=4, iterations=10, iterations_done=0, size_bytes=4000, compute_ps=1000, weight=1.0
)


def item(front: int, ready_ps: int, job: int = 0) -> Item:
    """Return a piece whose front-most layer is `front`."""
    return Item(job, Piece(0, 0, 100, (front,)), 400, ready_ps)


def released(name: str, waiting: list[Item], under_way: list[Item] | None = None) -> list[Item]:
    """Return what a scheduler starts, in its order."""
    now = Situation(
        now_ps=100,
        waiting=waiting,
        under_way=[Release(each) for each in under_way or []],
        jobs={0: STANDING, 1: STANDING},
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
