"""Another tree for a running job of SwitchML's kind, and workers that go on from a common round.

For each slot, workers are in the same round, or some are one ahead: a result needs all workers'
packets. All begin again with the round of the last ones. Those that have its result repeat the
packet that they have kept (`keeping.py`), and leave the result that comes alone. So a sum has each
worker's values once, whatever switches have lost, and results that came before stay as they are.

Rounds get numbers that no packet has had. Whatever is still under way, or lies in registers, is
older, and switches and workers drop it, as they drop late packets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena
from ringleaf.errors import TopologyError
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.holdings import Updates
from ringleaf.ina.rebuilding import Rounds
from ringleaf.ina.switchml.keeping import (
    KEPT_WORDS,
    REPEATS,
    RESUMED_PS,
    SLOT_KEPT_WORDS,
)
from ringleaf.ina.switchml.state import KEPT_AT, ROUND, SLOT_WORDS, SLOTS, SLOTS_AT
from ringleaf.ina.switchml.worker import begin_again
from ringleaf.ina.table_updates import between
from ringleaf.topologies.trees import AggregationTree

Trees = Sequence[AggregationTree]

VERSIONS = 2
"""Numbers by which rounds rise, so that each keeps its version, and its kept packet its place."""


@dataclass(slots=True)
class TreeRebuilder:
    """Builds the tree of one job again.

    Args:
        usual: The job's trees on the whole network.
        trees_of: Returns trees of the job on what is left of the topology, at least one.
        entities_of: Returns the switches' entities for as many trees as the job has.
        workers: The job's workers, which keep their packets.
        begin: The workers' handler that has one begin again with the rounds that it has now.
    """

    usual: Trees
    trees_of: Callable[[nx.Graph[str]], Trees]
    entities_of: Callable[[Trees], Mapping[str, Sequence[Any]]]
    workers: Sequence[int]
    begin: Callable[[Arena, int, int, int], int] = begin_again
    _trees: Trees = field(init=False)
    _restarted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._trees = self.usual

    def note_restart(self, switch: str) -> None:
        """Note that a switch has lost its registers."""
        self._restarted.add(switch)

    def plan(self, left: nx.Graph[str] | None) -> Updates | None:
        """Give the job a tree of what is left, if it needs another one or has lost sums.

        Args:
            left: What is left of the topology; None: all, and the tree shall be the usual one.

        Returns:
            What switches must be told; None if all stays.
        """
        trees = self._choose(left)
        if trees == self._trees and self._restarted.isdisjoint(_switches(trees)):
            return None
        updates = between(self.entities_of(self._trees), self.entities_of(trees))
        self._trees = trees
        self._restarted.clear()
        return updates

    def _choose(self, left: nx.Graph[str] | None) -> Trees:
        """Return the trees to have: those that are whole stay, and those without others."""
        if left is None:
            return self.usual
        if all(_is_whole(tree, left) for tree in self._trees):
            return self._trees
        try:
            others = self.trees_of(left)
        except TopologyError:  # none joins all workers, so they wait for the old ones
            return self._trees
        return [
            tree if _is_whole(tree, left) else others[number % len(others)]
            for number, tree in enumerate(self._trees)
        ]

    def rounds(self, arena: Arena, worker: int) -> Rounds:
        """Return a worker's rounds."""
        return _slots(arena, worker)[:, ROUND].copy()

    def go_on(self, arena: Arena, worker: int, least: Rounds, now_ps: int) -> None:
        """Have a worker's slots begin again with the round of the last worker, by a new number."""
        mine, marks = _slots(arena, worker)[:, ROUND], _marks(arena, worker)
        is_ahead = mine > least
        assert (mine - least <= 1).all()
        assert not (is_ahead & (marks != 0)).any()
        marks[is_ahead] = 1
        mine[:] = least + VERSIONS
        self.begin(arena, worker, 0, now_ps)

    def resumed_ps(self, arena: Arena, worker: int) -> int:
        """Return when a worker had its first result since; `FOREVER_PS`: it has none yet."""
        return int(arena.words[_kept(arena, worker) + RESUMED_PS])


def _switches(trees: Trees) -> set[str]:
    return {switch for tree in trees for switch in tree.children}


def _is_whole(tree: AggregationTree, left: nx.Graph[str]) -> bool:
    links = ((above, below) for above, nodes in tree.children.items() for below in nodes)
    return all(left.has_edge(*ends) for ends in links)


def _slots(arena: Arena, at: int) -> npt.NDArray[np.int64]:
    """Return the words of a worker's slots, (slots, SLOT_WORDS), as a view."""
    own = at + AGENT_WORDS
    slots = int(arena.words[own + SLOTS])
    return arena.words[arena.words[own + SLOTS_AT] :][: slots * SLOT_WORDS].reshape(slots, -1)


def _kept(arena: Arena, at: int) -> int:
    return int(arena.words[at + AGENT_WORDS + KEPT_AT])


def _marks(arena: Arena, at: int) -> npt.NDArray[np.int64]:
    """Return whether each of a worker's slots repeats its round, (slots,), as a view."""
    slots = int(arena.words[at + AGENT_WORDS + SLOTS])
    rows = arena.words[_kept(arena, at) + KEPT_WORDS :][: slots * SLOT_KEPT_WORDS]
    return rows.reshape(slots, SLOT_KEPT_WORDS)[:, REPEATS]
