"""Judge whether results are right by the collective's promise, not by the schedule that ran.

An element of a rank's result is right if

- the schedule brings to it the contributions that the collective demands
  (`ringleaf.collectives.definition`), whatever the tensors are;
- it is the sum of all ranks' inputs, as near as rounding allows, or bit for bit the input that it
  is a copy of;
- hosts that add have added in the schedule's order, bit for bit (`ringleaf.collectives.oracle`).

The allowed error of a sum: n float32 values added one after the other, in any order, are off by at
most (n - 1) u / (1 - (n - 1) u) times the sum of magnitudes, with u = 2^-24 (Higham, "Accuracy
and stability of numerical algorithms", 2nd edition, section 4.2). Integers are exact modulo 2^32.
Sums of switches may be off by the error that their system documents, and results of a lossy codec
by the error that the codec allows (`ringleaf.collectives.codec.Lossy`).

Results are mostly right, which `confirm` tells fast. Only where it does not, results are looked at
element by element, to say which are wrong, and why.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from ringleaf.collectives.codec import is_lossy
from ringleaf.collectives.definition import EVERYONE, Demands, Faults, demands, find_faults
from ringleaf.collectives.oracle import execute_chunks
from ringleaf.collectives.rounding import codec_slack, sum_error_bound, wrapped_or_exact_sum
from ringleaf.collectives.schedule import Collective, Schedule, chunk_ranges
from ringleaf.experiments.confirm import confirms
from ringleaf.experiments.data import Given, Inputs, whole

Tensors = Sequence[torch.Tensor]

Bound = Callable[[Tensors], torch.Tensor]
"""A function from the ranks' inputs to the allowed error of each element of their sum."""

_PART = 1 << 16  # elements checked at a time, so that they stay in the processor's cache

_MOST = torch.finfo(torch.float32).max

_WHOLE = (Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST)
"""Collectives that demand the same of all elements of a rank."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed error of an aggregation system's sums.

    Attributes:
        bound: The bound on the error that the system documents.
        block: `bound` may be called with parts that start at multiples of so many elements.
    """

    bound: Bound
    block: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """The number of wrong elements over all ranks, and why the first one is wrong, in words."""

    wrong: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Elements of a rank, from `start` on, of which those in `mask` are wrong."""

    rank: int
    start: int
    mask: torch.Tensor
    reason: str


class Judge:
    """Judges the results of one collective.

    Args:
        collective: The collective that was asked for, whatever schedules say of themselves.
        root: The root rank of a reduce or broadcast.
    """

    def __init__(self, collective: Collective, root: int = 0) -> None:
        self._collective = collective
        self._root = root
        self._faults: dict[int, tuple[weakref.ref[Schedule], Faults]] = {}

    def examine(self, schedule: Schedule) -> None:
        """Follow a schedule before it runs, and keep the findings for `judge`.

        Raises:
            ScheduleError: If its rows make no sense; a network might never finish with them.
        """
        self._faults_of(schedule)

    def judge(
        self,
        schedule: Schedule,
        inputs: Inputs | Tensors,
        results: Tensors,
        tolerance: Tolerance | None = None,
    ) -> Verdict:
        """Judge the values that ranks hold after a schedule has run.

        Args:
            schedule: The one that ran.
            inputs: The ranks' inputs, or their tensors, flat, as they were before it.
            results: Each rank's tensor, flat, after it.
            tolerance: Tolerance of the system that added, if hosts did not add.

        Raises:
            ScheduleError: If the schedule's rows make no sense.
        """
        given = Given(inputs) if isinstance(inputs, Sequence) else inputs
        failures = self._by_schedule(schedule, given.elements)
        wanted = self._wanted(given.ranks)
        if tolerance or not confirms(schedule, wanted, given, results):
            failures = chain(
                failures,
                _by_values(schedule, wanted, given, results, tolerance),
                () if tolerance else _by_replay(schedule, given, results),
            )
        return _tally(failures, given.elements)

    def _wanted(self, ranks: int) -> Demands:
        blocks = 1 if self._collective in _WHOLE else ranks
        return demands(self._collective, ranks, blocks, self._root)

    def _by_schedule(self, schedule: Schedule, elements: int) -> Iterator[_Failure]:
        """Yield the chunks that the schedule does not bring the right ranks' inputs to."""
        faults = self._faults_of(schedule)
        if faults.first is None:
            return
        ranges = chunk_ranges(elements, schedule.chunks)
        for rank, chunk in np.argwhere(faults.cells).tolist():
            start, stop = ranges[chunk]
            mask = torch.ones(stop - start, dtype=torch.bool)
            yield _Failure(rank, start, mask, f"the schedule is wrong: {faults.first}")

    def _faults_of(self, schedule: Schedule) -> Faults:
        known = self._faults.get(id(schedule))
        if known is not None and known[0]() is schedule:
            return known[1]
        faults = find_faults(schedule, self._collective, self._root)
        self._faults[id(schedule)] = weakref.ref(schedule), faults
        return faults


def _tally(failures: Iterable[_Failure], elements: int) -> Verdict:
    marks: dict[int, torch.Tensor] = {}
    reason = ""
    for each in failures:
        if not each.mask.any():
            continue
        reason = reason or each.reason
        if each.rank not in marks:
            marks[each.rank] = torch.zeros(elements, dtype=torch.bool)
        marks[each.rank][each.start : each.start + each.mask.numel()] |= each.mask
    return Verdict(sum(int(mark.sum()) for mark in marks.values()), reason)


def _by_values(
    schedule: Schedule,
    wanted: Demands,
    inputs: Inputs,
    results: Tensors,
    tolerance: Tolerance | None,
) -> Iterator[_Failure]:
    """Yield the elements that are not the sum, or the copy, that they must be."""
    slack = codec_slack(schedule, whole(inputs)) if is_lossy(schedule.codec) else None
    if (wanted == EVERYONE).any():
        return _wrong_sums(wanted, inputs, results, tolerance, slack)
    return _wrong_copies(wanted, inputs, results, slack)


def _wrong_sums(
    wanted: Demands,
    inputs: Inputs,
    results: Tensors,
    tolerance: Tolerance | None,
    slack: torch.Tensor | None,
) -> Iterator[_Failure]:
    ranges = chunk_ranges(inputs.elements, wanted.shape[1])
    holders = [(rank, *ranges[block]) for rank, block in np.argwhere(wanted == EVERYONE).tolist()]
    block = tolerance.block if tolerance else 1
    part = -(-_PART // block) * block
    for start in range(0, inputs.elements, part):
        stop = min(start + part, inputs.elements)
        given = [inputs.part(rank, start, stop) for rank in range(inputs.ranks)]
        off = None if slack is None else slack[start:stop]
        total = _Sum(given, tolerance.bound if tolerance else None, off)
        for rank, first, last in holders:
            a, b = max(first, start), min(last, stop)
            if a < b and (mask := total.far(results[rank][a:b], a - start)) is not None:
                at = int(mask.nonzero()[0])
                got = results[rank][a + at]
                yield _Failure(
                    rank,
                    a,
                    mask,
                    f"rank {rank}, element {a + at}: {total.miss(got, a - start + at)}",
                )


class _Sum:
    """The sum of some elements over all ranks, and how far a result may be from it."""

    def __init__(self, given: Tensors, bound: Bound | None, slack: torch.Tensor | None) -> None:
        self._given = given
        self._is_plain = bound is None  # plain float or integer arithmetic, by hosts
        self._exact = wrapped_or_exact_sum(given)
        if bound is not None:
            self._allowed = bound(given)
        elif slack is not None:
            self._allowed = slack
        else:
            self._allowed = sum_error_bound(given)
        self._judged: tuple[int, torch.Tensor, torch.Tensor | None] | None = None

    def far(self, result: torch.Tensor, at: int) -> torch.Tensor | None:
        """Return a mask of the elements too far away, from the `at`-th on; None if none is.

        Ranks mostly hold the same bits, which are checked only once.
        """
        known = self._judged
        if known is not None and known[0] == at and _same_bits(known[1], result):
            return known[2]
        mask = self._far(result, slice(at, at + result.numel()))
        self._judged = at, result, mask
        return mask

    def _far(self, result: torch.Tensor, where: slice) -> torch.Tensor | None:
        exact, allowed = self._exact[where], self._allowed[where]
        near = (result - exact).abs() <= allowed
        near &= exact.isfinite() & allowed.isfinite()
        if near.all():
            return None
        if self._is_plain and result.is_floating_point():
            places = (~near).nonzero().view(-1)
            given = torch.stack([tensor[where][places] for tensor in self._given])
            near[places] = _is_special(result[places], exact[places], given)
        return None if near.all() else ~near

    def miss(self, got: torch.Tensor, at: int) -> str:
        """Return a text that says how far a result is off."""
        allowed = float(self._allowed[at])
        give = f", give or take {allowed:.2g}" if allowed else ""
        return f"got {_show(got)}, the sum is {_show(self._exact[at])}{give}"


def _is_special(result: torch.Tensor, exact: torch.Tensor, given: torch.Tensor) -> torch.Tensor:
    """Return a mask of results that are right though not near: NaN, infinities, overflow.

    A partial sum may overflow if the sum of all magnitudes is beyond the largest float32; the
    result then depends on the order of additions.

    Args:
        result: (elements,) float32, the results.
        exact: The exact sums in float64, where nothing overflows.
        given: (ranks, elements), the values that were added.
    """
    finite = given.double().abs().nan_to_num(nan=0.0, posinf=0.0)
    may_overflow = finite.sum(dim=0) * (1 + len(given) * 2.0**-22) > _MOST
    is_same = (result == exact) | (result.isnan() & exact.isnan())
    return is_same | (may_overflow & ~exact.isnan())


def _wrong_copies(
    wanted: Demands, inputs: Inputs, results: Tensors, slack: torch.Tensor | None
) -> Iterator[_Failure]:
    ranges = chunk_ranges(inputs.elements, wanted.shape[1])
    row, original = b"", torch.empty(0)
    for rank, result in enumerate(results):
        if wanted[rank].tobytes() != row:
            row = wanted[rank].tobytes()
            cut = zip(wanted[rank].tolist(), ranges, strict=True)
            original = torch.cat([inputs.part(whose, *place) for whose, place in cut])
        if _same_bits(original, result):
            continue
        mask = _differing_bits(original, result)
        if slack is not None:
            mask &= ~((result - original.double()).abs() <= slack)
        if mask.any():
            at = int(mask.nonzero()[0])
            got, right = _show(result[at]), _show(original[at])
            yield _Failure(rank, 0, mask, f"rank {rank}, element {at}: got {got}, must be {right}")


def _by_replay(schedule: Schedule, inputs: Inputs, results: Tensors) -> Iterator[_Failure]:
    """Yield the elements that differ in any bit from the schedule's results for `inputs`."""
    for chunk in execute_chunks(schedule, inputs.elements, inputs.part):
        for rank, (value, result) in enumerate(zip(chunk.values, results, strict=True)):
            part = result[chunk.start : chunk.stop]
            if _same_bits(part, value):
                continue
            mask = _differing_bits(part, value)
            at = int(mask.nonzero()[0])
            yield _Failure(
                rank,
                chunk.start,
                mask,
                f"rank {rank}, element {chunk.start + at}: got {_show(part[at])}, "
                f"the schedule's order of additions gives {_show(value[at])}",
            )


def _show(value: torch.Tensor) -> str:
    """Return a number as text, so that no two float32 look alike."""
    return f"{value.item():.9g}" if value.is_floating_point() else str(value.item())


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.equal(a.view(torch.int32), b.view(torch.int32)))


def _differing_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a mask of elements whose bits differ; so NaN equals itself, and -0 is not 0."""
    return a.view(torch.int32) != b.view(torch.int32)
