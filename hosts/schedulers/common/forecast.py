"""Forecasts of jobs that run alone: how long an iteration takes, and when its transfers go on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.schedulers.common.hooks import CollectivePs
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.model import DTYPE_BYTES, Model
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.hosts.training.steps import BackwardStep

ITERATIONS = 4
"""Iterations that are played: the last but one has others before and behind it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """A job's iteration, in picoseconds from its begin; `busy_ps` are its transfers."""

    period_ps: int
    busy_ps: tuple[tuple[int, int], ...]


def foresee(
    model: Model,
    pieces: list[GradientPiece],
    collective_ps: CollectivePs,
    steps: Sequence[BackwardStep] | None = None,
) -> Forecast:
    """Play a job whose pieces are reduced one after the other, as they become ready."""
    job = TrainingJob(model, pieces, iterations=ITERATIONS, steps=steps)
    item = DTYPE_BYTES[model.dtype]
    queue: deque[GradientPiece] = deque()
    end_ps, busy = FOREVER_PS, list[tuple[int, int]]()
    while not job.done:
        now_ps = min(job.next_ps(), end_ps)
        if job.next_ps() <= end_ps:
            job.reach(now_ps)
            queue += job.take_ready()
        else:
            job.reduced(queue.popleft(), now_ps)
            end_ps = FOREVER_PS
        if queue and end_ps == FOREVER_PS:
            end_ps = now_ps + collective_ps(queue[0].elements * item)
            busy.append((now_ps, end_ps))
    starts = [each.start_ps for each in job.history]
    period_ps = starts[-1] - starts[-2]
    own = [(a - starts[-2], b - starts[-2]) for a, b in busy if starts[-2] <= a < starts[-1]]
    return Forecast(period_ps, tuple(_joined(own)))


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in which those that touch are one."""
    merged: list[tuple[int, int]] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
