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

Results are mostly right, which `confirm` tells fast. Only where it does not, `scrutiny` looks
element by element, to say which are wrong, and why.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ringleaf.collectives.definition import Demands, Faults, demands, find_faults
from ringleaf.collectives.schedule import Collective, Schedule, chunk_ranges
from ringleaf.core.tensors import Array, as_arrays
from ringleaf.experiments.checking.confirm import confirms
from ringleaf.experiments.checking.data import Given, RankInputs
from ringleaf.experiments.checking.verdict import RIGHT, Tolerance, Verdict

if TYPE_CHECKING:
    import torch

    from ringleaf.networks.endpoints.leases import Leases

_WHOLE = (Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST)
"""Collectives that demand the same of all elements of a rank."""


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
        inputs: RankInputs | Sequence[torch.Tensor | Array],
        results: Sequence[torch.Tensor | Array],
        tolerance: Tolerance | None = None,
        leases: Leases | None = None,
    ) -> Verdict:
        """Judge the values that ranks hold after a schedule has run.

        Args:
            schedule: The one that ran.
            inputs: The ranks' inputs, or their tensors, flat, as they were before it.
            results: Each rank's tensor, flat, after it.
            tolerance: Tolerance of the system that added, if hosts did not add.
            leases: The leases that say where the results are; None: in `results`.

        Raises:
            ScheduleError: If the schedule's rows make no sense.
        """
        source = Given(inputs) if isinstance(inputs, Sequence) else inputs
        arrays = as_arrays(results)
        faults, demand = self._faults_of(schedule), self._demand(source.ranks)
        errors: list[float] = []
        if faults.first is None and confirms(
            schedule, demand, source, arrays, tolerance, leases, errors
        ):
            return Verdict(0, error=max(errors)) if errors else RIGHT
        if leases is not None:
            leases.restore()
        from ringleaf.experiments.checking.scrutiny import scrutinise  # rarely needed

        return scrutinise(schedule, demand, faults, source, arrays, tolerance)

    def judge_schedule(self, schedule: Schedule, elements: int) -> Verdict | None:
        """Judge a schedule whose values nobody has; return None if it leaves nothing wrong.

        Args:
            schedule: The one that ran.
            elements: The number of elements of each rank's tensor.

        Raises:
            ScheduleError: If the schedule's rows make no sense.
        """
        faults = self._faults_of(schedule)
        if faults.first is None:
            return None
        sizes = [stop - start for start, stop in chunk_ranges(elements, schedule.chunks)]
        return Verdict(max(int((faults.cells @ np.array(sizes)).sum()), 1), str(faults.first))

    def _demand(self, ranks: int) -> Demands:
        blocks = 1 if self._collective in _WHOLE else ranks
        return demands(self._collective, ranks, blocks, self._root)

    def _faults_of(self, schedule: Schedule) -> Faults:
        known = self._faults.get(id(schedule))
        if known is not None and known[0]() is schedule:
            return known[1]
        faults = find_faults(schedule, self._collective, self._root)
        self._faults[id(schedule)] = weakref.ref(schedule), faults
        return faults
