"""Chunks that are alike: the same rows but for the names of ranks, so one proof holds for all.

Regular schedules treat all chunks alike. A ring's chunks go round it from different ranks on, those
of recursive halving are exchanged with other partners, a pipeline's are moved later. Ranks are
named anew, by where they come first in a chunk's rows; then the rows of chunks that are alike are
equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from ringleaf.collectives.definition import NOBODY, demands, turns
from ringleaf.collectives.rows import AGGREGATE, Column, Columns
from ringleaf.collectives.schedule import Schedule

_SERVER = -3
_MISSING = -4


def alike(schedule: Schedule) -> Iterator[list[int]]:
    """Yield the numbers of chunks that are alike, in the order of the first of each.

    Args:
        schedule: Any schedule that `schedule.check` lets through.
    """
    demand = demands(schedule.collective, schedule.ranks, schedule.chunks, schedule.root)
    if schedule.circulant is not None and turns(demand):
        yield list(range(schedule.chunks))
        return
    groups: dict[bytes, list[int]] = {}
    seen = 0
    for chunk in range(schedule.chunks):
        numbers, rows = schedule.as_rows.of_chunk(chunk)
        assert (rows.start == chunk).all()
        assert (np.diff(numbers) > 0).all()
        seen += len(numbers)
        form = _form(schedule.places, rows, demand[:, chunk])
        groups.setdefault(form or str(chunk).encode(), []).append(chunk)
    assert seen == len(schedule.rows), "each row must belong to a chunk"
    yield from groups.values()


def _form(places: int, rows: Columns, demand: Column) -> bytes | None:
    """Return a digest that alike chunks have in common; None where names may matter."""
    if not len(rows) or (rows.op == AGGREGATE).any():
        return None
    ends = np.stack((rows.src, rows.dst), axis=1).reshape(-1)
    label = np.full(places, _MISSING)
    nodes, first = np.unique(ends, return_index=True)
    nodes = nodes[np.argsort(first)]
    label[nodes] = np.arange(len(nodes))
    by_label = _renamed(demand, label)
    absent = label[: len(by_label)] == _MISSING
    is_own = demand == np.arange(len(by_label))
    if (absent & ~is_own & (by_label != NOBODY)).any() or (by_label == _MISSING)[~absent].any():
        return None  # somebody wants what never comes here
    of_nodes = np.full(len(nodes), _SERVER)
    is_rank = nodes < len(by_label)
    of_nodes[is_rank] = by_label[nodes[is_rank]]
    changes = np.diff(rows.step, prepend=rows.step[0]) != 0
    digest = blake2b(np.array([len(rows), len(nodes), (absent & is_own).sum()]).tobytes())
    for each in (label[ends], rows.op, changes, of_nodes):
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.digest()


def _renamed(demand: Column, label: Column) -> Column:
    """Return what each rank of a chunk must hold, its owner by the new name."""
    return np.where(demand < 0, demand, label[np.maximum(demand, 0)])
