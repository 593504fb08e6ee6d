"""The order of ranks: which rank does which part of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.embedding import check_order
from ringleaf.collectives.rows import AGGREGATE, Column
from ringleaf.collectives.schedule import ChunkRows, Schedule
from ringleaf.errors import ScheduleError


def reordered(schedule: Schedule, order: Sequence[int]) -> Schedule:
    """Return a schedule in which rank `order[i]` does the part of rank i; servers keep theirs.

    Chunks that belong to ranks (of reduce-scatter, all-gather and all-to-all) go with them, so the
    result is that of the collective as before. A root goes along, too: `root_in` says which
    root to build for.

    Args:
        schedule: Any schedule, but an all-to-all only if its data goes straight to its receivers.
        order: (ranks,) each rank once.

    Raises:
        ScheduleError: If `order` is not, or an all-to-all passes data on.
    """
    where = f"{schedule.algorithm} rank order"
    check_order(where, order, schedule.ranks)
    ranks, rows = schedule.ranks, schedule.columns
    place = np.array([*order, *range(ranks, schedule.nodes)], np.int64)
    adds = rows.op == AGGREGATE
    moved = rows
    if schedule.collective in (Collective.REDUCE_SCATTER, Collective.ALL_GATHER):
        moved = moved.by_chunk()
        blocks = schedule.chunks // ranks
        if blocks * ranks != schedule.chunks:
            raise ScheduleError(f"{where}: chunks must be a multiple of ranks, got {schedule}")
        start = place[moved.start // blocks] * blocks + moved.start % blocks
        moved = replace(moved, start=start, stop=start + 1)
    elif schedule.collective is Collective.ALL_TO_ALL:
        moved = moved.by_chunk()
        if not _is_direct(schedule):
            raise ScheduleError(
                f"{where}: can't change that of an all-to-all that passes data on, got "
                f"{schedule.algorithm!r}; take alltoall"
            )
        start = (place[moved.dst] - place[moved.src]) % ranks
        # In one step, as a rank may now get a chunk before its turn to send its own has come.
        moved = replace(moved, step=np.zeros_like(start), start=start, stop=start + 1)
    adds = moved.op == AGGREGATE
    groups = tuple(tuple(int(place[rank]) for rank in group) for group in rows.groups)
    moved = replace(
        moved,
        src=np.where(adds, moved.src, _placed(moved.src, place, schedule.nodes)),
        dst=np.where(adds, moved.dst, _placed(moved.dst, place, schedule.nodes)),
        groups=groups,
    )
    return replace(schedule, rows=ChunkRows(moved), root=int(place[schedule.root]))


def _placed(places: Column, place: Column, nodes: int) -> Column:
    """Return where places go: layers of scratch memory stay what they are."""
    return np.asarray(place[places % nodes] + places // nodes * nodes)


def _is_direct(schedule: Schedule) -> bool:
    """Return whether all data of an all-to-all goes straight from its source to its receiver."""
    rows = schedule.columns.by_chunk()
    if schedule.chunks != schedule.ranks or schedule.scratch:
        return False
    return bool(((rows.dst - rows.src) % schedule.ranks == rows.start).all())
