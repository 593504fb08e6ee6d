"""The part of a training job that a network sees: its gradients, and their collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array, ElementType
from ringleaf.hosts.schedulers.common.hooks import CollectivePs
from ringleaf.hosts.training.job import TrainingJob
from ringleaf.hosts.training.pieces import GradientPiece


class Ledger(Protocol):
    """A source of gradients, which also checks their sums."""

    def fill(self, job: int, piece: GradientPiece, tensors: Sequence[Array]) -> None:
        """Write each rank's contribution."""

    def check(
        self, job: int, piece: GradientPiece, schedule: Schedule, tensors: Sequence[Array]
    ) -> None:
        """Check each rank's result."""


@dataclass(frozen=True, slots=True)
class JobAssignment:
    """A job, and the way its group reduces gradients.

    Args:
        job: The job's state machine.
        schedule_for: Returns the collective for a number of elements.
        dtype: Type of the gradients.
        weight: Importance of the job, for schedulers.
        endless: Whether it is background traffic, whose end a run does not await.
        collective_ps: Foretells the time of a collective of so many bytes; None: by the busiest
            link alone.
        deadline_ps: Time after its start by which it shall be over, for allocators of switches'
            memory; None: it has no deadline.
        turn: Of jobs that wait for an accelerator that they share, the lowest is next.
    """

    job: TrainingJob
    schedule_for: Callable[[int], Schedule]
    dtype: ElementType
    weight: float = 1.0
    endless: bool = False
    collective_ps: CollectivePs | None = None
    deadline_ps: int | None = None
    turn: int = 0
