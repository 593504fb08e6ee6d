"""Checks of rows that use scratch memory, which `schedule` explains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import AGGREGATE, COPY, Columns
from ringleaf.errors import ScheduleError

_NEVER = 1 << 62  # a step


def is_local(rows: Columns, nodes: int) -> npt.NDArray[np.bool_]:
    """Return which rows stay within one of so many nodes: (messages,)."""
    same = rows.src % nodes == rows.dst % nodes
    mask: npt.NDArray[np.bool_] = same & (rows.op != AGGREGATE)
    return mask


def check_scratch(rows: Columns, nodes: int, places: int, chunks: int, where: str) -> None:
    """Check that rows, whose places exist, use scratch memory in a way that can be executed.

    Raises:
        ScheduleError: If rows use what nothing has written, or rows of a step within a node wait
            for one another; the message begins with `where`.
    """
    single = rows.by_chunk()
    _check_local(single, nodes, where)
    _check_filled(single, nodes, (places, chunks), where)


def _check_filled(rows: Columns, nodes: int, shape: tuple[int, int], where: str) -> None:
    """Refuse rows that use scratch memory before anything has been copied there."""
    rows = rows.take(rows.op != AGGREGATE)
    number = np.arange(len(rows))
    first_row, first_step = np.full((2, *shape), _NEVER)
    copies = rows.op == COPY
    cells = rows.dst[copies], rows.start[copies]
    np.minimum.at(first_row, cells, number[copies])
    np.minimum.at(first_step, cells, rows.step[copies])
    reads = (rows.src >= nodes) & (rows.step <= first_step[rows.src, rows.start])
    adds = (rows.dst >= nodes) & ~copies & (number < first_row[rows.dst, rows.start])
    for bad, place in ((reads, rows.src), (adds, rows.dst)):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ScheduleError(
                f"{where}: step {rows.step[row]}: scratch memory must be written by a copy before "
                f"it is used, got place {place[row]}, chunk {rows.start[row]}"
            )


def _check_local(rows: Columns, nodes: int, where: str) -> None:
    """Refuse rows within nodes of which one reads what another of its step writes.

    Nothing is copied away first, so each would wait for the other.
    """
    rows = rows.take(is_local(rows, nodes))
    read, written = (
        np.stack([rows.step, place, rows.start], axis=1) for place in (rows.src, rows.dst)
    )
    both = set(map(tuple, read.tolist())) & set(map(tuple, written.tolist()))
    if both:
        step, place, chunk = min(both)
        raise ScheduleError(
            f"{where}: step {step}: rows within a node must not read what others of the step "
            f"write, got both at place {place}, chunk {chunk}; take another step"
        )
