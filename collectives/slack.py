"""Proved bounds on the distance of float sums from the exact ones, as opposed to measured ones.

Source:
    Higham, "Accuracy and stability of numerical algorithms", 2nd edition, SIAM 2002: sections 4.2
    (any order of additions) and 3.3 (running error analysis).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import torch

from ringleaf.collectives.codec import Lossy
from ringleaf.collectives.oracle import exact_sum
from ringleaf.collectives.rounding import FINE_UNIT, UNIT, growth, sum_growth
from ringleaf.collectives.schedule import Aggregate, Op, Row, Schedule, chunk_ranges, rows_by_chunk


def wrapped_or_exact_sum(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the sum in float64; of int32, modulo 2^32 as int64."""
    total = exact_sum(tensors)
    return total if total.is_floating_point() else total.to(torch.int32).to(torch.int64)


def sum_error_bound(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return a bound (float64) on a float32 sum's distance, in any order, from `exact_sum`.

    n addends are off by g = (n - 1) u / (1 - (n - 1) u) times the sum of their magnitudes at most.
    That sum is itself made of float32, so it may be too small by as much; and the exact one has
    the same error with float64's u. Infinite where the magnitudes' sum overflows. Integers: 0.
    """
    if not tensors[0].is_floating_point():
        return torch.zeros(tensors[0].shape, dtype=torch.float64)
    return _magnitudes(tensors) * sum_growth(len(tensors))


def _magnitudes(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Add up magnitudes, in float32 as that takes half the time."""
    total = tensors[0].abs()
    for tensor in tensors[1:]:
        total += tensor.abs()
    return total.double()


def codec_slack(schedule: Schedule, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return how far results may be off if the schedule's codec loses as much as it documents.

    Errors are followed row by row: an encoding adds the codec's bound, an addition that of both
    its operands and its own rounding.

    Args:
        schedule: Its codec is lossy. One that documents no bound may lose nothing.
        tensors: Each rank's input, flat.

    Returns:
        (elements,) float64: the largest of all ranks.
    """
    parts = []
    ranges = chunk_ranges(tensors[0].numel(), schedule.chunks)
    for rows, (start, stop) in zip(rows_by_chunk(schedule), ranges, strict=True):
        values = [tensor[start:stop] for tensor in tensors]
        values += [torch.zeros_like(values[0])] * (schedule.places - schedule.ranks)
        slacks = [torch.zeros(stop - start, dtype=torch.float64)] * schedule.places
        if stop > start:
            _follow(schedule, [row for _, row in rows], values, slacks)
        parts.append(torch.stack(slacks[: schedule.ranks]).amax(dim=0))
    of_reference = growth(len(tensors), FINE_UNIT) * (1 + 2.0**-10)
    return torch.cat(parts) + of_reference * _magnitudes(tensors)


def _follow(
    schedule: Schedule, rows: list[Row], values: list[torch.Tensor], slacks: list[torch.Tensor]
) -> None:
    """Replace all nodes' values of one chunk, and the bounds (`slacks`) on their errors."""
    for _, step in groupby(rows, attrgetter("step")):
        concurrent = list(step)
        arriving = [_arriving(schedule, row, values, slacks) for row in concurrent]
        for row, (value, slack) in zip(concurrent, arriving, strict=True):
            if isinstance(row, Aggregate):
                for rank in row.ranks:
                    values[rank], slacks[rank] = value, slack
            elif row.op is Op.REDUCE:
                values[row.dst] = values[row.dst] + value
                slacks[row.dst] = slacks[row.dst] + slack + _rounding(values[row.dst])
            else:
                values[row.dst], slacks[row.dst] = value, slack


def _arriving(
    schedule: Schedule, row: Row, values: list[torch.Tensor], slacks: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(row, Aggregate):
        total = exact_sum([values[rank] for rank in row.ranks]).to(values[0].dtype)
        slack = torch.stack([slacks[rank] for rank in row.ranks]).sum(dim=0)
        return total, slack + _rounding(total)
    value, slack, codec = values[row.src], slacks[row.src], schedule.codec_of(row.op)
    if codec is None or codec.is_lossless:
        return value, slack
    if isinstance(codec, Lossy):
        slack = slack + _allowed(codec, value)
    return codec.decode(codec.encode(value), value.numel(), value.dtype), slack


def _allowed(codec: Lossy, value: torch.Tensor) -> torch.Tensor:
    """Return the error that a codec documents, but 0 where it is more than the values' norm.

    Such a bound, or one that is no number, would let zeros pass for any values.
    """
    bound, most = codec.error_bound(value).double(), value.double().norm()
    bounds_nothing = ~((bound >= 0) & (bound <= most)) & most.isfinite()
    return bound.masked_fill(bounds_nothing, 0.0)


def _rounding(total: torch.Tensor) -> torch.Tensor:
    return total.double().abs() * (UNIT if total.is_floating_point() else 0.0)
