"""The results of a schedule, computed fast by compiled code, to compare with those of a run.

`oracle` is the reference, row by row in Python. Here the same additions are done in the same order,
some chunks of all nodes at a time, so that a thousand ranks take seconds. Where a difference is
found, the reference has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import types

from ringleaf.collectives.rows import REDUCE, Column, Columns
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.compiled import compiled

_BLOCK_BYTES = 1 << 25
"""Contents that are held at once, so that they stay near the processor."""

_NUMPY = {torch.float32: np.float32, torch.int32: np.int32}

_columns = [types.int64[::1]] * 5


def agrees(
    schedule: Schedule, inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
) -> bool:
    """Return whether results are those of the schedule, bit for bit; False if that is unknown.

    It is unknown where a codec loses something, switches add, or elements are of another type.

    Args:
        schedule: One whose rows make sense.
        inputs: Each rank's tensor, flat, before it.
        results: Likewise, after it.
    """
    if not fits(schedule, inputs[0].dtype):
        return False
    blocks = replayed(
        schedule, inputs[0].numel(), inputs[0].dtype, lambda rank, a, b: inputs[rank][a:b]
    )
    return all(
        torch.equal(value.view(torch.int32), result[start:stop].view(torch.int32))
        for start, stop, values in blocks
        for value, result in zip(values, results, strict=True)
    )


def fits(schedule: Schedule, dtype: torch.dtype) -> bool:
    """Return whether `replayed` can run a schedule: only hosts add, and nothing is lost."""
    lossless = schedule.codec is None or schedule.codec.is_lossless
    return dtype in _NUMPY and lossless and not schedule.columns.groups


def replayed(
    schedule: Schedule,
    elements: int,
    dtype: torch.dtype,
    read: Callable[[int, int, int], torch.Tensor],
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yield the ranks' results for some elements after others.

    Args:
        schedule: One that `fits`, whose rows make sense.
        elements: Elements of each rank's tensor.
        dtype: Their type.
        read: `read(rank, start, stop)` returns these elements of a rank's input.

    Yields:
        The first element, the one after the last, and (ranks, elements) results, valid until the
        next ones are asked for.
    """
    edges = np.array([0, *(stop for _, stop in chunk_ranges(elements, schedule.chunks))])
    most = max(_BLOCK_BYTES // (4 * schedule.nodes), 1)
    for first, last in pairwise(_blocks(edges, most)):
        start, stop = int(edges[first]), int(edges[last])
        values = torch.zeros((schedule.nodes, stop - start), dtype=dtype)
        for rank in range(schedule.ranks):
            values[rank] = read(rank, start, stop)
        _run(schedule.columns, first, last, edges - start, values.numpy())
        yield start, stop, values[: schedule.ranks]


def _blocks(edges: Column, most: int) -> list[int]:
    """Return the first chunks of blocks of at most `most` elements, or one chunk, and the end."""
    found = [0]
    while found[-1] < len(edges) - 1:
        fitting = int(np.searchsorted(edges, edges[found[-1]] + most, side="right")) - 1
        found.append(max(fitting, found[-1] + 1))
    return found


def _run(
    rows: Columns,
    first: int,
    last: int,
    edges: npt.NDArray[np.int64],
    values: npt.NDArray[Any],
) -> None:
    """Run the rows of the chunks from `first` to `last` (excluded) on the values of all nodes."""
    here = rows.take((rows.start < last) & (rows.stop > first))
    begin = edges[np.maximum(here.start, first)]
    end = edges[np.minimum(here.stop, last)]
    steps = np.append(np.flatnonzero(np.diff(here.step, prepend=-1)), len(here))
    sizes = np.concatenate(([0], np.cumsum(end - begin)))
    most = int(np.diff(sizes[steps]).max(initial=0))
    arriving = np.empty(most, values.dtype)
    kernel = _float32 if values.dtype == np.float32 else _int32
    adds = here.op == REDUCE
    kernel(steps, here.src, here.dst, begin, end, adds, values, arriving)


def _apply(
    steps: Column,
    src: Column,
    dst: Column,
    begin: Column,
    end: Column,
    adds: npt.NDArray[np.bool_],
    values: npt.NDArray[Any],
    arriving: npt.NDArray[Any],
) -> None:
    """Run rows step by step: those of a step read the contents from before it."""
    for step in range(len(steps) - 1):
        at = 0
        for row in range(steps[step], steps[step + 1]):
            for element in range(begin[row], end[row]):
                arriving[at] = values[src[row], element]
                at += 1
        at = 0
        for row in range(steps[step], steps[step + 1]):
            if adds[row]:
                for element in range(begin[row], end[row]):
                    values[dst[row], element] += arriving[at]
                    at += 1
            else:
                for element in range(begin[row], end[row]):
                    values[dst[row], element] = arriving[at]
                    at += 1


def _signature(item: types.Type) -> types.Signature:
    return types.void(*_columns, types.boolean[::1], item[:, ::1], item[::1])


_float32 = compiled(_signature(types.float32))(_apply)
_int32 = compiled(_signature(types.int32))(_apply)
