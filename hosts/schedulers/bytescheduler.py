"""ByteScheduler (Peng et al., SOSP 2019): layer priority with partitions and a credit of bytes.

The source fixes that tensors are cut into partitions, that the front layer's go first, and that
partitions start as long as those under way fit into the credit: a larger one keeps the network
busy, a smaller one lets urgent partitions pass sooner. Its authors tune both sizes by Bayesian
optimisation for each model and network. The sizes here are fixed, and ours.
"""

from __future__ import annotations

from ringleaf.hosts.schedulers.layers import LayerPriority

PARTITION_BYTES = 256 << 10
CREDIT_PARTITIONS = 4


class ByteScheduler(LayerPriority):
    """The ByteScheduler scheduler."""

    name = "bytescheduler"
    title = "ByteScheduler"
    partition_bytes: int | None = PARTITION_BYTES
    credit_bytes: int = CREDIT_PARTITIONS * PARTITION_BYTES


SCHEDULER = ByteScheduler()
