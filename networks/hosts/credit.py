"""How much of a job its hosts' aggregation agents are given ahead.

They take tensors in the order in which they were given (`ringleaf.ina.tensors`), as all workers
must number blocks alike; so what is urgent can overtake only what they have not been given yet.
They get no more than keeps them busy, in partitions, as ByteScheduler's credit has it (Peng et al.,
SOSP 2019): whatever comes, it waits for `CREDIT_PARTITIONS` partitions at most. Meanwhile these
inherit its priority, or other jobs' packets would hold it up through them (Sha et al., "Priority
inheritance protocols", IEEE Transactions on Computers, 1990).
"""

from __future__ import annotations

from ringleaf.hosts.scheduling.interface import Scheduler
from ringleaf.ina.systems import Aggregator

PARTITION_WINDOWS = 4
"""A partition, in windows: SwitchML carries no values in the first, but asks for exponents."""

CREDIT_PARTITIONS = 2
"""The next must be there before the last packets of the one before have their results."""


def partition_bytes(aggregator: Aggregator | None, scheduler: Scheduler) -> int | None:
    """How a job's gradients are to be cut for its aggregation and a scheduler; None: not at all."""
    wanted = scheduler.partition_bytes
    if aggregator is None or not scheduler.reorders:
        return wanted
    own = PARTITION_WINDOWS * aggregator.window_bytes
    return own if wanted is None else min(own, wanted)


def credit_bytes(aggregator: Aggregator | None) -> int | None:
    """What may be under way at a time, or a single tensor that is larger; None: no limit."""
    if aggregator is None:
        return None
    return CREDIT_PARTITIONS * PARTITION_WINDOWS * aggregator.window_bytes
