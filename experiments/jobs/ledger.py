"""Gradients of jobs, and whether their sums are right."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from collectives.schedule import Schedule
from experiments.data import count_different, count_outside
from hosts.training.pieces import Piece
from ina.systems import System

SHIFT = 17  # elements by which ranks' gradients are apart


class GradientLedger:
    """Each rank's gradient is a window of one long random tensor, further on for each piece.

    Args:
        elements: Of the largest model.
        ranks: Of the largest job.
        seed: Of the random values.
        systems: What aggregates each job, if anything does.
        lanes: Values in its packets.
        check: Whether sums are compared; the first of each size always are.
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
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self._long = torch.randn(elements + SHIFT * (ranks + 1), generator=generator)
        self._systems = systems
        self._lanes = lanes
        self._check = check
        self._seen: set[tuple[int, int]] = set()
        self.wrong = [0] * len(systems)  # elements, by job
        self.checked = [0] * len(systems)  # pieces, by job

    def _inputs(self, piece: Piece, ranks: int) -> list[torch.Tensor]:
        return [
            self._long[piece.start + SHIFT * rank : piece.stop + SHIFT * rank]
            for rank in range(ranks)
        ]

    def fill(self, job: int, piece: Piece, tensors: Sequence[torch.Tensor]) -> None:
        for tensor, values in zip(tensors, self._inputs(piece, len(tensors)), strict=True):
            tensor.copy_(values)

    def check(
        self, job: int, piece: Piece, schedule: Schedule, tensors: Sequence[torch.Tensor]
    ) -> None:
        known = (job, piece.elements) in self._seen
        self._seen.add((job, piece.elements))
        if known and not self._check:
            return
        inputs = self._inputs(piece, len(tensors))
        system = self._systems[job]
        self.checked[job] += 1
        if system is None:
            self.wrong[job] += count_different(schedule, inputs, tensors)
            return

        def bound(parts: Sequence[torch.Tensor]) -> torch.Tensor:
            return system.error_bound(parts, self._lanes)

        self.wrong[job] += count_outside(inputs, tensors, bound, block=self._lanes)
