"""Other trees by which a running job of ATP's kind gets its results.

Only results take trees: gradients take the switches' routes, and are added up by the workers' own
switches and the parameter servers', which they pass by any route. Packets say whose values are in
them, so none has to be void when trees change, and workers need no common round. But results have
been lost on the old trees, and each worker that asks for one by a probe has it sent to itself
alone. So servers repeat all results that any worker lacks, to all at once, and workers probe for
the other blocks alone, without waiting until timeouts that have grown meanwhile are over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ringleaf.core.arena import Arena
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina import flight
from ringleaf.ina.atp import ledger, state
from ringleaf.ina.atp.ledger import ParameterServer, open_server
from ringleaf.ina.atp.server import repeat_results
from ringleaf.ina.atp.state import open_worker
from ringleaf.ina.atp.wire import SEQUENCE_MASK
from ringleaf.ina.atp.worker import ask_for, wait_for_results
from ringleaf.ina.rebuilding import Rounds, TreePlanner

BITS = 32
"""Bits of a number that says of so many of a server's blocks whether it has their results."""


@dataclass(slots=True)
class DeliveryRebuilder(TreePlanner):
    """Builds the trees of one job's results again, one for each parameter server.

    Args:
        workers: The job's workers, and its servers.
        servers: The latter, by number.
    """

    workers: Sequence[int]
    servers: Sequence[int]

    def rounds(self, arena: Arena, worker: int) -> Rounds:
        """Return the first block whose result a worker lacks, and the results that a server has.

        Of each server these are the last one's number, and a bit for it and each before. They are
        negative and less 1, as the least counts; one message to live hosts has room for all.
        """
        if worker in self.servers:
            server = open_server(arena, worker)
            first, entries = FOREVER_PS, int(server.state[ledger.ENTRIES])
        else:
            mine = open_worker(arena, worker).state
            first, entries = int(mine[state.BASE]), 2 * int(mine[state.WINDOW])
        results = np.zeros((len(self.servers), 2 + entries // len(self.servers) // BITS), np.int64)
        if worker in self.servers:
            row = results[self.servers.index(worker)]
            row[:] = -1 - _results(server, len(self.servers), len(row) - 1)
        return np.concatenate([[first], results.ravel()])

    def go_on(self, arena: Arena, worker: int, least: Rounds, now_ps: int) -> None:
        """Have a server repeat results that some worker lacks, and a worker ask for the others."""
        if worker in self.servers:
            repeat_results(arena, worker, int(least[0]), now_ps)
            return
        wait_for_results(arena, worker, 0, now_ps)
        results = -1 - least[1:].reshape(len(self.servers), -1)
        for position in _lost(arena, worker, results, now_ps):
            ask_for(arena, worker, position, now_ps)

    def resumed_ps(self, arena: Arena, worker: int) -> int:
        """Return when a worker had its first result since; `FOREVER_PS`: it has none yet."""
        place = ledger.RESUMED_PS if worker in self.servers else state.RESUMED_PS
        return int(arena.words[worker + AGENT_WORDS + place])


def _results(server: ParameterServer, servers: int, words: int) -> npt.NDArray[np.int64]:
    """Return the last block of which a server has the result, and bits of those before."""
    rows = server.rows.reshape(-1, ledger.ENTRY_WORDS)
    blocks = rows[rows[:, ledger.IS_DONE] != 0, ledger.SEQUENCE]
    last = blocks.max(initial=0)
    behind = (last - blocks) // servers
    bits = np.zeros(words * BITS, np.int64)
    bits[behind[behind < len(bits)]] = 1
    return np.concatenate([[last], bits.reshape(words, BITS) @ (1 << np.arange(BITS))])


def _lost(arena: Arena, worker: int, results: npt.NDArray[np.int64], now_ps: int) -> list[int]:
    """Return a worker's positions that no server has results for though these are due, in order."""
    mine = open_worker(arena, worker)
    blocks = mine.rows.reshape(-1, state.POSITION_WORDS)[:, state.SEQUENCE]
    slots = mine.flight.slots.reshape(-1, flight.SLOT_WORDS)[: len(blocks)]
    round_trip_ps = max(mine.state[state.BASE_PS], mine.flight.state[flight.SMOOTHED_PS])
    is_in_flight = slots[:, flight.NEXT] != flight.NOT_IN_FLIGHT
    is_due = now_ps - slots[:, flight.SENT_PS] >= round_trip_ps
    (positions,) = np.nonzero(is_in_flight & is_due & ~has_results(results, blocks))
    return sorted(positions.tolist(), key=lambda position: blocks[position])


def has_results(
    results: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return whether servers have these blocks' results.

    Where numbers of packets wrap, they may seem not to have them; then probes are answered.
    """
    servers, size = results.shape
    of = blocks % servers
    behind = (results[of, 0] - blocks & SEQUENCE_MASK) // servers
    word = np.minimum(behind // BITS, size - 2)
    bit = results[of, 1 + word] >> behind % BITS & 1
    return (bit != 0) & (behind < BITS * (size - 1))
