"""The amount of a job's data that its hosts' aggregation agents are given ahead.

Agents take tensors in the order in which they were given (`ringleaf.ina.tensors`), as all workers
must number blocks alike; so an urgent tensor can overtake only those that they have not been given
yet. They get no more than keeps them busy, in partitions, like ByteScheduler's credit (Peng et al.,
SOSP 2019): a tensor waits for `CREDIT_PARTITIONS` partitions at most. Meanwhile these inherit its
priority, or other jobs' packets would hold it up through them (Sha et al., "Priority inheritance
protocols", IEEE Transactions on Computers, 1990).
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.common.interface import Scheduler
from ringleaf.ina.systems import JobAggregator

PARTITION_WINDOWS = 4
"""Windows in a partition: in the first, SwitchML carries no values, but asks for exponents."""

CREDIT_PARTITIONS = 2
"""Partitions ahead: the next must be there before the last packets of one have their results."""


def partition_bytes(aggregator: JobAggregator | None, scheduler: Scheduler) -> int | None:
    """Return the size of a job's partitions for its aggregation and a scheduler; None: no cuts."""
    size_bytes = scheduler.partition_bytes
    if aggregator is None or not scheduler.reorders:
        return size_bytes
    own = PARTITION_WINDOWS * aggregator.window_bytes
    return own if size_bytes is None else min(own, size_bytes)


def credit_bytes(aggregator: JobAggregator | None) -> int | None:
    """Return the most bytes under way, unless a single tensor has more; None: no limit."""
    if aggregator is None:
        return None
    return CREDIT_PARTITIONS * PARTITION_WINDOWS * aggregator.window_bytes
