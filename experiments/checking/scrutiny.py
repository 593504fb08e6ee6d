"""A search for wrong elements, one by one, in results that `confirm` has not found to be right.

It is slow, and has the last word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ringleaf.collectives.codec import is_lossy
from ringleaf.collectives.definition import EVERYONE, Demands, Faults
from ringleaf.collectives.oracle import execute_chunks
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.collectives.slack import codec_slack, sum_error_bound, wrapped_or_exact_sum
from ringleaf.core.tensors import Array
from ringleaf.experiments.checking.data import RankInputs, whole
from ringleaf.experiments.checking.verdict import Bound, Tolerance, Verdict

Arrays = Sequence[Array]

_PART = 1 << 16  # elements checked at a time, so that they stay in the processor's cache

_MOST = np.finfo(np.float32).max


@dataclass(frozen=True, slots=True)
class _Failure:
    """Elements of a rank, from `start` on, of which those in `mask` are wrong."""

    rank: int
    start: int
    mask: Array
    reason: str


def scrutinise(
    schedule: Schedule,
    demand: Demands,
    faults: Faults,
    inputs: RankInputs,
    results: Arrays,
    tolerance: Tolerance | None,
) -> Verdict:
    """Count the wrong elements, and say why the first one is wrong.

    Args:
        schedule: The one that ran; its rows make sense.
        demand: The data that each rank must hold, by block of the tensor.
        faults: The chunks that the schedule does not bring the right ranks' inputs to.
        inputs: The ranks' inputs.
        results: Each rank's elements, flat, after it.
        tolerance: Tolerance of the system that added, if hosts did not add.
    """
    failures = chain(
        _by_schedule(schedule, faults, inputs.elements),
        _by_values(schedule, demand, inputs, results, tolerance),
        () if tolerance else _by_replay(schedule, inputs, results),
    )
    return _tally(failures, inputs.elements)


def _tally(failures: Iterable[_Failure], elements: int) -> Verdict:
    marks: dict[int, Array] = {}
    reason = ""
    for each in failures:
        if not each.mask.any():
            continue
        reason = reason or each.reason
        if each.rank not in marks:
            marks[each.rank] = np.zeros(elements, bool)
        marks[each.rank][each.start : each.start + each.mask.size] |= each.mask
    return Verdict(sum(int(mark.sum()) for mark in marks.values()), reason)


def _by_schedule(schedule: Schedule, faults: Faults, elements: int) -> Iterator[_Failure]:
    """Yield the chunks that the schedule does not bring the right ranks' inputs to."""
    if faults.first is None:
        return
    ranges = chunk_ranges(elements, schedule.chunks)
    for rank, chunk in np.argwhere(faults.cells).tolist():
        start, stop = ranges[chunk]
        mask = np.ones(stop - start, bool)
        yield _Failure(rank, start, mask, f"the schedule is wrong: {faults.first}")


def _by_values(
    schedule: Schedule,
    demand: Demands,
    inputs: RankInputs,
    results: Arrays,
    tolerance: Tolerance | None,
) -> Iterator[_Failure]:
    """Yield the elements that are not the sum, or the copy, that they must be."""
    slack = codec_slack(schedule, whole(inputs)) if is_lossy(schedule.codec) else None
    if (demand == EVERYONE).any():
        return _wrong_sums(demand, inputs, results, tolerance, slack)
    return _wrong_copies(demand, inputs, results, slack)


def _wrong_sums(
    demand: Demands,
    inputs: RankInputs,
    results: Arrays,
    tolerance: Tolerance | None,
    slack: Array | None,
) -> Iterator[_Failure]:
    ranges = chunk_ranges(inputs.elements, demand.shape[1])
    holders = [(rank, *ranges[block]) for rank, block in np.argwhere(demand == EVERYONE).tolist()]
    block = tolerance.block if tolerance else 1
    part = -(-_PART // block) * block
    for start in range(0, inputs.elements, part):
        stop = min(start + part, inputs.elements)
        addends = [inputs.part(rank, start, stop) for rank in range(inputs.ranks)]
        off = None if slack is None else slack[start:stop]
        total = _Sum(addends, tolerance.bound if tolerance else None, off)
        for rank, first, last in holders:
            a, b = max(first, start), min(last, stop)
            if a < b and (mask := total.far(results[rank][a:b], a - start)) is not None:
                at = int(mask.argmax())
                got = results[rank][a + at]
                yield _Failure(
                    rank,
                    a,
                    mask,
                    f"rank {rank}, element {a + at}: {total.miss(got, a - start + at)}",
                )


class _Sum:
    """The sum of some elements over all ranks, and how far a result may be from it."""

    @np.errstate(all="ignore")  # of infinities and NaNs
    def __init__(self, addends: Arrays, bound: Bound | None, slack: Array | None) -> None:
        self._addends = addends
        self._exact = wrapped_or_exact_sum(addends)
        if bound is not None and addends[0].dtype.kind == "f":
            self._allowed = bound(np.stack(addends))
        elif slack is not None:
            self._allowed = slack
        else:
            self._allowed = sum_error_bound(addends)
        self._judged: tuple[int, Array, Array | None] | None = None

    def far(self, result: Array, at: int) -> Array | None:
        """Return a mask of the elements too far away, from the `at`-th on; None if none is.

        Ranks mostly hold the same bits, which are checked only once.
        """
        known = self._judged
        if known is not None and known[0] == at and _same_bits(known[1], result):
            return known[2]
        mask = self._far(result, slice(at, at + result.size))
        self._judged = at, result, mask
        return mask

    @np.errstate(all="ignore")
    def _far(self, result: Array, where: slice) -> Array | None:
        exact, allowed = self._exact[where], self._allowed[where]
        near: Array = np.abs(result - exact) <= allowed
        near &= np.isfinite(exact) & np.isfinite(allowed)
        if near.all():
            return None
        if result.dtype.kind == "f":
            places = np.flatnonzero(~near)
            addends = np.stack([array[where][places] for array in self._addends])
            near[places] = _is_special(result[places], exact[places], addends)
        return None if near.all() else ~near

    def miss(self, got: Array, at: int) -> str:
        """Return a text that says how far a result is off."""
        allowed = float(self._allowed[at])
        give = f", give or take {allowed:.2g}" if allowed else ""
        return f"got {_show(got)}, the sum is {_show(self._exact[at])}{give}"


def _is_special(result: Array, exact: Array, addends: Array) -> Array:
    """Return a mask of results that are right though not near: NaN, infinities, overflow.

    A partial sum may overflow if the sum of all magnitudes is beyond the largest float32; the
    result may then be no number, by the order of additions.

    Args:
        result: (elements,) float32, the results.
        exact: The exact sums in float64, where nothing overflows.
        addends: (ranks, elements), the values that were added.
    """
    finite = np.where(np.isfinite(addends), np.abs(addends.astype(np.float64)), 0.0)
    may_overflow = finite.sum(axis=0) * (1 + len(addends) * 2.0**-22) > _MOST
    is_same: Array = (result == exact) | (np.isnan(result) & np.isnan(exact))
    is_same |= may_overflow & ~np.isnan(exact) & ~np.isfinite(result)
    return is_same


def _wrong_copies(
    demand: Demands, inputs: RankInputs, results: Arrays, slack: Array | None
) -> Iterator[_Failure]:
    ranges = chunk_ranges(inputs.elements, demand.shape[1])
    row, original = b"", np.empty(0)
    for rank, result in enumerate(results):
        if demand[rank].tobytes() != row:
            row = demand[rank].tobytes()
            cut = zip(demand[rank].tolist(), ranges, strict=True)
            original = np.concatenate([inputs.part(whose, *place) for whose, place in cut])
        if _same_bits(original, result):
            continue
        mask = _differing_bits(original, result)
        if slack is not None:
            with np.errstate(all="ignore"):
                mask &= ~(np.abs(result - original.astype(np.float64)) <= slack)
        if mask.any():
            at = int(mask.argmax())
            got, right = _show(result[at]), _show(original[at])
            yield _Failure(rank, 0, mask, f"rank {rank}, element {at}: got {got}, must be {right}")


def _by_replay(schedule: Schedule, inputs: RankInputs, results: Arrays) -> Iterator[_Failure]:
    """Yield the elements that differ in any bit from the schedule's results for `inputs`."""
    for chunk in execute_chunks(schedule, inputs.elements, inputs.part):
        for rank, (value, result) in enumerate(zip(chunk.values, results, strict=True)):
            part = result[chunk.start : chunk.stop]
            if _same_bits(part, value):
                continue
            mask = _differing_bits(part, value)
            at = int(mask.argmax())
            yield _Failure(
                rank,
                chunk.start,
                mask,
                f"rank {rank}, element {chunk.start + at}: got {_show(part[at])}, "
                f"the schedule's order of additions gives {_show(value[at])}",
            )


def _show(value: Array) -> str:
    """Return a number as text, so that no two float32 look alike."""
    return f"{value.item():.9g}" if value.dtype.kind == "f" else str(value.item())


def _same_bits(a: Array, b: Array) -> bool:
    return np.array_equal(a.view(np.int32), b.view(np.int32))


def _differing_bits(a: Array, b: Array) -> Array:
    """Return a mask of elements whose bits differ; so NaN equals itself, and -0 is not 0."""
    differing: Array = a.view(np.int32) != b.view(np.int32)
    return differing
