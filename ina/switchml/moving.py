"""The slots of a SwitchML job, which a central allocator may change while the job runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringleaf.core.arena import Arena
from ringleaf.hosts.agent import AGENT_WORDS
from ringleaf.ina.flight import SLOTS as FLIGHT_SLOTS
from ringleaf.ina.holdings import Holding, Updates
from ringleaf.ina.switchml.control import SwitchmlJob
from ringleaf.ina.switchml.state import (
    FLIGHT,
    IDLE,
    NEXT_SLOT,
    OWN_WORDS,
    POSITION,
    ROUND,
    SLOT_WORDS,
    SLOTS,
    SLOTS_AT,
    TENSOR,
    TENSORS,
)
from ringleaf.ina.table_updates import updates
from ringleaf.ina.tensors import OLDEST, POSTED

TABLES = ("members",)


def deal_slots(arena: Arena, at: int, slots: int) -> None:
    """Give a worker without tensors another number of slots, at most as many as it was made with.

    Blocks' numbers go on rising, so that whatever its slots' entries held before is older than all
    that follows. Workers that have had the same tensors get the same numbers.
    """
    state = arena.words[at + AGENT_WORDS :][:OWN_WORDS]
    most, before = int(state[FLIGHT + FLIGHT_SLOTS]), int(state[SLOTS])
    assert 0 < slots <= most
    assert state[TENSORS + OLDEST] == state[TENSORS + POSTED]
    rows = arena.words[state[SLOTS_AT] :][: most * SLOT_WORDS].reshape(-1, SLOT_WORDS)
    next_block = int((rows[:before, ROUND] * before + np.arange(before)).max())
    rows[:, ROUND] = -(-next_block // slots)
    rows[:, POSITION] = IDLE
    rows[:, TENSOR] = state[TENSORS + POSTED]
    state[SLOTS], state[NEXT_SLOT] = slots, 0


@dataclass(slots=True)
class SlotMover:
    """Moves a job to other slots.

    Args:
        job: The job, with any slots.
        workers: Its workers, which were made with `most` slots.
        entities_of: Returns the switches' entities of a job.
        holding: The job's slots.
        most: The most slots that it can have in use.
        available: The slots of a switch.
        entry_bps: Goodput that a slot brings.
    """

    job: SwitchmlJob
    workers: Sequence[int]
    entities_of: Callable[[SwitchmlJob], Updates]
    holding: Holding
    most: int
    available: int
    entry_bps: int
    least: int = 1

    def move(self, arena: Arena, holding: Holding) -> Updates:
        """Give workers other slots; return how switches' entries change.

        None of the job's tensors may be under way.
        """
        before, self.holding = self.holding, holding
        slots = max(1, min(holding.entries, self.most))
        if holding.entries:
            for at in self.workers:
                deal_slots(arena, at, slots)
        by_switch = self.entities_of(replace(self.job, slots=slots, first_slot=holding.first))
        return updates(by_switch, TABLES, before, holding)
