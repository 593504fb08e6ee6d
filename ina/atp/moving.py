"""The aggregators of an ATP job, which a central allocator may change while the job runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.atp import ledger
from ringleaf.ina.atp.control import AtpJob, first_aggregators
from ringleaf.ina.atp.ledger import shuffled
from ringleaf.ina.atp.state import AGGREGATOR, POSITION_WORDS, ROWS_AT, TENSORS
from ringleaf.ina.holdings import Holding, Updates
from ringleaf.ina.table_updates import updates
from ringleaf.ina.tensors import OLDEST, POSTED

TABLES = ("shares",)


@dataclass(slots=True)
class AggregatorMover:
    """Moves a job to aggregators of its own.

    Without any, its gradients go to the parameter servers.

    Args:
        job: The job, with any aggregators.
        workers: Its workers.
        servers: Its parameter servers, made for all aggregators of a switch.
        entities_of: Returns the switches' entities of a job.
        holding: The job's aggregators.
        most: The most aggregators that it can have in use.
        available: The aggregators of a switch.
        entry_bps: Goodput that an aggregator brings.
    """

    job: AtpJob
    workers: Sequence[int]
    servers: Sequence[int]
    entities_of: Callable[[AtpJob], Updates]
    holding: Holding
    most: int
    available: int
    entry_bps: int
    least: int = 0

    def move(self, arena: Arena, holding: Holding) -> Updates:
        """Give workers and servers other aggregators; return how switches' entries change.

        None of the job's tensors may be under way.
        """
        before, self.holding = self.holding, holding
        count = max(1, holding.entries)
        positions = first_aggregators(replace(self.job, aggregators=count))
        for at in self.workers:
            state = arena.words[at + AGENT_WORDS :]
            assert state[TENSORS + OLDEST] == state[TENSORS + POSTED]
            rows = arena.words[state[ROWS_AT] :][: self.job.window * POSITION_WORDS]
            rows.reshape(-1, POSITION_WORDS)[:, AGGREGATOR] = holding.first + np.array(positions)
        for number, at in enumerate(self.servers):
            state = arena.words[at + AGENT_WORDS :]
            proposals = arena.words[state[ledger.PROPOSALS_AT] :][:count]
            proposals[:] = holding.first + np.array(shuffled(self.job.number, number, count))
            state[ledger.AGGREGATORS], state[ledger.PROPOSED] = count, 0
        by_switch = self.entities_of(replace(self.job, aggregators=holding.first + count))
        return updates(by_switch, TABLES, before, holding)
