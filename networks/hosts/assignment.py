"""The part of a training job that a network sees: its gradients, and how each is reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ringleaf.collectives.schedule import Schedule
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.pieces import Piece


class Ledger(Protocol):
    """Gives gradients, and looks at their sums."""

    def fill(self, job: int, piece: Piece, tensors: Sequence[torch.Tensor]) -> None:
        """Write what each rank contributes."""

    def check(
        self, job: int, piece: Piece, schedule: Schedule, tensors: Sequence[torch.Tensor]
    ) -> None:
        """Look at what each rank has got."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job and how its group reduces gradients.

    Args:
        job: Its state machine.
        schedule_for: The collective for so many elements.
        dtype: Of the gradients.
        weight: Its importance, to schedulers.
        endless: Others don't wait for it: background traffic.
    """

    job: TrainingJob
    schedule_for: Callable[[int], Schedule]
    dtype: torch.dtype
    weight: float = 1.0
    endless: bool = False
