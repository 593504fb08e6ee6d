"""Plans of an iteration: which worker has which layers, and where each micro-batch goes.

A worker is the ranks that share layers by tensor and context parallelism. Its number is that of its
place among all, dp + d * pp of replica dp and stage pp at first, whether it is in a plan or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ringleaf.errors import ScheduleError


class Span(NamedTuple):
    """Layers, one after the other."""

    first: int
    stop: int

    @property
    def layers(self) -> range:
        """The numbers of the layers."""
        return range(self.first, self.stop)

    def __str__(self) -> str:
        return f"{self.first}-{self.stop - 1}"


@dataclass(frozen=True, slots=True)
class PipelineShape:
    """A model in pipelines, as it was asked for.

    Attributes:
        layers: Layers of the model.
        pp: Workers of a pipeline.
        dp: Pipelines.
        micro_batches: Micro-batches of an iteration, of each pipeline.
        least: The fewest workers whose memory holds the model.
    """

    layers: int
    pp: int
    dp: int
    micro_batches: int
    least: int

    @property
    def batch(self) -> int:
        """The micro-batches of an iteration, which stay as many whoever is lost."""
        return self.dp * self.micro_batches

    @property
    def workers(self) -> int:
        """The number of workers that are asked for."""
        return self.dp * self.pp


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of an iteration.

    Attributes:
        spans: By worker, the layers that it passes micro-batches through.
        routes: By micro-batch, its workers from the first stage to the last.
        mirrors: By worker, layers of another that it passes its micro-batches through, too, and
            keeps a copy of.
        cuts_backward: Whether gradients of weights are computed apart from those of inputs.
        paces: By worker, the factor by which it is slower, as far as the order of passes knows.
        is_limited: Whether no more forward passes wait for their backward passes than in 1F1B.
    """

    spans: Mapping[int, Span]
    routes: tuple[tuple[int, ...], ...]
    mirrors: Mapping[int, Span] = field(default_factory=dict)
    cuts_backward: bool = False
    paces: Mapping[int, float] = field(default_factory=dict)
    is_limited: bool = True

    @property
    def key(self) -> tuple[object, ...]:
        """All that an iteration depends on."""
        maps = (self.spans, self.mirrors, self.paces)
        flags = (self.cuts_backward, self.is_limited)
        return self.routes, flags, *(tuple(sorted(each.items())) for each in maps)

    @property
    def pipelines(self) -> list[tuple[int, ...]]:
        """The different routes, in the order in which micro-batches take them."""
        return list(dict.fromkeys(self.routes))

    def held(self, worker: int) -> set[int]:
        """Return the layers whose state a worker has."""
        spans = (each.get(worker, Span(0, 0)) for each in (self.spans, self.mirrors))
        return {layer for span in spans for layer in span.layers}

    def check(self, layers: int) -> None:
        """Check that every micro-batch passes all layers once.

        Raises:
            ScheduleError: If not.
        """
        for route in self.routes:
            edges = [(0, 0), *(self.spans[worker] for worker in route), (layers, layers)]
            if any(before[1] != after[0] for before, after in pairwise(edges)):
                spans = ", ".join(str(self.spans[worker]) for worker in route)
                raise ScheduleError(f"plan: must lead through all of {layers}, got {spans}")


class LossSituation(NamedTuple):
    """All that a decision depends on, besides the plan so far.

    Attributes:
        shape: The model in pipelines.
        alive: The workers that are there, in order.
        paces: By worker, the factor by which it computes more slowly than others.
        seed: Of what is chosen at random.
    """

    shape: PipelineShape
    alive: tuple[int, ...]
    paces: Mapping[int, float]
    seed: int


def even_spans(layers: int, count: int) -> list[Span]:
    """Return layers cut into spans as equal as whole numbers can be."""
    edges = [layers * part // count for part in range(count + 1)]
    return [Span(first, stop) for first, stop in pairwise(edges)]


def regular_pipelines(shape: PipelineShape, workers: Sequence[int]) -> list[list[int]]:
    """Return the pipelines as asked for: worker dp + d * pp has stage pp of replica dp."""
    return [
        [workers[replica + shape.dp * stage] for stage in range(shape.pp)]
        for replica in range(shape.dp)
    ]


def deal(batch: int, costs: Sequence[float]) -> list[int]:
    """Return how many micro-batches each pipeline gets, so that the last one is done soonest.

    Args:
        batch: Micro-batches in all.
        costs: By pipeline, the time of a micro-batch.
    """
    counts = [0] * len(costs)
    for _ in range(batch):
        first = min(range(len(costs)), key=lambda at: (costs[at] * (counts[at] + 1), at))
        counts[first] += 1
    return counts


def plan_of(
    pipelines: Sequence[Sequence[tuple[int, Span]]], counts: Sequence[int], **more: object
) -> Plan:
    """Return the plan of pipelines that each get so many micro-batches, in turns.

    Args:
        pipelines: By pipeline, its workers in their order, with their layers.
        counts: By pipeline, its micro-batches.
        more: Further values of the plan.
    """
    lines = [tuple(worker for worker, _ in pipeline) for pipeline in pipelines]
    pairs = list(zip(lines, counts, strict=True))
    routes = [line for turn in range(max(counts)) for line, count in pairs if turn < count]
    spans = {worker: span for pipeline in pipelines for worker, span in pipeline}
    return Plan(spans, tuple(routes), **more)  # type: ignore[arg-type]


class LayerCopy(NamedTuple):
    """The state of some layers that one worker sends to another."""

    source: int
    target: int
    layers: tuple[int, ...]


def copies_for(old: Plan, new: Plan, alive: Iterable[int]) -> list[LayerCopy] | None:
    """Return which layers must be copied, each from the owner that sends the fewest so far.

    Returns:
        The copies; None if a layer's state has no owner that is alive.
    """
    states = {worker: old.held(worker) for worker in alive}
    sizes = dict.fromkeys(states, 0)
    layers_of: dict[tuple[int, int], list[int]] = {}
    for target in sorted(new.spans):
        for layer in sorted(new.held(target) - states.get(target, set())):
            owners = [worker for worker, layers in states.items() if layer in layers]
            if not owners:
                return None
            source = min(owners, key=lambda worker: (sizes[worker], worker))
            sizes[source] += 1
            layers_of.setdefault((source, target), []).append(layer)
    return [LayerCopy(*pair, tuple(layers)) for pair, layers in layers_of.items()]
