"""Trees that are built again while jobs run, when switches or links of theirs have failed.

A controller learns of what is down, and of switches that have restarted and thus lost all sums. It
gives a job a tree of what is left, tells switches, and has workers go on from where the last of
them is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.core.arena import Arena
    from ringleaf.ina.holdings import Updates


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A job's new tree, which may be the old one with new sums.

    Attributes:
        updates: What switches must be told, before anything is sent.
        workers: Blocks of the agents that have packets to send now.
    """

    updates: Updates
    workers: Collection[int]


class Rebuilder(Protocol):
    """Builds one job's tree again."""

    def note_restart(self, switch: str) -> None:
        """Note that a switch has lost its registers."""

    def rebuild(self, arena: Arena, left: nx.Graph[str], now_ps: int) -> TreeChange | None:
        """Move the job to a tree of what is left, if it needs another one or has lost sums.

        Returns:
            None if it stays: it needs no other one, or there is none.
        """

    def restore(self, arena: Arena, now_ps: int) -> TreeChange | None:
        """Move the job to the tree of the whole network, if it has another, or has lost sums."""

    def resumed_ps(self, arena: Arena) -> int | None:
        """Return when all workers had a result after the last change; None: some have none yet."""
