"""Several queue pairs between two ranks: each message is cut, and a part goes by each of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ringleaf.collectives.rows import AGGREGATE, ChunkRows
from ringleaf.collectives.schedule import Schedule
from ringleaf.errors import ScheduleError


def over_queue_pairs(schedule: Schedule, count: int) -> Schedule:
    """Return the same collective with so many queue pairs in place of each.

    Each chunk is cut in as many nearly equal parts, and part i goes by the i-th queue pair, as with
    NCCL_IB_QPS_PER_CONNECTION and NCCL_IB_SPLIT_DATA_ON_QPS=1. Each has a UDP source port of its
    own, so ECMP sends them by different ways. Schedules in which switches add up stay as they are.

    Raises:
        ScheduleError: If `count` < 1.
    """
    if count < 1:
        raise ScheduleError(f"{schedule.algorithm}: queue pairs must be >= 1, got {count}")
    if count == 1:
        return schedule  # whose rows need not be there
    if (schedule.columns.op == AGGREGATE).any():
        return schedule
    rows = schedule.columns.by_chunk()
    part = np.tile(np.arange(count), len(rows))
    cut = rows.take(np.repeat(np.arange(len(rows)), count))
    start = cut.start * count + part
    cut = replace(cut, start=start, stop=start + 1, channel=cut.channel * count + part)
    return replace(schedule, chunks=schedule.chunks * count, rows=ChunkRows(cut))
