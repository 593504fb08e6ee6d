"""Small situations for flow schedulers, and what they decide in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ringleaf.hosts.schedulers.common.interface import Item, Release, Situation, Standing
from ringleaf.hosts.schedulers.common.registry import SCHEDULERS
from ringleaf.hosts.training.model import Layer, Model
from ringleaf.hosts.training.pieces import GradientPiece

NOW_PS = 100
LINE_BPS = 100 * 10**9
UP, OTHER = ("s0", "s1"), ("s0", "s2")

STANDING = Standing(
    layers=4,
    iterations=10,
    iterations_done=0,
    size_bytes=4000,
    compute_ps=1000,
    weight=1.0,
    link_bps=LINE_BPS,
    left_bytes=4000,
    link_ps={UP: 80.0},
    line_ps=80.0,
)


def job(**facts: object) -> Standing:
    """Return a job's standing with some facts of its own."""
    return replace(STANDING, **facts)  # type: ignore[arg-type]


def item(
    front: int, ready_ps: int = 0, job: int = 0, size: int = 400, *, gathers: bool = False
) -> Item:
    """Return a piece whose front-most layer is `front`."""
    return Item(job, GradientPiece(front, 0, size // 4, (front,)), size, ready_ps, gathers)


def decide(
    name: str,
    waiting: Sequence[Item],
    jobs: dict[int, Standing] | None = None,
    under_way: Sequence[Release] = (),
) -> list[Release]:
    """Return the releases of a scheduler; without `jobs` there is one, in no special standing."""
    return SCHEDULERS[name].release(Situation(NOW_PS, waiting, under_way, jobs or {0: STANDING}))


def model(
    sizes: Sequence[int], backward_ps: Sequence[int], forward_ps: Sequence[int] = ()
) -> Model:
    """Return a model of layers with so many elements and such times, the front layer first."""
    forward_ps = forward_ps or [0] * len(sizes)
    layers = zip(sizes, forward_ps, backward_ps, strict=True)
    return Model("small", "", "float32", tuple(Layer("", *each) for each in layers))
