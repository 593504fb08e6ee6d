"""Allreduces cut in two: a reduce-scatter, which leaves sums on a rank each, and an all-gather."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ringleaf.collectives.rows import COPY, REDUCE, ChunkRows
from ringleaf.collectives.schedule import Collective, Schedule


def halves(schedule: Schedule) -> tuple[Schedule, Schedule] | None:
    """Return the rows that add and those that copy, or None if they can't run one after the other.

    They can if each chunk is copied after it has been added up, all by the ranks themselves. What
    both do together is the whole schedule's result, bit for bit.
    """
    rows = schedule.columns
    if (
        schedule.collective is not Collective.ALLREDUCE
        or schedule.servers
        or schedule.scratch
        or schedule.codec is not None
        or not len(rows)
        or not np.isin(rows.op, (REDUCE, COPY)).all()
    ):
        return None
    chunks = rows.by_chunk()
    adds, copies = chunks.op == REDUCE, chunks.op == COPY
    last = np.full(schedule.chunks, -1)
    np.maximum.at(last, chunks.start[adds], chunks.step[adds])
    if (chunks.step[copies] <= last[chunks.start[copies]]).any():
        return None
    first, second = rows.take(rows.op == REDUCE), rows.take(rows.op == COPY)
    if not len(first) or not len(second):
        return None
    second = replace(second, step=second.step - int(second.step.min()))
    return replace(schedule, rows=ChunkRows(first)), replace(schedule, rows=ChunkRows(second))
