"""Other trees by which a running job of ATP's kind gets its results.

Only results take trees: gradients take the switches' routes, and are added up by the workers' own
switches and the parameter servers', which they pass by any route. Packets say whose values are in
them, so none has to be void when trees change, and workers need no common round. But results have
been lost on the old trees, and each worker that asks for one by a probe has it sent to itself
alone. So servers repeat all results that any worker lacks, to all at once, and workers probe for
the other blocks alone, without waiting until timeouts that have grown meanwhile are over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina import flight
from ringleaf.ina.atp import ledger, state
from ringleaf.ina.atp.ledger import open_server
from ringleaf.ina.atp.server import repeat_results
from ringleaf.ina.atp.state import open_worker
from ringleaf.ina.atp.wire import SEQUENCE_MASK
from ringleaf.ina.atp.worker import ask_for, wait_for_results
from ringleaf.ina.rebuilding import Rounds, TreePlanner


@dataclass(slots=True)
class DeliveryRebuilder(TreePlanner):
    """Builds the trees of one job's results again, one for each parameter server.

    Args:
        workers: The job's workers, and its servers.
        servers: The latter.
    """

    workers: Sequence[int]
    servers: Collection[int]

    def rounds(self, arena: Arena, worker: int) -> Rounds:
        """Return the first block whose result a worker lacks, and the results that a server has.

        The latter are the blocks' numbers, by entry, negative and less 1, as the least counts.
        """
        if worker not in self.servers:
            mine = open_worker(arena, worker).state
            rounds = np.zeros(1 + 2 * mine[state.WINDOW], np.int64)
            rounds[0] = mine[state.BASE]
            return rounds
        rows = open_server(arena, worker).rows.reshape(-1, ledger.ENTRY_WORDS)
        results = np.where(rows[:, ledger.IS_DONE] != 0, -1 - rows[:, ledger.SEQUENCE], 0)
        return np.concatenate([[FOREVER_PS], results])

    def go_on(self, arena: Arena, worker: int, least: Rounds, now_ps: int) -> None:
        """Have a server repeat results that some worker lacks, and a worker ask for the others."""
        if worker in self.servers:
            repeat_results(arena, worker, int(least[0]), now_ps)
            return
        wait_for_results(arena, worker, 0, now_ps)
        for position in _lost(arena, worker, least[1:], now_ps):
            ask_for(arena, worker, position, now_ps)

    def resumed_ps(self, arena: Arena, worker: int) -> int:
        """Return when a worker had its first result since; `FOREVER_PS`: it has none yet."""
        place = ledger.RESUMED_PS if worker in self.servers else state.RESUMED_PS
        return int(arena.words[worker + AGENT_WORDS + place])


def _lost(arena: Arena, worker: int, results: npt.NDArray[np.int64], now_ps: int) -> list[int]:
    """Return a worker's positions that no server has results for though these are due, in order."""
    mine = open_worker(arena, worker)
    blocks = mine.rows.reshape(-1, state.POSITION_WORDS)[:, state.SEQUENCE]
    slots = mine.flight.slots.reshape(-1, flight.SLOT_WORDS)[: len(blocks)]
    round_trip_ps = max(mine.state[state.BASE_PS], mine.flight.state[flight.SMOOTHED_PS])
    is_in_flight = slots[:, flight.NEXT] != flight.NOT_IN_FLIGHT
    is_due = now_ps - slots[:, flight.SENT_PS] >= round_trip_ps
    is_there = results[blocks % len(results)] == -1 - (blocks & SEQUENCE_MASK)
    (positions,) = np.nonzero(is_in_flight & is_due & ~is_there)
    return sorted(positions.tolist(), key=lambda position: blocks[position])
