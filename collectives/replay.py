"""The results of a schedule, computed fast by compiled code, to compare with those of a run.

`oracle` is the reference, row by row in Python. Here the same additions are done in the same order
on any piece of the elements: a piece of all nodes stays in a core's cache, and several threads can
replay different pieces at a time. Where a difference is found, the reference has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ringleaf.collectives.rows import REDUCE, Column
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.core import native_types as types
from ringleaf.core.compiled import compiled, compiled_as, copy_items, inline
from ringleaf.core.tensors import FLOAT32, INT32, ElementType
from ringleaf.core.views import window

_TYPES = (FLOAT32, INT32)


def fits(schedule: Schedule, dtype: ElementType) -> bool:
    """Return whether a schedule can be replayed: only hosts add, and nothing is lost."""
    lossless = schedule.codec is None or schedule.codec.is_lossless
    return dtype in _TYPES and lossless and not schedule.groups


class ScheduleRows:
    """A schedule's rows, sorted so that those of any piece of the elements are found at once.

    Args:
        schedule: One that `fits`, whose rows make sense.
        elements: Elements of each rank's tensor.
    """

    def __init__(self, schedule: Schedule, elements: int) -> None:
        self.nodes = schedule.places
        self._edges = np.array([0, *(stop for _, stop in chunk_ranges(elements, schedule.chunks))])
        rows = schedule.columns.by_chunk()
        order = np.argsort(rows.start, kind="stable")
        chunk, step = rows.start[order], rows.step[order]
        self._first = np.searchsorted(chunk, np.arange(schedule.chunks + 1))
        self._src, self._dst = rows.src[order], rows.dst[order]
        self._adds = rows.op[order] == REDUCE
        begins = (np.diff(chunk, prepend=-1) != 0) | (np.diff(step, prepend=-1) != 0)
        groups = np.append(np.flatnonzero(begins), len(order))
        self._together = np.ones(len(order), np.int64)
        _find_clashes(groups, self._src, self._dst, np.full(self.nodes, -1), self._together)
        self.staged = int(self._together.max(initial=1))
        """Rows whose data must be held at once: none may see the result of another."""

    def run(self, start: int, values: npt.NDArray[Any], arriving: npt.NDArray[Any]) -> None:
        """Replace the nodes' inputs by their results, for the elements from `start` on.

        Args:
            start: The first element.
            values: (nodes, count), contiguous, float32 or int32; at least one element.
            arriving: Room for `staged` times count elements, of the same type.
        """
        kernel = _float32 if values.dtype == np.float32 else _int32
        chunk = int(np.searchsorted(self._edges, start, side="right")) - 1
        columns = self._edges, self._first, self._src, self._dst, self._adds, self._together
        kernel(*columns, chunk, start, values.shape[1], values.reshape(-1), arriving)


@compiled(types.void(*[types.int64[::1]] * 5))
def _find_clashes(groups: Column, src: Column, dst: Column, last: Column, together: Column) -> None:
    """Write the size of each group of concurrent rows of which one reads where another writes.

    Args:
        groups: The first row of each group, and the number of rows.
        src: (rows,) sending nodes.
        dst: (rows,) receiving nodes.
        last: (nodes,) -1: room for the last group that writes to each.
        together: (rows,) 1; at the first row of each such group, its size is written.
    """
    for group in range(len(groups) - 1):
        start, stop = groups[group], groups[group + 1]
        for row in range(start, stop):
            last[dst[row]] = group
        for row in range(start, stop):
            if last[src[row]] == group:
                together[start] = stop - start


def add_items(target: Any, at: int, source: Any, source_at: int, count: int) -> None:
    """Add `count` items to others of the same type; the ranges must not overlap."""
    with np.errstate(all="ignore"):
        target[at : at + count] += source[source_at : source_at + count]


@compiled_as(add_items)
def _compiled_add_items(
    target: Any, at: Any, source: Any, source_at: Any, count: Any
) -> Callable[..., None]:
    def add(target: Any, at: Any, source: Any, source_at: Any, count: Any) -> None:
        sums, addends = window(target, at, count), window(source, source_at, count)
        for i in range(count):
            sums[i] += addends[i]

    return add


@inline
def _land(values: Any, to: int, source: Any, at: int, count: int, adds: bool) -> None:
    if adds:
        add_items(values, to, source, at, count)
    else:
        copy_items(values, to, source, at, count)


def _replay(
    edges: Column,
    first: Column,
    src: Column,
    dst: Column,
    adds: npt.NDArray[np.bool_],
    together: Column,
    chunk: int,
    start: int,
    count: int,
    values: npt.NDArray[Any],
    arriving: npt.NDArray[Any],
) -> None:
    """Run the rows of all chunks, from `chunk` on, that have elements in the piece."""
    while chunk < len(first) - 1 and edges[chunk] < start + count:
        begin = max(edges[chunk] - start, 0)
        size = min(edges[chunk + 1] - start, count) - begin
        row = first[chunk]
        while size > 0 and row < first[chunk + 1]:
            group = together[row]
            for i in range(group if group > 1 else 0):
                copy_items(arriving, i * size, values, src[row + i] * count + begin, size)
            for i in range(group):
                to, at = dst[row + i] * count + begin, src[row + i] * count + begin
                if group > 1:
                    _land(values, to, arriving, i * size, size, adds[row + i])
                else:
                    _land(values, to, values, at, size, adds[row + i])
            row += group
        chunk += 1


def _signature(item: types.Number) -> types.Signature:
    column, number = types.int64[::1], types.int64
    rows = (column, column, column, column, types.boolean[::1], column)
    return types.void(*rows, number, number, number, item[::1], item[::1])


_float32 = compiled(_signature(types.float32), nogil=True)(_replay)
_int32 = compiled(_signature(types.int32), nogil=True)(_replay)
