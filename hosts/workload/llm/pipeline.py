"""Pipelines: the order in which each rank does its forward and backward passes.

A micro-batch passes all stages forward, then backward. A worker has one stage, or several
(`INTERLEAVED`, `CHIMERA`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from ringleaf.errors import ConfigError, choose

GPIPE = "gpipe"
ONE_F_ONE_B = "1f1b"
INTERLEAVED = "interleaved"
CHIMERA = "chimera"


BACKWARD = 2
"""Length of a backward pass, in forward ones: it has twice the products of matrices."""


class Part(Enum):
    """The part of a pass that is done.

    Backward passes may be cut in two: gradients of inputs, for which the stage before waits, and
    gradients of weights, for which nobody does. A redundant pass is a forward one through the
    layers of the next stage, whose result stays where it is.
    """

    WHOLE = ""
    INPUT = "input"
    WEIGHT = "weight"
    REDUNDANT = "redundant"


class MicroBatchPass(NamedTuple):
    """A pass of one micro-batch through one stage.

    `replica` is 0, or 1 for the pipeline of Chimera that goes the other way.
    """

    backward: bool
    stage: int
    micro: int
    replica: int = 0
    part: Part = Part.WHOLE


Order = list[list[MicroBatchPass]]
"""By worker, its tasks in their order."""


def worker_of(pp: int, stage: int, replica: int = 0) -> int:
    """Return the worker that has a stage."""
    return pp - 1 - stage % pp if replica else stage % pp


def gpipe(pp: int, micro: int, chunks: int = 1) -> Order:
    """Return the order in which all forward passes come before all backward passes.

    Source:
        Huang et al., "GPipe", NeurIPS 2019.
    """
    forward, backward = range(micro), range(micro - 1, -1, -1)
    return [
        [MicroBatchPass(False, w, m) for m in forward]
        + [MicroBatchPass(True, w, m) for m in backward]
        for w in range(pp)
    ]


def one_forward_one_backward(pp: int, micro: int, chunks: int = 1) -> Order:
    """Return the order in which backward passes begin as soon as they can, with a flush at the end.

    Source:
        Narayanan et al., "Memory-efficient pipeline-parallel DNN training" (PipeDream-flush), ICML
        2021.
    """
    return [
        _warm_up(
            [MicroBatchPass(False, w, m) for m in range(micro)],
            [MicroBatchPass(True, w, m) for m in range(micro)],
            pp - 1 - w,
        )
        for w in range(pp)
    ]


def interleaved(pp: int, micro: int, chunks: int) -> Order:
    """Return the order of 1F1B in which each worker has several chunks of the model.

    Source:
        Narayanan et al., "Efficient large-scale language model training on GPU clusters using
        Megatron-LM", SC 2021, section 2.2.
    """

    def task(backward: bool, worker: int, turn: int) -> MicroBatchPass:
        chunk = turn // pp % chunks
        number = turn // (pp * chunks) * pp + turn % pp
        return MicroBatchPass(
            backward, (chunks - 1 - chunk if backward else chunk) * pp + worker, number
        )

    turns = range(micro * chunks)
    return [
        _warm_up(
            [task(False, w, turn) for turn in turns],
            [task(True, w, turn) for turn in turns],
            2 * (pp - 1 - w) + (chunks - 1) * pp,
        )
        for w in range(pp)
    ]


def chimera(pp: int, micro: int, chunks: int = 1) -> Order:
    """Return the order of two pipelines that go opposite ways, each with half of the micro-batches.

    Each worker takes, in steps of equal length, what it can do next: backward passes first, then
    passes of later stages. At most pp - stage forward passes of a stage wait for their backward
    passes. With micro-batches in multiples of pp that leaves pp - 2 idle steps, as in the paper.

    Source:
        Li and Hoefler, "Chimera", SC 2021.
    """
    half = micro // 2
    order: Order = [[] for _ in range(pp)]
    ends: dict[MicroBatchPass, int] = {}
    done = [[[0, 0] for _ in range(pp)] for _ in range(2)]  # by replica, stage and direction
    step = 0

    def is_ready(task: MicroBatchPass) -> bool:
        before = task.stage + 1 if task.backward else task.stage - 1
        if not 0 <= before < pp:
            return True
        return ends.get(task._replace(stage=before), step + 1) <= step

    def choices(worker: int) -> list[MicroBatchPass]:
        passes = []
        for replica in range(2):
            stage = worker_of(pp, worker, replica)
            forward, backward = done[replica][stage]
            first = replica * half
            if forward < half and forward - backward < pp - stage:
                passes.append(MicroBatchPass(False, stage, first + forward, replica))
            if backward < forward:
                passes.append(MicroBatchPass(True, stage, first + backward, replica))
        return [task for task in passes if is_ready(task)]

    while any(len(tasks) < 4 * half for tasks in order):
        chosen = [
            (worker, min(tasks, key=lambda task: (not task.backward, -task.stage, task.micro)))
            for worker in range(pp)
            if (tasks := choices(worker))
        ]
        step += 1
        for worker, task in chosen:
            order[worker].append(task)
            ends[task] = step
            done[task.replica][task.stage][task.backward] += 1
    return order


def _warm_up(
    forward: list[MicroBatchPass], backward: list[MicroBatchPass], count: int
) -> list[MicroBatchPass]:
    """Return so many forward passes, then pairs of a forward and a backward pass, then the rest."""
    count = min(count, len(forward))
    pairs = [task for pair in zip(forward[count:], backward, strict=False) for task in pair]
    return forward[:count] + pairs + backward[len(forward) - count :]


SCHEDULES: dict[str, Callable[[int, int, int], Order]] = {
    GPIPE: gpipe,
    ONE_F_ONE_B: one_forward_one_backward,
    INTERLEAVED: interleaved,
    CHIMERA: chimera,
}


def check_pipeline(name: str, pp: int, micro: int, chunks: int, where: str) -> None:
    """Check that a schedule can do with so many workers, micro-batches and chunks.

    Raises:
        ConfigError: If not.
    """
    choose(f"{where}schedule", "schedule", name, SCHEDULES)
    if name == INTERLEAVED:
        if chunks < 2 or pp < 2:
            raise ConfigError(
                f"{where}chunks: an interleaved pipeline has 2 chunks and 2 ranks at least, got "
                f"{chunks} and {pp}"
            )
        if micro % pp:
            raise ConfigError(
                f"{where}micro_batches: must be a multiple of pp, {pp}, if interleaved, got {micro}"
            )
    elif chunks != 1:
        raise ConfigError(
            f"{where}chunks: must be 1 unless the schedule is interleaved, got {chunks}"
        )
    if name == CHIMERA and (pp % 2 or micro % 2):
        raise ConfigError(
            f"{where}schedule: chimera needs even pp and micro_batches, got {pp} and {micro}"
        )


def bubble(name: str, pp: int, micro: int, chunks: int = 1) -> float:
    """Return the idle time of a pipeline with equal stages and no communication.

    It is relative to the time without any bubble: (p - 1) / (v m). Of Chimera it is that of its
    order with backward passes twice as long as forward ones. The paper's (p - 2) / (2 m + p - 2)
    of the whole is for passes of equal length, and far less if there are more micro-batches than
    stages.
    """
    if name == CHIMERA:
        busy = 3 * micro
        return (duration(chimera(pp, micro)) - busy) / busy
    return (pp - 1) / (micro * chunks)


def duration(order: Order, backward: int = BACKWARD) -> int:
    """Return the time of a pipeline of one stage per worker and replica, in forward passes.

    Args:
        order: One in which all passes can run; communication takes no time.
        backward: The length of a backward pass.
    """
    ends: dict[MicroBatchPass, int] = {}
    free = [0] * len(order)
    left = [iter(tasks) for tasks in order]
    heads = [next(tasks, None) for tasks in left]
    while any(heads):
        for worker, task in enumerate(heads):
            needs = [] if task is None else _needs(task, len(order))
            if task is None or any(each not in ends for each in needs):
                continue
            start = max(free[worker], *(ends[each] for each in needs), 0)
            free[worker] = ends[task] = start + (backward if task.backward else 1)
            heads[worker] = next(left[worker], None)
    return max(free)


def _needs(task: MicroBatchPass, stages: int) -> list[MicroBatchPass]:
    """Return the passes that must be over before a pass."""
    before = task.stage + 1 if task.backward else task.stage - 1
    passes = [task._replace(stage=before)] if 0 <= before < stages else []
    return [*passes, task._replace(backward=False)] if task.backward else passes
