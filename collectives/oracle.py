"""The reference interpreter: runs any schedule on arrays, in the exact order of its additions.

Chunks never meet, so each is computed by itself: inputs stay untouched, and besides them
only the partial sums of one chunk are in memory. Tensors of PyTorch are taken, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.collectives.codec import decoded, encoded
from ringleaf.collectives.schedule import (
    Aggregate,
    Message,
    Op,
    Row,
    Schedule,
    check,
    chunk_ranges,
    messages,
    rows_by_chunk,
)
from ringleaf.core.tensors import Array, Elements, as_array, as_arrays, as_given
from ringleaf.core.units import format_count
from ringleaf.errors import ScheduleError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """One chunk of all ranks, elements `start` to `stop`; equal values may share memory."""

    chunk: int
    start: int
    stop: int
    values: list[Array]


def execute(
    schedule: Schedule, tensors: Sequence[Elements], *, in_place: bool = False
) -> list[Elements]:
    """Return each rank's tensor after the schedule has run on `tensors`, one per rank.

    The result equals, bit for bit, that of any executor that keeps the schedule's order,
    except for the sums of an `Aggregate`: switches have arithmetic of their own, so there the
    value is the exact sum rounded once, to be compared within the system's error bound.

    Args:
        schedule: Any schedule.
        tensors: Arrays, or tensors on the CPU, of the same shape and type.
        in_place: Overwrite `tensors` and return them.

    Raises:
        ScheduleError: If the rows make no sense, or tensors and ranks do not match.
    """
    elements = _check_tensors(schedule, tensors)
    arrays = as_arrays(tensors)
    if in_place and not all(array.flags.c_contiguous for array in arrays):
        raise ScheduleError("execute: tensors must be contiguous to be overwritten")
    results = arrays if in_place else [np.empty(each.shape, each.dtype) for each in arrays]
    inputs = [array.reshape(-1) for array in arrays]
    outputs = [result.reshape(-1) for result in results]

    def read(rank: int, start: int, stop: int) -> Array:
        part = inputs[rank][start:stop]
        return part.copy() if in_place else part

    for result in execute_chunks(schedule, elements, read):
        for output, value in zip(outputs, result.values, strict=True):
            output[result.start : result.stop] = value
    if in_place:
        return list(tensors)
    return [as_given(result, tensor) for result, tensor in zip(results, tensors, strict=True)]


def execute_chunks(
    schedule: Schedule, elements: int, read: Callable[[int, int, int], torch.Tensor | Array]
) -> Iterator[ChunkResult]:
    """Yield the results chunk by chunk, for tensors too large to be held at once.

    `read(rank, start, stop)` returns these elements of a rank's input, flat. It
    is called once for each, just before its chunk is yielded, and may make them up then.

    Raises:
        ScheduleError: If the rows make no sense.
    """
    check(schedule)
    rows_of = rows_by_chunk(schedule)
    for chunk, (start, stop) in enumerate(chunk_ranges(elements, schedule.chunks)):
        values = [as_array(read(rank, start, stop)) for rank in range(schedule.ranks)]
        values += [np.zeros_like(values[0])] * (schedule.places - schedule.ranks)
        if stop > start:
            _execute_chunk(schedule, [row for _, row in rows_of[chunk]], values)
        yield ChunkResult(chunk, start, stop, values[: schedule.ranks])


def _execute_chunk(schedule: Schedule, rows: list[Row], values: list[Array]) -> None:
    for _ in apply_rows(schedule, rows, values):
        pass


def apply_rows(schedule: Schedule, rows: list[Row], values: list[Array]) -> Iterator[Array]:
    """Replace the nodes' `values` of one chunk, row by row; yield the data each row brought.

    Arrays are never changed, so they can be shared.
    """
    for _, step in groupby(rows, attrgetter("step")):
        concurrent = list(step)
        # All of them before the first write.
        arriving = [_arriving(schedule, row, values) for row in concurrent]
        for row, value in zip(concurrent, arriving, strict=True):
            if isinstance(row, Aggregate):
                for rank in row.ranks:
                    values[rank] = value
            elif row.op is Op.REDUCE:
                values[row.dst] = added(values[row.dst], value)
            else:
                values[row.dst] = value
            yield value


@np.errstate(all="ignore")
def added(one: Array, other: Array) -> Array:
    """Return the elementwise sum, with whatever overflows the type of the elements has."""
    total: Array = one + other
    return total


def _arriving(schedule: Schedule, row: Row, values: list[Array]) -> Array:
    if isinstance(row, Aggregate):
        return rounded_sum([values[rank] for rank in row.ranks])
    value, codec = values[row.src], schedule.codec_of(row.op)
    if codec is None or codec.is_lossless:  # tests of the real thing judge whether it is
        return value
    return decoded(codec, encoded(codec, value), value.size, value.dtype)


def message_bytes(schedule: Schedule, tensors: Sequence[torch.Tensor | Array]) -> list[int]:
    """Return the size of each of `messages(schedule)` as it is sent; 0 for an aggregate.

    Raises:
        ScheduleError: If the rows make no sense, or tensors and ranks do not match.
    """
    elements = _check_tensors(schedule, tensors)
    check(schedule)
    values = [array.flatten() for array in as_arrays(tensors)]
    values += [np.zeros_like(values[0]) for _ in range(schedule.places - schedule.ranks)]
    ranges, sizes = chunk_ranges(elements, schedule.chunks), list[int]()
    for _, group in groupby(messages(schedule), attrgetter("step")):
        step = list(group)
        arriving = [_taken(schedule, each, values, ranges) for each in step]
        for (start, value, size), each in zip(arriving, step, strict=True):
            sizes.append(size)
            written = each.ranks if isinstance(each, Aggregate) else (each.dst,)
            for node in written:
                there = values[node][start : start + value.size]
                adds = isinstance(each, Message) and each.op is Op.REDUCE
                there[:] = added(there, value) if adds else value
    return sizes


def _taken(
    schedule: Schedule,
    each: Message | Aggregate,
    values: list[Array],
    ranges: list[tuple[int, int]],
) -> tuple[int, Array, int]:
    """Return a message's first element, its values, and the bytes it takes."""
    if isinstance(each, Aggregate):
        start, stop = ranges[each.chunk]
        return start, rounded_sum([values[rank][start:stop] for rank in each.ranks]), 0
    start, stop = ranges[each.start][0], ranges[each.stop - 1][1]
    value, codec = values[each.src][start:stop].copy(), schedule.codec_of(each.op)
    if codec is None or start == stop:
        return start, value, value.nbytes
    data = encoded(codec, value)
    return start, decoded(codec, data, value.size, value.dtype), data.size


def exact_sum(tensors: Sequence[Elements]) -> Elements:
    """Return the sum in float64, or int64 for integers, to compare within a bound, not by bits.

    Raises:
        ScheduleError: If there are no tensors.
    """
    if not tensors:
        raise ScheduleError("exact_sum: needs one tensor at least, got none")
    first, *others = as_arrays(tensors)
    total = first.astype(np.float64 if first.dtype.kind == "f" else np.int64)
    with np.errstate(all="ignore"):
        for each in others:
            total += each
    return as_given(total, tensors[0])


@np.errstate(all="ignore")
def rounded_sum(arrays: Sequence[Array]) -> Array:
    """Return the exact sum, rounded once to the type of the elements."""
    total: Array = exact_sum(arrays).astype(arrays[0].dtype)
    return total


def _check_tensors(schedule: Schedule, tensors: Sequence[torch.Tensor | Array]) -> int:
    """Check that the tensors fit the schedule, and return the number of elements."""
    if len(tensors) != schedule.ranks:
        raise ScheduleError(
            f"execute: needs {format_count(schedule.ranks, 'tensor')}, got {len(tensors)}"
        )
    for rank, tensor in enumerate(tensors):
        if (tensor.shape, tensor.dtype) != (tensors[0].shape, tensors[0].dtype):
            raise ScheduleError(
                f"execute: tensors must be alike, got {tuple(tensor.shape)} {tensor.dtype} on "
                f"rank {rank}; rank 0 has {tuple(tensors[0].shape)} {tensors[0].dtype}"
            )
    return prod(tensors[0].shape)
