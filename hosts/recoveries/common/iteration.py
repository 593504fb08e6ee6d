"""The graphs of work of a plan: an iteration, and the copies of layers' states."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property

from ringleaf.hosts.recoveries.common.passes import passes_of
from ringleaf.hosts.recoveries.common.plan import LayerCopy, Plan, Span
from ringleaf.hosts.workload.graph import CallGroup, Graph, NodeKind, RankWork, WorkNode
from ringleaf.hosts.workload.llm.generate import generate_for
from ringleaf.hosts.workload.llm.layout import DATA, TENSOR, RankPlace
from ringleaf.hosts.workload.llm.pipeline import MicroBatchPass, Part
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes

STATE = "state"
"""The label of the traffic of copies."""


class PlanLayout:
    """The ranks of a plan's workers, tensor parallelism innermost, then context parallelism.

    Gradients of a layer are added up by all that have it, whatever pipeline they are in.
    """

    def __init__(self, plan: Plan, split: Split, workers: int) -> None:
        self._plan, self._split, self._workers = plan, split, workers
        self._serving = {worker for route in plan.routes for worker in route}
        self.groups: list[CallGroup] = []
        self._group_of: dict[tuple[str, int, int], int] = {}  # by label, layer and rank
        self._gather(TENSOR, range(1), self.places, lambda at: (at.pp, at.cp))
        self._gather_gradients()

    @cached_property
    def places(self) -> list[RankPlace]:
        """The places of all ranks, also of those that the plan leaves out."""
        split = self._split
        return [
            RankPlace(worker, 0, cp, tp)
            for worker in range(self._workers)
            for cp in range(split.cp)
            for tp in range(split.tp)
        ]

    def rank(self, at: RankPlace) -> int:
        """Return the number of the rank at a place."""
        return at.tp + self._split.tp * (at.cp + self._split.cp * at.pp)

    def layers(self, at: RankPlace, task: MicroBatchPass) -> range:
        """Return a worker's layers, or those of another that it passes a micro-batch through."""
        spans = self._plan.mirrors if task.part is Part.REDUNDANT else self._plan.spans
        return spans[at.pp].layers

    def peer(self, at: RankPlace, task: MicroBatchPass, stage: int) -> RankPlace | None:
        """Return who has another stage of a micro-batch's route; None: there is no such one."""
        route = self._plan.routes[task.micro]
        return at._replace(pp=route[stage]) if 0 <= stage < len(route) else None

    def tag(self, task: MicroBatchPass) -> int:
        """Return the tag of a pass's result, 1 or more."""
        return 1 + 2 * (task.stage * len(self._plan.routes) + task.micro) + task.backward

    def group(self, label: str, rank: int, stage: int = 0, layer: int = 0) -> int | None:
        """Return a rank's group for some traffic, of gradients by layer; None: it is alone."""
        del stage
        return self._group_of.get((label, layer if label == DATA else 0, rank))

    def mirrored(self, at: RankPlace) -> range:
        """Return layers whose sums a rank takes, too: another's, or its own without any pass."""
        plan = self._plan
        is_idle = at.pp in plan.spans and at.pp not in self._serving
        span = plan.spans[at.pp] if is_idle else plan.mirrors.get(at.pp, Span(0, 0))
        return span.layers

    def _gather_gradients(self) -> None:
        """Make groups for gradients; layers with the same owners have one together."""
        layers: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
        for layer in range(max(span.stop for span in self._plan.spans.values())):
            owners, keepers = (
                frozenset(worker for worker, span in spans.items() if layer in span.layers)
                for spans in (self._plan.spans, self._plan.mirrors)
            )
            layers.setdefault((owners, keepers), []).append(layer)
        for (owners, keepers), alike in layers.items():
            places = [at for at in self.places if at.pp in owners | keepers]
            self._gather(DATA, alike, places, lambda at: at.tp)

    def _gather(
        self,
        label: str,
        layers: Sequence[int],
        places: Sequence[RankPlace],
        key: Callable[[RankPlace], Hashable],
    ) -> None:
        """Make a group of the ranks with equal keys, if there are several."""
        by_key: dict[Hashable, list[int]] = {}
        for at in places:
            by_key.setdefault(key(at), []).append(self.rank(at))
        for ranks in by_key.values():
            if len(ranks) > 1:
                number = len(self.groups)
                self._group_of |= {(label, each, rank): number for each in layers for rank in ranks}
                self.groups.append(CallGroup(f"{label}{number}", tuple(ranks)))


def iteration_graph(
    name: str,
    sizes: TransformerSizes,
    split: Split,
    plan: Plan,
    workers: int,
) -> Graph:
    """Return the graph of one iteration of a plan.

    Args:
        name: The graph's name.
        sizes: The model.
        split: Its division as asked for.
        plan: The plan.
        workers: The number of all workers, spare ones included.
    """
    layout = PlanLayout(plan, split, workers)
    order = passes_of(plan, workers, split.micro_batches)
    return generate_for(name, sizes, replace(split, zero=0), layout, order)


def copy_graph(
    name: str, split: Split, copies: Sequence[LayerCopy], workers: int, layer_bytes: int
) -> Graph:
    """Return the graph of copies: each rank sends its part of layers to its like.

    Args:
        name: The graph's name.
        split: The model's division.
        copies: Who sends which layers to whom.
        workers: The number of all workers.
        layer_bytes: The state of a layer, on all ranks of a worker together.
    """
    parts = split.cp * split.tp
    nodes: list[list[WorkNode]] = [[] for _ in range(workers * parts)]
    for tag, (source, target, layers) in enumerate(copies, start=1):
        size = max(len(layers) * layer_bytes // split.tp, 1)
        for part in range(parts):
            ends = source * parts + part, target * parts + part
            for kind, (here, peer) in (
                (NodeKind.SEND, ends),
                (NodeKind.RECEIVE, (ends[1], ends[0])),
            ):
                name_of = f"layers {layers[0]}-{layers[-1]}"
                more = WorkNode(len(nodes[here]), kind, name_of, size_bytes=size, peer=peer)
                nodes[here].append(replace(more, tag=tag, label=STATE))
    return Graph(name, tuple(RankWork(tuple(each)) for each in nodes))
