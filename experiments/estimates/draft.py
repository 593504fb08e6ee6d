"""The size of a schedule, for estimates: drawn up for as many ranks, or for fewer and extrapolated.

Buffers are those that hosts will have (`hosts/staging.py`). They grow with the number of steps,
that is, with the logarithm of the ranks, where they grow; messages, rows and bytes grow by powers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2

import numpy as np

from ringleaf.collectives.algorithm import Algorithm
from ringleaf.collectives.rows import AGGREGATE
from ringleaf.collectives.schedule import Schedule
from ringleaf.errors import RingleafError

MOST_RANKS = 64
"""The most ranks whose schedule is made for an estimate."""
AHEAD_BYTES = 1 << 19
"""Receives posted ahead per peer: two windows of hosts at 100 Gbit/s."""
ITEM_BYTES = 4
FEW_BYTES = 8 << 20
"""Tensors of all ranks whose buffers do not matter."""
MANY_BYTES = 1 << 40
"""Likewise, as no machine has room for the tensors; it is told so before anything is loaded."""


@dataclass(frozen=True, slots=True)
class ScheduleSize:
    """The size of a schedule.

    Attributes:
        messages: The number of messages.
        rows: The number of rows: a message of several chunks has a row for each chunk.
        sent_bytes: The bytes that all ranks send together, if nothing is zero.
        buffers: Buffers of messages, in copies of all ranks' tensors; they may stay unused.
        scratch: Scratch memory that the schedule uses, likewise.
    """

    messages: float
    rows: float
    sent_bytes: float
    buffers: float
    scratch: float


def draft(algorithm: Algorithm, ranks: int, size_bytes: int) -> ScheduleSize | None:
    """Return the size of an algorithm's schedule; None if it can't be built without a topology.

    Args:
        algorithm: An algorithm of hosts.
        ranks: The number of ranks.
        size_bytes: Size of each rank's tensor.
    """
    if algorithm.ranks is not None or ranks <= MOST_RANKS:
        return _draft(algorithm, algorithm.ranks or ranks, size_bytes)
    fewer, more = (
        _draft(algorithm, each, size_bytes * each // ranks // ITEM_BYTES * ITEM_BYTES)
        for each in (MOST_RANKS // 2, MOST_RANKS)
    )
    if fewer is None or more is None:
        return None
    doublings = log2(ranks / MOST_RANKS)

    def power(small: float, large: float) -> float:
        return float(large * (large / max(small, 1)) ** doublings)

    # Chunks and messages of both are as large as those of all ranks, so bytes grow likewise.
    return ScheduleSize(
        power(fewer.messages, more.messages),
        power(fewer.rows, more.rows),
        power(fewer.sent_bytes, more.sent_bytes),
        more.buffers + max(more.buffers - fewer.buffers, 0.0) * doublings,
        more.scratch,
    )


@lru_cache(maxsize=256)
def _draft(algorithm: Algorithm, ranks: int, size_bytes: int) -> ScheduleSize | None:
    try:
        schedule = algorithm.build(ranks, size_bytes=size_bytes, hierarchy=(ranks,))
    except RingleafError:  # it wants to know the topology, or other numbers of ranks
        return None
    rows = schedule.columns
    goes = (rows.op != AGGREGATE) & ~schedule.is_local(rows)
    chunk_bytes = size_bytes / schedule.chunks
    return ScheduleSize(
        len(rows),
        len(schedule.rows),
        float((rows.stop - rows.start)[goes].sum()) * chunk_bytes,
        _buffers(schedule, size_bytes),
        _scratch(schedule),
    )


def _buffers(schedule: Schedule, size_bytes: int) -> float:
    """Return the buffers of messages, in copies of all ranks' tensors."""
    if schedule.ranks < 2 or not FEW_BYTES <= schedule.ranks * size_bytes < MANY_BYTES:
        return 0.0
    from ringleaf.hosts.plan import plans  # loads compiled code
    from ringleaf.hosts.staging import lay_out

    parts = plans(schedule, size_bytes // ITEM_BYTES)
    staging = lay_out(parts, ITEM_BYTES, ahead_bytes=AHEAD_BYTES)
    return int((staging.slots * staging.slot_bytes).sum()) / (schedule.ranks * size_bytes)


def _scratch(schedule: Schedule) -> float:
    """Return the scratch memory in use of all nodes, in copies of their tensors."""
    if not schedule.scratch:
        return 0.0
    rows = schedule.columns.by_chunk()
    used = (rows.op != AGGREGATE) & (rows.dst >= schedule.nodes)
    cells = np.unique(rows.dst[used] * schedule.chunks + rows.start[used])
    return len(cells) / (schedule.nodes * schedule.chunks)
