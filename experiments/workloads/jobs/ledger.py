"""The gradients of jobs, and checks of their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringleaf.collectives.schedule import Collective, Schedule
from ringleaf.core.tensors import FLOAT32, Array
from ringleaf.core.threads import spread
from ringleaf.experiments.checking.data import Noise
from ringleaf.experiments.checking.deferred import Later
from ringleaf.experiments.checking.judge import Judge
from ringleaf.experiments.checking.verdict import Tolerance
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.ina.systems import System

SHIFT = 17  # elements between the starts of ranks' gradients


class GradientLedger:
    """A ledger of gradients and their sums.

    Each rank's gradient is a window of one long random tensor, further on for each piece. If a
    job's system takes compressed elements only (`System.compress`), or its scheduler wants them,
    each piece is compressed, on its own and without the remainders of earlier ones; that takes no
    simulated time.

    Args:
        elements: Number of elements of the largest model.
        ranks: Number of ranks of the largest job.
        seed: Seed of the random values.
        systems: The system that aggregates for each job, if any does.
        lanes: Values in their packets.
        check: Whether all sums are compared; the first of each size always are.
        compress: The compressor of all jobs whose hosts add up; "": none.
    """

    def __init__(
        self,
        elements: int,
        ranks: int,
        *,
        seed: int,
        systems: Sequence[System | None],
        lanes: int,
        check: bool,
        compress: str = "",
    ) -> None:
        length = elements + SHIFT * (ranks + 1)
        self._long = Noise(seed, 1, length, FLOAT32).part(0, 0, length)
        self._systems = systems
        self._compress = [compress if each is None else each.compress for each in systems]
        self._lanes = lanes
        self._check = check
        self._seen: set[tuple[int, int]] = set()
        self._judge = Judge(Collective.ALLREDUCE)
        self.wrong: list[int | None] = [0] * len(systems)  # elements, by job; None: no data
        self.reasons = [""] * len(systems)  # why the first of them is wrong, by job
        self.checked = [0] * len(systems)  # pieces, by job

    def _source(self, job: int) -> Array:
        """Return the tensor of which a job's gradients are windows."""
        del job  # all have the same
        return self._long

    def _inputs(self, job: int, piece: GradientPiece, ranks: int) -> list[Array]:
        long = self._source(job)
        inputs = [
            long[piece.start + SHIFT * rank : piece.stop + SHIFT * rank] for rank in range(ranks)
        ]
        if not self._compress[job]:
            return inputs
        from ringleaf.experiments.checking.compressed import carry_all  # loads Numba

        return carry_all(self._compress[job], inputs, piece.start)

    def fill(self, job: int, piece: GradientPiece, tensors: Sequence[Array]) -> None:
        """Write each rank's gradient of a piece of a job."""
        pairs = list(zip(tensors, self._inputs(job, piece, len(tensors)), strict=True))
        elements = piece.elements * len(tensors)
        for _ in spread(lambda pair: np.copyto(*pair), pairs, elements):
            pass

    def wants(self, job: int, piece: GradientPiece) -> bool:
        """Return whether the next sum of a piece is to be checked."""
        known = (job, piece.elements) in self._seen
        self._seen.add((job, piece.elements))
        return self._check or not known

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, tensors: Sequence[Array]
    ) -> None:
        """Compare the sums of a piece with the inputs, if this one is to be compared."""
        if self.wants(job, piece):
            self.judge(job, piece, schedule, tensors)

    def judge(
        self, job: int, piece: GradientPiece, schedule: Schedule, tensors: Sequence[Array]
    ) -> None:
        """Check the sums of a piece."""
        inputs = self._inputs(job, piece, len(tensors))
        self.checked[job] += 1
        verdict = self._judge.judge(schedule, inputs, tensors, self._tolerance(job))
        self.wrong[job] = (self.wrong[job] or 0) + verdict.wrong
        self.reasons[job] = self.reasons[job] or verdict.reason

    def _tolerance(self, job: int) -> Tolerance | None:
        """Return the allowed error of a job's aggregation system; None if hosts add."""
        system, lanes = self._systems[job], self._lanes
        if system is None:
            return None
        return Tolerance(lambda parts: system.allowed_error(parts, lanes), block=lanes)


class NoGradients(GradientLedger):
    """A ledger of gradients that have sizes only: nothing is filled in, and nothing checked."""

    def __init__(self, elements: int, ranks: int, **settings: Any) -> None:
        super().__init__(0, 0, **settings)
        self.wrong = [None] * len(self.wrong)

    def fill(self, job: int, piece: GradientPiece, tensors: Sequence[Array]) -> None:
        """Leave the gradients as they are."""

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, tensors: Sequence[Array]
    ) -> None:
        """Compare nothing."""


class LateLedger:
    """A ledger of gradients that checks sums later."""

    def __init__(self, ledger: GradientLedger) -> None:
        self._ledger = ledger
        self.fill = ledger.fill
        self.later = Later(ledger.judge)

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, tensors: Sequence[Array]
    ) -> None:
        """Keep a copy of a piece's sums, if they are to be compared later."""
        if self._ledger.wants(job, piece):
            self.later.keep(job, piece, schedule, tensors=tensors)
