"""The numbers of ranks, and the groups in which they exchange, for a model in parallel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import cached_property
from typing import NamedTuple

from ringleaf.hosts.workload.graph import CallGroup
from ringleaf.hosts.workload.llm.pipeline import CHIMERA, worker_of
from ringleaf.hosts.workload.llm.sizes import Split, TransformerSizes

TENSOR, CONTEXT, PIPELINE, EXPERT, DATA, EXPERT_DATA = "tp", "cp", "pp", "ep", "dp", "edp"
"""Labels of traffic; `edp` is of experts' gradients, which fewer replicas share."""


class RankPlace(NamedTuple):
    """A rank's numbers: its worker in the pipeline, replica, part of the sequence and of layers."""

    pp: int
    dp: int
    cp: int
    tp: int


class RankLayout:
    """Ranks with tensor parallelism innermost, then context, data and pipeline parallelism.

    So the ranks that exchange most are neighbours.
    """

    def __init__(self, sizes: TransformerSizes, split: Split) -> None:
        self._split = split
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

    def group(self, label: str, rank: int, stage: int = 0) -> int | None:
        """Return a rank's group for some traffic, of gradients by stage; None if it is alone."""
        return self._group_of.get((label, stage, rank))

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
