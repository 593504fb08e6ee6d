"""Stages that several workers have: who is left of each, and who takes over."""

from __future__ import annotations

from ringleaf.hosts.recoveries.common.interface import too_few
from ringleaf.hosts.recoveries.common.plan import LossSituation, Plan, Span

Stages = dict[Span, list[int]]
"""By stage, in their order, its workers."""


def stages_left(name: str, situation: LossSituation, plan: Plan) -> Stages:
    """Return the stages with those that are left; each has a worker.

    Workers that have come back take the stages with the fewest. A stage that has nobody left gets
    a worker of the stage with the most, though without a state.

    Args:
        name: The recovery's, for messages.
        situation: Who is left.
        plan: The plan so far, all of whose workers have one of the stages.

    Raises:
        NoPlanError: If there are more stages than workers.
    """
    alive = situation.alive
    stages: Stages = {span: [] for span in sorted(set(plan.spans.values()))}
    if len(alive) < len(stages):
        raise too_few(name, len(alive), len(stages), "a swarm of stages")
    for worker in alive:
        if worker in plan.spans:
            stages[plan.spans[worker]].append(worker)
    for worker in alive:
        if worker not in plan.spans:
            min(stages.values(), key=len).append(worker)
    for workers in stages.values():
        if not workers:
            workers.append(max(stages.values(), key=len).pop())
    return {span: sorted(workers) for span, workers in stages.items()}


def rebalance(stages: Stages) -> Stages:
    """Return stages after workers have moved to those with most load, while that lowers it."""
    left = {span: list(workers) for span, workers in stages.items()}
    while True:
        rich, poor = max(left.values(), key=len), min(left.values(), key=len)
        if len(rich) - len(poor) < 2:
            return {span: sorted(workers) for span, workers in left.items()}
        poor.append(rich.pop())


def spans_of(stages: Stages) -> dict[int, Span]:
    """Return the layers of each worker."""
    return {worker: span for span, workers in stages.items() for worker in workers}
