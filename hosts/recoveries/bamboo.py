"""Bamboo: each worker also has the layers of the next stage, and goes on with them at its loss.

A worker passes its micro-batches forward through the layers of its successor, too, while it would
wait (redundant computation), and keeps their state. If the successor is lost, it has both stages
from then on. If two that follow one another are lost, the second one's state is copied from another
pipeline; a pipeline that is too short is given up, and its workers make others whole.

Not told by the source: the state of the redundant layers is kept the same by their share in the
layers' all-reduces; a lost first stage goes to its successor, with a copy from another pipeline.

Source:
    Thorpe et al., "Bamboo: making preemptible instances resilient for affordable training of large
    DNNs", NSDI 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ringleaf.hosts.recoveries.common.interface import Recovery, too_few
from ringleaf.hosts.recoveries.common.plan import (
    LossSituation,
    PipelineShape,
    Plan,
    Span,
    deal,
    even_spans,
    plan_of,
)

Line = list[tuple[int, Span]]
"""A pipeline: its workers in order, with their layers."""


class Bamboo(Recovery):
    """Computes redundantly, and fails over to predecessors."""

    def begin(self, situation: LossSituation) -> Plan:
        """Return the pipelines as asked for, each worker with the next one's layers."""
        return _mirrored(super().begin(situation))

    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        """Return pipelines whose workers have taken over the stages behind them."""
        shape, alive = situation.shape, set(situation.alive)
        if len(alive) < shape.least:
            raise too_few("bamboo", len(alive), shape.least)
        lines = [
            _taken_over([(worker, plan.spans[worker]) for worker in route], alive)
            for route in plan.pipelines
        ]
        lines = [line for line in lines if len(line) >= shape.least]
        used = {worker for line in lines for worker, _ in line}
        lines = _with_idle(lines, sorted(alive - used), shape)
        return _mirrored(plan_of(lines, deal(shape.batch, [1.0] * len(lines))))


def _mirrored(plan: Plan) -> Plan:
    pairs = [pair for route in plan.pipelines for pair in pairwise(route)]
    return replace(plan, mirrors={worker: plan.spans[then] for worker, then in pairs})


def _taken_over(line: Line, alive: set[int]) -> Line:
    """Return a pipeline whose lost stages are those of the worker before, or of the first left."""
    left: Line = []
    first = 0
    for worker, span in line:
        if worker in alive:
            left.append((worker, Span(span.first if left else first, span.stop)))
        elif left:
            before, taken = left[-1]
            left[-1] = before, Span(taken.first, span.stop)
    return left


def _with_idle(lines: list[Line], idle: list[int], shape: PipelineShape) -> list[Line]:
    """Return pipelines after idle workers have made new ones, and others whole."""
    while len(idle) >= shape.pp and len(lines) < shape.dp:
        lines, idle = [*lines, _even(idle[: shape.pp], shape)], idle[shape.pp :]
    if not lines:
        return [_even(idle, shape)]
    for worker in idle:
        shortest = min(range(len(lines)), key=lambda at: len(lines[at]))
        if len(lines[shortest]) < shape.pp:
            workers = [each for each, _ in lines[shortest]]
            lines[shortest] = _even([*workers, worker], shape)
    return lines


def _even(workers: Sequence[int], shape: PipelineShape) -> Line:
    return list(zip(workers, even_spans(shape.layers, len(workers)), strict=True))


RECOVERY = Bamboo()
