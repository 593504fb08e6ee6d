"""The further questions that a scheduler may answer; each is asked only of those that have it.

Most schedulers have `release` alone. Others also decide how a gradient is cut, in which order a
backward pass computes, when jobs start, or that sums are gathered later than they are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import Piece
from ringleaf.hosts.training.steps import Step

CollectivePs = Callable[[int], int]
"""Foretells the time of a job's collective of so many bytes, alone on the network."""


@runtime_checkable
class Cuts(Protocol):
    """A scheduler that decides how a gradient is cut, which includes what is merged."""

    def cut(self, model: Model, collective_ps: CollectivePs) -> list[Piece]:
        """Return the pieces of a model's gradient, in the order in which they become ready."""


@runtime_checkable
class OrdersSteps(Protocol):
    """A scheduler that decides in which order a backward pass computes."""

    def steps(self, model: Model, collective_ps: CollectivePs) -> Sequence[Step]:
        """Return the steps of each backward pass; every layer's gradient is made by one of them."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """A job that has not begun, as it would run alone; times in picoseconds."""

    start_ps: int
    period_ps: int  # of an iteration
    busy_ps: tuple[tuple[int, int], ...]  # begin and end of its transfers within the period
    link_ps: Mapping[tuple[str, str], float]  # as in `Standing`


@runtime_checkable
class Shifts(Protocol):
    """A scheduler that shifts the start of jobs."""

    def starts(self, jobs: Mapping[int, Prospect]) -> dict[int, int]:
        """Return the time at which each job shall begin to compute: its start, or later."""


@runtime_checkable
class SeesLinks(Protocol):
    """A scheduler that needs `Standing.link_ps`, which takes time to compute."""

    sees_links: bool


@runtime_checkable
class Splits(Protocol):
    """A scheduler that wants reduce-scatters and all-gathers by themselves.

    A piece whose sums lie on one rank each becomes an item again, which `gathers`. Collectives that
    have no two such halves stay whole; specs with such algorithms are refused.
    """

    splits: bool


@runtime_checkable
class WantsGain(Protocol):
    """A scheduler whose releases have a `gain`; specs with a controller without one are refused."""

    wants_gain: bool
