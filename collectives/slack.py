"""Proved bounds on the distance of float sums from the exact ones, as opposed to measured ones.

Source:
    Higham, "Accuracy and stability of numerical algorithms", 2nd edition, SIAM 2002: sections 4.2
    (any order of additions) and 3.3 (running error analysis).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.collectives.codec import Lossy, decoded, encoded
from ringleaf.collectives.oracle import added, exact_sum, rounded_sum
from ringleaf.collectives.rounding import FINE_UNIT, UNIT, growth, sum_growth
from ringleaf.collectives.schedule import Aggregate, Op, Row, Schedule, chunk_ranges, rows_by_chunk
from ringleaf.core.tensors import Array, as_array, as_arrays, as_tensor

if TYPE_CHECKING:
    import torch


def wrapped_or_exact_sum(arrays: Sequence[Array]) -> Array:
    """Return the sum in float64; of int32, modulo 2^32 as int64."""
    total: Array = exact_sum(arrays)
    return total if total.dtype.kind == "f" else total.astype(np.int32).astype(np.int64)


def sum_error_bound(tensors: Sequence[torch.Tensor | Array]) -> Array:
    """Return a bound (float64) on a float32 sum's distance, in any order, from `exact_sum`.

    n addends are off by g = (n - 1) u / (1 - (n - 1) u) times the sum of their magnitudes at most.
    That sum is itself made of float32, so it may be too small by as much; and the exact one has
    the same error with float64's u. Infinite where the magnitudes' sum overflows. Integers: 0.
    """
    arrays = as_arrays(tensors)
    if arrays[0].dtype.kind != "f":
        return np.zeros(arrays[0].shape)
    return _magnitudes(arrays) * sum_growth(len(arrays))


def _magnitudes(arrays: Sequence[Array]) -> Array:
    """Add up magnitudes, in float32 as that takes half the time."""
    total = np.abs(arrays[0])
    with np.errstate(all="ignore"):
        for each in arrays[1:]:
            total += np.abs(each)
    return total.astype(np.float64)


@np.errstate(all="ignore")
def codec_slack(schedule: Schedule, tensors: Sequence[torch.Tensor | Array]) -> Array:
    """Return how far results may be off if the schedule's codec loses as much as it documents.

    Errors are followed row by row: an encoding adds the codec's bound, an addition that of both
    its operands and its own rounding.

    Args:
        schedule: Its codec is lossy. One that documents no bound may lose nothing.
        tensors: Each rank's input, flat.

    Returns:
        (elements,) float64: the largest of all ranks.
    """
    parts, arrays = [], as_arrays(tensors)
    ranges = chunk_ranges(arrays[0].size, schedule.chunks)
    for rows, (start, stop) in zip(rows_by_chunk(schedule), ranges, strict=True):
        values = [array[start:stop] for array in arrays]
        values += [np.zeros_like(values[0])] * (schedule.places - schedule.ranks)
        slacks = [np.zeros(stop - start)] * schedule.places
        if stop > start:
            _follow(schedule, [row for _, row in rows], values, slacks)
        parts.append(np.max(slacks[: schedule.ranks], axis=0))
    of_reference = growth(len(arrays), FINE_UNIT) * (1 + 2.0**-10)
    return np.concatenate(parts) + of_reference * _magnitudes(arrays)


def _follow(schedule: Schedule, rows: list[Row], values: list[Array], slacks: list[Array]) -> None:
    """Replace all nodes' values of one chunk, and the bounds (`slacks`) on their errors."""
    for _, step in groupby(rows, attrgetter("step")):
        concurrent = list(step)
        arriving = [_arriving(schedule, row, values, slacks) for row in concurrent]
        for row, (value, slack) in zip(concurrent, arriving, strict=True):
            if isinstance(row, Aggregate):
                for rank in row.ranks:
                    values[rank], slacks[rank] = value, slack
            elif row.op is Op.REDUCE:
                values[row.dst] = added(values[row.dst], value)
                slacks[row.dst] = slacks[row.dst] + slack + _rounding(values[row.dst])
            else:
                values[row.dst], slacks[row.dst] = value, slack


def _arriving(
    schedule: Schedule, row: Row, values: list[Array], slacks: list[Array]
) -> tuple[Array, Array]:
    if isinstance(row, Aggregate):
        total = rounded_sum([values[rank] for rank in row.ranks])
        slack = np.sum([slacks[rank] for rank in row.ranks], axis=0)
        return total, slack + _rounding(total)
    value, slack, codec = values[row.src], slacks[row.src], schedule.codec_of(row.op)
    if codec is None or codec.is_lossless:
        return value, slack
    if isinstance(codec, Lossy):
        slack = slack + _allowed(codec, value)
    return decoded(codec, encoded(codec, value), value.size, value.dtype), slack


def _allowed(codec: Lossy, value: Array) -> Array:
    """Return the error that a codec documents, but 0 where it is more than the values' norm.

    Such a bound, or one that is no number, would let zeros pass for any values.
    """
    bound = as_array(codec.error_bound(as_tensor(value))).astype(np.float64)
    most = np.linalg.norm(value.astype(np.float64))
    bounds_nothing = ~((bound >= 0) & (bound <= most)) & np.isfinite(most)
    return np.where(bounds_nothing, 0.0, bound)


def _rounding(total: Array) -> Array:
    return np.abs(total.astype(np.float64)) * (UNIT if total.dtype.kind == "f" else 0.0)
