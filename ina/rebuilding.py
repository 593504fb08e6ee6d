"""Trees that are built again while jobs run, when switches or links of theirs have failed.

A controller learns of what is down, and of switches that have restarted and thus lost all sums. It
plans a tree of what is left, asks workers for their rounds, tells switches, and has workers go on
from where the last of them is. Systems whose packets say whose values are in them need no common
round, and tell other numbers in place of rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ringleaf.errors import TopologyError
from ringleaf.ina.table_updates import between

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.core.arena import Arena
    from ringleaf.ina.holdings import Updates
    from ringleaf.topologies.trees import AggregationTree

Rounds = npt.NDArray[np.int64]
"""Numbers that a worker tells, as the round of each of its slots; the least of each are for all."""

Trees: TypeAlias = Sequence["AggregationTree"]


class Rebuilder(Protocol):
    """Builds one job's tree again.

    Attributes:
        workers: Blocks of the job's workers, and of servers that go on with them.
    """

    workers: Sequence[int]

    def note_restart(self, switch: str) -> None:
        """Note that a switch has lost its registers."""

    def plan(self, left: nx.Graph[str] | None) -> Updates | None:
        """Give the job a tree of what is left, if it needs another one or has lost sums.

        Args:
            left: What is left of the topology; None: all, and the tree shall be the usual one.

        Returns:
            What switches must be told; workers must `go_on` then. None if all stays: the job needs
            no other tree, or there is none.
        """

    def rounds(self, arena: Arena, worker: int) -> Rounds:
        """Return a worker's rounds."""

    def go_on(self, arena: Arena, worker: int, least: Rounds, now_ps: int) -> None:
        """Have a worker begin with the least rounds of all; its timer is due as it wants."""

    def resumed_ps(self, arena: Arena, worker: int) -> int:
        """Return when a worker had its first result since; `FOREVER_PS`: it has none yet."""


@dataclass(slots=True)
class TreePlanner:
    """Chooses the trees of one job anew.

    Args:
        usual: The job's trees on the whole network.
        trees_of: Returns trees of the job on what is left of the topology, at least one.
        entities_of: Returns the switches' entities for as many trees as the job has.
    """

    usual: Trees
    trees_of: Callable[[nx.Graph[str]], Trees]
    entities_of: Callable[[Trees], Mapping[str, Sequence[Any]]]
    _trees: Trees = field(init=False)
    _restarted: set[str] = field(default_factory=set, init=False)

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


def _switches(trees: Trees) -> set[str]:
    return {switch for tree in trees for switch in tree.children}


def _is_whole(tree: AggregationTree, left: nx.Graph[str]) -> bool:
    links = ((above, below) for above, nodes in tree.children.items() for below in nodes)
    return all(left.has_edge(*ends) for ends in links)
