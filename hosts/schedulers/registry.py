"""The flow schedulers by name. A new one is a file of its own and a line here."""

from __future__ import annotations

from ringleaf.errors import choose
from ringleaf.hosts.schedulers import fifo, jpas, layer_priority, shares, tensorexpress
from ringleaf.hosts.schedulers.interface import Scheduler

SCHEDULERS: dict[str, Scheduler] = {
    scheduler.name: scheduler
    for scheduler in (
        fifo.SCHEDULER,
        layer_priority.SCHEDULER,
        tensorexpress.SCHEDULER,
        jpas.SCHEDULER,
        shares.SCHEDULER,
    )
}


def find_scheduler(name: str) -> Scheduler:
    """Return the scheduler of that name.

    Raises:
        ConfigError: Naming the valid ones.
    """
    return SCHEDULERS[choose("scheduler", "scheduler", name, SCHEDULERS)]
