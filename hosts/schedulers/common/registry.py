"""The flow schedulers by name.

A new one is a file in `schedulers`, or an entry point of a package.
"""

from __future__ import annotations

from ringleaf.core.registry import Registry
from ringleaf.hosts.schedulers.common.interface import Scheduler

SCHEDULERS: Registry[Scheduler] = Registry(
    "schedulers", "scheduler", "hosts/schedulers", "SCHEDULER"
)


def find_scheduler(name: str) -> Scheduler:
    """Return the scheduler of that name.

    Raises:
        ConfigError: If there is none; the message names the valid ones.
    """
    return SCHEDULERS.find(name)
