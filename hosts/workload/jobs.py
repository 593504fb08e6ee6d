"""Data-parallel training jobs as graphs of work, planned or as they ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.training.job import JobIteration, TrainingJob
from ringleaf.hosts.training.model import DTYPE_BYTES, Model
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.hosts.training.steps import BackwardStep, backward_steps, made_by
from ringleaf.hosts.workload.graph import (
    CalledCollective,
    CallGroup,
    Graph,
    NodeKind,
    RankWork,
    WorkNode,
)
from ringleaf.hosts.workload.replay import NodeTimes

GROUP = "dp"


def graph_of_job(
    model: Model,
    pieces: Sequence[GradientPiece],
    *,
    ranks: int,
    iterations: int,
    start_ps: int = 0,
    steps: Sequence[BackwardStep] | None = None,
) -> Graph:
    """Return the graph of a job, in which all ranks have the same nodes.

    A piece of the gradient is reduced when the backward passes of its layers are over, and the
    next forward pass of a layer waits for its pieces.

    Args:
        model: The model that is trained.
        pieces: The pieces of its gradient.
        ranks: Number of ranks.
        iterations: Number of iterations.
        start_ps: Time at which it starts.
        steps: The steps of a backward pass; None: as `backward_steps` gives them.
    """
    steps = backward_steps(model) if steps is None else steps
    by_step = made_by(steps, pieces)
    nodes: list[WorkNode] = []

    def compute(name: str, time_ps: int, after: Sequence[int]) -> int:
        nodes.append(WorkNode(len(nodes), NodeKind.COMPUTE, name, time_ps, after=tuple(after)))
        return len(nodes) - 1

    item = DTYPE_BYTES[model.dtype]
    last = [compute("start", start_ps, ())] if start_ps else []
    reduced: dict[int, list[int]] = {}  # by layer, the nodes that its next forward pass awaits
    for number in range(iterations):
        for layer, each in enumerate(model.layers):
            after = (*last, *reduced.get(layer, ()))
            last = [compute(f"forward {number + 1} {each.name}", each.forward_ps, after)]
        reduced = {}
        for step, done in zip(steps, by_step, strict=True):
            name = model.layers[step.layer].name
            last = [compute(f"backward {number + 1} {name}", step.time_ps, last)]
            for piece in done:
                for part in piece.layers:
                    reduced.setdefault(part, []).append(len(nodes))
                nodes.append(
                    WorkNode(
                        len(nodes),
                        NodeKind.COLLECTIVE,
                        f"gradient {number + 1} {piece.number}",
                        size_bytes=piece.elements * item,
                        call=CalledCollective.ALLREDUCE,
                        group=0,
                        after=tuple(last),
                    )
                )
    work = RankWork(tuple(nodes))
    return Graph(model.name, (work,) * ranks, (CallGroup(GROUP, tuple(range(ranks))),))


Reduced = Mapping[tuple[int, int], tuple[int, int, int]]
"""By iteration, from 0, and number of a piece: when it was ready, started and ended."""


def times_of_job(job: TrainingJob, reduced: Reduced) -> list[NodeTimes]:
    """Return the times of the nodes that `graph_of_job` has for a job's complete iterations."""
    times = [NodeTimes(0, 0, job.start_ps)] if job.start_ps else []
    for number, iteration in enumerate(complete(job)):
        times += _iteration(job, number, iteration, reduced)
    return times


def complete(job: TrainingJob) -> list[JobIteration]:
    """Return the iterations of a job that are over."""
    return [each for each in job.history if each.end_ps < FOREVER_PS]


def _iteration(
    job: TrainingJob, number: int, iteration: JobIteration, reduced: Reduced
) -> list[NodeTimes]:
    times = []
    now_ps = iteration.start_ps
    layers, starts = job.model.layers, iteration.starts_ps
    for layer, wait_ps, start_ps in zip(layers, iteration.waits_ps, starts, strict=False):
        ready_ps, now_ps = now_ps + wait_ps, start_ps + layer.forward_ps
        times.append(NodeTimes(ready_ps, start_ps, now_ps))
    by_step = made_by(job.steps, job.pieces)
    for step, done, start_ps in zip(job.steps, by_step, starts[len(layers) :], strict=True):
        ready_ps, now_ps = now_ps, start_ps + step.time_ps
        times.append(NodeTimes(ready_ps, start_ps, now_ps))
        times += [NodeTimes(*reduced[number, piece.number]) for piece in done]
    return times
