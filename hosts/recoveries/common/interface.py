"""The interface of a recovery: pure decisions, which are told who is left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from ringleaf.core.units import format_count
from ringleaf.errors import BackendError
from ringleaf.hosts.recoveries.common.plan import (
    LossSituation,
    PipelineShape,
    Plan,
    deal,
    even_spans,
    plan_of,
    regular_pipelines,
)


class NoPlanError(BackendError):
    """A training can't go on: too few workers are left, or losses leave no time."""


class Recovery(ABC):
    """A way to go on after workers are lost. It has no state.

    Attributes:
        saves: Whether it writes checkpoints, and goes back to the last one after a loss. Others
            copy what the lost ones had from those that are left.
        adapts: Whether it plans anew when workers have become slower or faster.
    """

    saves: ClassVar[bool] = False
    adapts: ClassVar[bool] = False

    def begin(self, situation: LossSituation) -> Plan:
        """Return the plan at the start: the pipelines as asked for."""
        return regular_plan(situation.shape, situation.alive)

    @abstractmethod
    def replan(self, situation: LossSituation, plan: Plan) -> Plan:
        """Return the plan after workers have been lost, or have come back.

        Args:
            situation: Who is left.
            plan: The plan so far, some of whose workers may not be left.

        Raises:
            NoPlanError: If too few are left.
        """


def regular_plan(shape: PipelineShape, workers: tuple[int, ...]) -> Plan:
    """Return the plan as asked for, on the first of these workers."""
    spans = even_spans(shape.layers, shape.pp)
    lines = [list(zip(row, spans, strict=True)) for row in regular_pipelines(shape, workers)]
    return plan_of(lines, deal(shape.batch, [1.0] * len(lines)))


def too_few(name: str, left: int, least: int, what: str = "a pipeline") -> NoPlanError:
    """Return the error that too few workers are left."""
    return NoPlanError(
        f"recovery {name}: {what} needs {format_count(least, 'worker')}, got {left} that are left; "
        "take more spares, or hosts that come back"
    )
