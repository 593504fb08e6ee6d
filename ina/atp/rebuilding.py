"""Other trees by which a running job of ATP's kind gets its results.

Only results take trees: gradients take the switches' routes, and are added up by the workers' own
switches and the parameter servers', which they pass by any route. Packets say whose values are in
them, so none has to be void when trees change. But results have been lost on the old trees, and
each worker that asks for one by a probe has it sent to itself alone. So the servers repeat all
results that any worker lacks, to all at once, and probes are for what was lost before it was added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp import ledger, state
from ringleaf.ina.atp.server import repeat_results
from ringleaf.ina.atp.worker import wait_for_results
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
        """Return the first block whose result a worker lacks; a server lacks none."""
        is_server = worker in self.servers
        base = FOREVER_PS if is_server else arena.words[worker + AGENT_WORDS + state.BASE]
        return np.array([base], np.int64)

    def go_on(self, arena: Arena, worker: int, least: Rounds, now_ps: int) -> None:
        """Have a server repeat the results that some worker lacks, and a worker wait for them."""
        if worker in self.servers:
            repeat_results(arena, worker, int(least[0]), now_ps)
        else:
            wait_for_results(arena, worker, 0, now_ps)

    def resumed_ps(self, arena: Arena, worker: int) -> int:
        """Return when a worker had its first result since; `FOREVER_PS`: it has none yet."""
        place = ledger.RESUMED_PS if worker in self.servers else state.RESUMED_PS
        return int(arena.words[worker + AGENT_WORDS + place])
