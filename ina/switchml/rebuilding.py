"""Another tree for a running job of SwitchML's kind, and workers that go on from a common round.

For each slot, workers are in the same round, or some are one ahead: a result needs all workers'
packets. All begin again with the round of the last ones. Those that have its result repeat the
packet that they have kept (`keeping.py`), and leave the result that comes alone. So a sum has each
worker's values once, whatever switches have lost, and results that came before stay as they are.

Rounds get numbers that no packet has had. Whatever is still under way, or lies in registers, is
older, and switches and workers drop it, as they drop late packets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.rebuilding import Rounds, TreePlanner
from ringleaf.ina.switchml.keeping import (
    KEPT_WORDS,
    REPEATS,
    RESUMED_PS,
    SLOT_KEPT_WORDS,
)
from ringleaf.ina.switchml.state import KEPT_AT, ROUND, SLOT_WORDS, SLOTS, SLOTS_AT
from ringleaf.ina.switchml.worker import begin_again

VERSIONS = 2
"""Numbers by which rounds rise, so that each keeps its version, and its kept packet its place."""


@dataclass(slots=True)
class TreeRebuilder(TreePlanner):
    """Builds the tree of one job again.

    Args:
        workers: The job's workers, which keep their packets.
        begin: The workers' handler that has one begin again with the rounds that it has now.
    """

    workers: Sequence[int]
    begin: Callable[[Arena, int, int, int], int] = begin_again

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
