"""The data that ranks bring to meetings, and checks of what they take away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringleaf.collectives.collective import Collective
from ringleaf.collectives.schedule import Schedule, chunk_ranges
from ringleaf.core.tensors import FLOAT32, Array
from ringleaf.experiments.checking.data import Noise, fill_all
from ringleaf.experiments.checking.deferred import Later
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.verdict import Tolerance
from ringleaf.experiments.workloads.graph.schedules import COLLECTIVES
from ringleaf.hosts.workload.graph import CalledCollective
from ringleaf.hosts.workload.matched import MatchedWork
from ringleaf.ina.systems import System


class NoData:
    """A ledger of messages that have sizes only."""

    wrong: int | None = None
    reason = ""

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        """Leave the tensors as they are."""
        pass

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        """Accept any results."""
        pass


class RandomData:
    """A ledger of random values, which depend on the seed and the meeting's number.

    Args:
        meetings: All meetings.
        seed: Seed of the values.
        system: The system that adds up all-reduces, if one does.
        lanes: Values in its packets.
    """

    def __init__(
        self, meetings: Sequence[MatchedWork], *, seed: int, system: System | None, lanes: int
    ) -> None:
        self._meetings, self._seed = meetings, seed
        self._system, self._lanes = system, lanes
        self._judges: dict[tuple[Collective, int], Judge] = {}
        self.wrong: int | None = 0  # elements
        self.reason = ""  # why the first of them is wrong

    def _inputs(self, number: int, tensors: Sequence[Array]) -> Noise:
        seed = self._seed * len(self._meetings) + number
        return Noise(seed, len(tensors), tensors[0].size, FLOAT32)

    def fill(self, number: int, tensors: Sequence[Array]) -> None:
        """Write each rank's contribution to a meeting, the same ones for the same number."""
        fill_all(self._inputs(number, tensors), tensors)

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        """Count the elements of a meeting's results that are wrong, and keep the first reason."""
        meeting, inputs = self._meetings[number], self._inputs(number, tensors)
        if meeting.call in (CalledCollective.GATHER, CalledCollective.SCATTER):
            wrong, reason = _count_moved(meeting, inputs, tensors), "a part is not its sender's"
        else:
            collective = COLLECTIVES[meeting.call] if meeting.call else Collective.BROADCAST
            judge = self._judges.setdefault(
                (collective, meeting.root), Judge(collective, meeting.root)
            )
            verdict = judge.judge(schedule, inputs, tensors, self._tolerance(collective))
            wrong, reason = verdict.wrong, verdict.reason
        assert self.wrong is not None
        self.wrong += wrong
        if wrong and not self.reason:
            self.reason = f"{meeting.name or meeting.label}: {reason}"

    def _tolerance(self, collective: Collective) -> Tolerance | None:
        """Return the allowed error of sums that switches add up; None if hosts add."""
        system, lanes = self._system, self._lanes
        if system is None or collective is not Collective.ALLREDUCE:
            return None
        return Tolerance(lambda parts: system.error_bound(parts, lanes), block=lanes)


class LateData:
    """A ledger of random values that checks results later."""

    def __init__(self, ledger: RandomData) -> None:
        self.fill = ledger.fill
        self.later = Later(ledger.check)

    def check(self, number: int, schedule: Schedule, tensors: Sequence[Array]) -> None:
        """Keep a copy of the results, which are checked later."""
        self.later.keep(number, schedule, tensors=tensors)


def _count_moved(meeting: MatchedWork, inputs: Noise, tensors: Sequence[Array]) -> int:
    """Return the elements that a gather or scatter has not brought where they belong."""
    ranges = chunk_ranges(inputs.elements, len(tensors))
    is_gather = meeting.call is CalledCollective.GATHER
    return sum(
        int(np.count_nonzero(tensors[taker][start:stop] != inputs.part(giver, start, stop)))
        for rank, (start, stop) in enumerate(ranges)
        for giver, taker in [(rank, meeting.root) if is_gather else (meeting.root, rank)]
    )
