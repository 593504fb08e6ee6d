"""Chunks that are alike: the same rows but for the names of ranks, so one proof holds for all.

Regular schedules treat all chunks alike. A ring's chunks go round it from different ranks on, those
of recursive halving are exchanged with other partners, a pipeline's are moved later. Ranks are
named anew, by where they come first in a chunk's rows; then the rows of chunks that are alike are
equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ringleaf.collectives.definition import NOBODY, Demands, demands
from ringleaf.collectives.rows import AGGREGATE, Column, Columns, Row, Rows
from ringleaf.collectives.schedule import Schedule

_SERVER = -3
_MISSING = -4


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk's rows.

    Attributes:
        number: The chunk's.
        rows: (rows,) the numbers of its rows, in order.
    """

    number: int
    rows: Column

    def numbered(self, columns: Columns) -> list[tuple[int, Row]]:
        """Return the rows, with their numbers; `columns` has a chunk per row."""
        return list(zip(self.rows.tolist(), Rows(columns.take(self.rows)), strict=True))


def alike(schedule: Schedule, columns: Columns) -> Iterator[list[Chunk]]:
    """Yield the chunks that are alike, in the order of the first of each.

    Args:
        schedule: Any schedule that `schedule.check` lets through.
        columns: Its rows, a chunk each.
    """
    found: dict[bytes, list[Chunk]] = {}
    wanted = demands(schedule.collective, schedule.ranks, schedule.chunks, schedule.root)
    order = np.argsort(columns.start, kind="stable")
    ends = np.searchsorted(columns.start, np.arange(1, schedule.chunks), sorter=order)
    for number, rows in enumerate(np.split(order, ends)):
        form = _form(schedule.places, columns, rows, wanted, number)
        found.setdefault(form or str(number).encode(), []).append(Chunk(number, rows))
    yield from found.values()


def _form(places: int, columns: Columns, rows: Column, wanted: Demands, chunk: int) -> bytes | None:
    """Return a digest that alike chunks have in common; None where names may matter."""
    step, op = columns.step[rows], columns.op[rows]
    if not len(rows) or (op == AGGREGATE).any():
        return None
    ends = np.stack((columns.src[rows], columns.dst[rows]), axis=1).reshape(-1)
    label = np.full(places, _MISSING)
    nodes, first = np.unique(ends, return_index=True)
    nodes = nodes[np.argsort(first)]
    label[nodes] = np.arange(len(nodes))
    demand = _renamed(wanted[:, chunk], label)
    absent = label[: len(demand)] == _MISSING
    is_own = wanted[:, chunk] == np.arange(len(demand))
    if (absent & ~is_own & (demand != NOBODY)).any() or (demand == _MISSING)[~absent].any():
        return None  # somebody wants what never comes here
    of_nodes = np.full(len(nodes), _SERVER)
    is_rank = nodes < len(demand)
    of_nodes[is_rank] = demand[nodes[is_rank]]
    changes = np.diff(step, prepend=step[0]) != 0
    digest = blake2b(np.array([len(rows), len(nodes), (absent & is_own).sum()]).tobytes())
    for each in (label[ends], op, changes, of_nodes):
        digest.update(np.ascontiguousarray(each).tobytes())
    return digest.digest()


def _renamed(wanted: Column, label: Column) -> Column:
    """Return what each rank of a chunk must hold, its owner by the new name."""
    return np.where(wanted < 0, wanted, label[np.maximum(wanted, 0)])
