"""Oobleck: pipelines of several lengths, from templates that are made before anything fails.

Templates are found by divide and conquer: layers and workers are cut in two, and the best halves
put together. Pipelines that cover all workers are instantiated from them. When workers are lost,
pipelines that have become too short borrow from others, or merge, and what their workers lack is
copied from any owner that is left. Nothing is read from checkpoints, as long as each layer has one.

The paper deals micro-batches so that the variance of pipelines' times is least; here the slowest
pipeline is as fast as it can be. A worker is one unit, so nodes are not divided among stages.

Source:
    Jang et al., "Oobleck", SOSP 2023; released code, 3b7a0c2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from ringleaf.hosts.recoveries.common.interface import Recovery, too_few
from ringleaf.hosts.recoveries.common.plan import (
    LossSituation,
    PipelineShape,
    Plan,
    Span,
    deal,
    plan_of,
)

FAULTS = 1
"""Losses at a time that no layer's state is lost by: there is one pipeline more."""

NEAR = 2
"""How many workers more or less than asked for pipelines have at the start."""

TRIED = 50
"""The coverings, of those with most throughput, for which micro-batches are dealt."""


@dataclass(frozen=True, slots=True)
class PipelineTemplate:
    """Stages of a pipeline, and the three parts of its time.

    Attributes:
        edges: The first layer of each stage, and the number of layers.
        times: By stage, the time of a micro-batch.
    """

    edges: tuple[int, ...]
    times: tuple[float, ...]

    @property
    def slowest(self) -> int:
        """The slowest stage, the first of several."""
        return max(range(len(self.times)), key=lambda stage: (self.times[stage], -stage))

    @property
    def parts(self) -> tuple[float, float, float]:
        """The time to fill the pipeline, that of its steady state, and that to drain it."""
        stages, at = len(self.times), self.slowest
        rounds = 2 if stages == 1 else 2 * stages + at + 1
        return sum(self.times), rounds * self.times[at], sum(self.times[at:])

    @property
    def time(self) -> float:
        """The time by which templates are compared: T1 + T2 + T3."""
        return sum(self.parts)

    @property
    def micro_batch(self) -> float:
        """The time by which micro-batches are dealt: that of all, by the number of stages."""
        return self.time / len(self.times)

    @property
    def spans(self) -> list[Span]:
        """The layers of each stage."""
        return [Span(first, stop) for first, stop in pairwise(self.edges)]


def template(times: tuple[float, ...], workers: int) -> PipelineTemplate:
    """Return the template of so many workers, each of which has a stage.

    Args:
        times: By layer, the time of a micro-batch.
        workers: From 1 to the number of layers.
    """

    @cache
    def best(first: int, stop: int, count: int) -> PipelineTemplate:
        if count == 1:
            return PipelineTemplate((first, stop), (sum(times[first:stop]),))
        half = count // 2
        joined = [
            _join(best(first, cut, half), best(cut, stop, count - half))
            for cut in range(first + half, stop - (count - half) + 1)
        ]
        return min(joined, key=lambda each: each.time)

    return best(0, len(times), workers)


def _join(left: PipelineTemplate, right: PipelineTemplate) -> PipelineTemplate:
    return PipelineTemplate(left.edges[:-1] + right.edges, left.times + right.times)


def coverings(workers: int, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to cover a number of workers by templates of these sizes, largest first.

    Args:
        workers: The workers.
        sizes: The sizes, in falling order.
    """
    if not workers:
        yield ()
        return
    for at, size in enumerate(sizes):
        if size <= workers:
            for rest in coverings(workers - size, sizes[at:]):
                yield (size, *rest)


def reconfigure(pipelines: Sequence[Sequence[int]], lost: set[int], least: int) -> list[list[int]]:
    """Return the pipelines after workers have been lost.

    One that is too short borrows the last worker of the longest, the later of equals. If none can
    give, those that are too short merge; one that is left over joins the first that is long enough.

    Args:
        pipelines: The workers of each.
        lost: The workers that are lost.
        least: The fewest workers of a pipeline.
    """
    left = [[worker for worker in line if worker not in lost] for line in pipelines]
    left = [line for line in left if line]
    for line in left:
        while len(line) < least:
            giver = max(reversed(left), key=len)
            if len(giver) <= least:
                break
            line.append(giver.pop())
    short = [line for line in left if len(line) < least]
    whole = [line for line in left if len(line) >= least]
    merged: list[list[int]] = []
    while short:
        line = short.pop(0)
        while short and len(line) < least:
            line += short.pop(0)
        if len(line) >= least:
            merged.append(line)
        elif whole or merged:
            taker = (whole or merged)[0]
            taker[:] = sorted(taker + line)
    return sorted([*whole, *merged], key=lambda line: (len(line), line[0]))


class Oobleck(Recovery):
    """Instantiates templates, and copies layers from peers."""

    def begin(self, situation: LossSituation) -> Plan:
        """Return the pipelines that are soonest done with the batch, of those that cover all."""
        shape, alive = situation.shape, situation.alive
        longest, shortest = min(shape.layers, shape.pp + NEAR), max(shape.least, shape.pp - NEAR)
        ways = list(coverings(len(alive), range(longest, shortest - 1, -1)))
        ways = [way for way in ways if len(way) > FAULTS] or ways
        if not ways:
            raise too_few("oobleck", len(alive), shape.least)
        fastest = sorted(ways, key=lambda each: -_rate(shape, each))[:TRIED]
        way = min(fastest, key=lambda each: _slowest(shape, each))
        workers = iter(alive)
        return _plan(shape, [[next(workers) for _ in range(size)] for size in sorted(way)])

    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        """Return reconfigured pipelines; workers that have come back join the shortest ones."""
        shape, alive = situation.shape, set(situation.alive)
        if len(alive) < shape.least:
            raise too_few("oobleck", len(alive), shape.least)
        lost = set(plan.spans) - alive
        lines = reconfigure(plan.pipelines, lost, shape.least)
        new = sorted(alive - {worker for line in lines for worker in line})
        if not lines:
            lines, new = [new[: shape.least]], new[shape.least :]
        for worker in new:
            shortest = min(lines, key=len)
            if len(shortest) < shape.layers:
                shortest.append(worker)
        return _plan(shape, lines)


@lru_cache
def _template(layers: int, workers: int) -> PipelineTemplate:
    """Return the template of equal layers."""
    return template((1.0,) * layers, workers)


def _rate(shape: PipelineShape, sizes: Sequence[int]) -> float:
    """Return the micro-batches that pipelines do in a time, if each is always busy."""
    return sum(1 / _template(shape.layers, size).micro_batch for size in sizes)


def _slowest(shape: PipelineShape, sizes: Sequence[int]) -> float:
    """Return the time of the slowest of pipelines that share the batch."""
    costs = [_template(shape.layers, size).micro_batch for size in sizes]
    counts = deal(shape.batch, costs)
    return max(cost * count for cost, count in zip(costs, counts, strict=True))


def _plan(shape: PipelineShape, lines: Sequence[Sequence[int]]) -> Plan:
    templates = [_template(shape.layers, len(line)) for line in lines]
    pipelines = [
        list(zip(line, each.spans, strict=True))
        for line, each in zip(lines, templates, strict=True)
    ]
    return plan_of(pipelines, deal(shape.batch, [each.micro_batch for each in templates]))


RECOVERY = Oobleck()
