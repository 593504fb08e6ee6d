"""Trees that are built again while jobs run, when switches or links of theirs have failed.

A controller learns of what is down, and of switches that have restarted and thus lost all sums. It
plans a tree of what is left, asks workers for their rounds, tells switches, and has workers go on
from where the last of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import networkx as nx

    from ringleaf.core.arena import Arena
    from ringleaf.ina.holdings import Updates

Rounds = npt.NDArray[np.int64]
"""The round of each of a worker's slots, (slots,)."""


class Rebuilder(Protocol):
    """Builds one job's tree again.

    Attributes:
        workers: Blocks of the job's workers.
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
        """Have a worker begin with the rounds of the last workers; its timer is due at once."""

    def resumed_ps(self, arena: Arena, worker: int) -> int:
        """Return when a worker had its first result since; `FOREVER_PS`: it has none yet."""
