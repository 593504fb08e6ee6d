"""The buffers of hosts' messages that a schedule needs, in copies of its tensors, for estimates.

They are those that hosts will have (`hosts/staging.py`), of the schedule that will run or, where
there are many ranks, of smaller ones: buffers grow with the number of steps, that is, with the
logarithm of the ranks, where they grow.
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
USUAL = 0.5
"""Copies of algorithms that can't be built without their topology."""


@dataclass(frozen=True, slots=True)
class Buffered:
    """Memory besides tensors, in copies of all ranks' tensors.

    Attributes:
        buffers: Buffers of messages, which may stay unused.
        scratch: Scratch memory, which the schedule uses.
    """

    buffers: float = 0.0
    scratch: float = 0.0


def buffered_copies(algorithm: Algorithm, ranks: int, size_bytes: int) -> Buffered:
    """Return the copies of all ranks' tensors that their buffers and scratch memory take.

    Args:
        algorithm: An algorithm of hosts.
        ranks: The number of ranks.
        size_bytes: Size of each rank's tensor.
    """
    if algorithm.ranks is not None or ranks <= MOST_RANKS:
        return _copies(algorithm, ranks, size_bytes)
    fewer, more = (
        _copies(algorithm, each, size_bytes * each // ranks // ITEM_BYTES * ITEM_BYTES)
        for each in (MOST_RANKS // 2, MOST_RANKS)
    )
    growth = max(more.buffers - fewer.buffers, 0.0)
    return Buffered(more.buffers + growth * log2(ranks / MOST_RANKS), more.scratch)


@lru_cache(maxsize=256)
def _copies(algorithm: Algorithm, ranks: int, size_bytes: int) -> Buffered:
    elements = size_bytes // ITEM_BYTES
    if ranks < 2 or not elements:
        return Buffered()
    try:
        schedule = algorithm.build(ranks, size_bytes=size_bytes, hierarchy=(ranks,))
    except RingleafError:  # it wants to know the topology, or other numbers of ranks
        return Buffered(USUAL)
    from ringleaf.hosts.plan import plans  # loads compiled code
    from ringleaf.hosts.staging import lay_out

    staging = lay_out(plans(schedule, elements), ITEM_BYTES, ahead_bytes=AHEAD_BYTES)
    buffers = int((staging.slots * staging.slot_bytes).sum())
    return Buffered(buffers / (ranks * size_bytes), _scratch(schedule))


def _scratch(schedule: Schedule) -> float:
    """Return the scratch memory in use of all nodes, in copies of their tensors."""
    if not schedule.scratch:
        return 0.0
    rows = schedule.columns.by_chunk()
    used = (rows.op != AGGREGATE) & (rows.dst >= schedule.nodes)
    cells = np.unique(rows.dst[used] * schedule.chunks + rows.start[used])
    return len(cells) / (schedule.nodes * schedule.chunks)
