"""The numbers of ranks, and the groups in which they exchange, for a model in parallel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

from ringleaf.hosts.workload.graph import CallGroup
from ringleaf.hosts.workload.llm.pipeline import CHIMERA, MicroBatchPass, worker_of
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes

TENSOR, CONTEXT, PIPELINE, EXPERT, DATA, EXPERT_DATA = "tp", "cp", "pp", "ep", "dp", "edp"
"""Labels of traffic; `edp` is of experts' gradients, which fewer replicas share."""


class RankPlace(NamedTuple):
    """A rank's numbers: its worker in the pipeline, replica, part of the sequence and of layers."""

    pp: int
    dp: int
    cp: int
    tp: int


class IterationLayout(Protocol):
    """The ranks of an iteration: who has which layers, and exchanges with whom.

    All ranks of a worker have the same layers, and peers and groups alike.
    """

    groups: list[CallGroup]

    @property
    def places(self) -> list[RankPlace]:
        """Return the places of all ranks, in their order."""

    def rank(self, at: RankPlace) -> int:
        """Return the number of the rank at a place."""

    def layers(self, at: RankPlace, task: MicroBatchPass) -> range:
        """Return the layers that a rank passes a micro-batch through."""

    def peer(self, at: RankPlace, task: MicroBatchPass, stage: int) -> RankPlace | None:
        """Return who has another stage of a micro-batch's pipeline; None: there is no such one."""

    def tag(self, task: MicroBatchPass) -> int:
        """Return the tag of a pass's result: 1 or more, and that of no other."""

    def group(self, label: str, rank: int, stage: int = 0, layer: int = 0) -> int | None:
        """Return a rank's group for some traffic, of gradients by layer; None: it is alone."""

    def mirrored(self, at: RankPlace) -> range:
        """Return layers of others whose sums a rank takes, too, as it keeps a copy of them."""


class RankLayout:
    """Ranks with tensor parallelism innermost, then context, data and pipeline parallelism.

    So the ranks that exchange most are neighbours.
    """

    def __init__(self, sizes: TransformerSizes, split: Split) -> None:
        self._split = split
        self._layers = range(split.layers_per_stage or sizes.layers // split.stages)
        self.groups: list[CallGroup] = []
        self._group_of: dict[tuple[str, int, int], int] = {}  # by label, stage and rank
        self._gather(TENSOR, 0, lambda at: (at.pp, at.dp, at.cp))
        self._gather(EXPERT, 0, lambda at: (at.pp, at.dp // split.ep, at.cp, at.tp))
        for stage in range(split.stages):
            if sizes.experts:
                self._gather(EXPERT_DATA, stage, lambda at: (at.dp % split.ep, at.tp))
            self._gather(DATA, stage, lambda at: at.tp)

    @cached_property
    def places(self) -> list[RankPlace]:
        """The places of all ranks, in their order."""
        split = self._split
        return [
            RankPlace(pp, dp, cp, tp)
            for pp in range(split.pp)
            for dp in range(split.dp)
            for cp in range(split.cp)
            for tp in range(split.tp)
        ]

    def rank(self, at: RankPlace) -> int:
        """Return the number of the rank at a place."""
        split = self._split
        return at.tp + split.tp * (at.cp + split.cp * (at.dp + split.dp * at.pp))

    def layers(self, at: RankPlace, task: MicroBatchPass) -> range:
        """Return the layers of a stage, counted from 0 in each."""
        del at, task
        return self._layers

    def peer(self, at: RankPlace, task: MicroBatchPass, stage: int) -> RankPlace | None:
        """Return who has another stage of the same pipeline; None: there is no such stage."""
        if not 0 <= stage < self._split.stages:
            return None
        return at._replace(pp=worker_of(self._split.pp, stage, task.replica))

    def tag(self, task: MicroBatchPass) -> int:
        """Return the tag of a pass's result, 1 or more."""
        split = self._split
        number = (task.replica * split.stages + task.stage) * split.micro_batches + task.micro
        return 1 + 2 * number + task.backward

    def group(self, label: str, rank: int, stage: int = 0, layer: int = 0) -> int | None:
        """Return a rank's group for some traffic, of gradients by stage; None if it is alone."""
        del layer
        return self._group_of.get((label, stage, rank))

    def mirrored(self, at: RankPlace) -> range:
        """Return none: nobody keeps a copy of others' layers."""
        del at
        return range(0)

    def _workers(self, stage: int) -> set[int]:
        replicas = range(2 if self._split.schedule == CHIMERA else 1)
        return {worker_of(self._split.pp, stage, replica) for replica in replicas}

    def _members(self, label: str, stage: int) -> Iterator[RankPlace]:
        """Yield the places that take part in some traffic; gradients are those of a stage."""
        workers = self._workers(stage) if label in (DATA, EXPERT_DATA) else None
        return (at for at in self.places if workers is None or at.pp in workers)

    def _gather(self, label: str, stage: int, key: Callable[[RankPlace], Hashable]) -> None:
        """Make a group of the ranks with equal keys, if there are several."""
        by_key: dict[Hashable, list[int]] = {}
        for at in self._members(label, stage):
            by_key.setdefault(key(at), []).append(self.rank(at))
        for ranks in by_key.values():
            if len(ranks) > 1:
                self._group_of |= {(label, stage, rank): len(self.groups) for rank in ranks}
                number = sum(group.name.rstrip("0123456789") == label for group in self.groups)
                self.groups.append(CallGroup(f"{label}{number}", tuple(ranks)))
