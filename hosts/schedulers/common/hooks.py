"""The further questions that a scheduler may answer; each is asked only of those that have it.

Most schedulers have `release` alone. Others also decide how a gradient is cut, in which order a
backward pass computes, when jobs start and where, or that sums are gathered later than they are
made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ringleaf.hosts.training.model import Model
from ringleaf.hosts.training.pieces import GradientPiece
from ringleaf.hosts.training.steps import BackwardStep

CollectivePs = Callable[[int], int]
"""Foretells the time of a job's collective of so many bytes, alone on the network."""


@runtime_checkable
class Cuts(Protocol):
    """A scheduler that decides how a gradient is cut, which includes what is merged."""

    def cut(self, model: Model, collective_ps: CollectivePs) -> list[GradientPiece]:
        """Return the pieces of a model's gradient, in the order in which they become ready."""


@runtime_checkable
class OrdersSteps(Protocol):
    """A scheduler that decides in which order a backward pass computes."""

    def steps(self, model: Model, collective_ps: CollectivePs) -> Sequence[BackwardStep]:
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that has no hosts yet, as it would run alone; times in picoseconds, of an iteration."""

    hosts: tuple[str, ...]  # that the spec gives it: its ranks', and then its servers'
    servers: int
    period_ps: int
    compute_ps: int
    size_bytes: int  # of its gradient


@dataclass(frozen=True, slots=True)
class Place:
    """The hosts of a job, its servers' last, as many as it has been given.

    Jobs whose ranks have a host in common compute one at a time. If several wait for that, the one
    with the lowest `turn` is next.
    """

    hosts: tuple[str, ...]
    turn: int = 0


@runtime_checkable
class Places(Protocol):
    """A scheduler that decides on which hosts jobs run."""

    def places(self, jobs: Sequence[Candidate], switches: Mapping[str, str]) -> list[Place]:
        """Return each job's place.

        Args:
            jobs: The jobs, in their order.
            switches: All hosts, by name, with the switch of each.
        """


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
class Compresses(Protocol):
    """A scheduler of gradients that ranks compress before they are reduced.

    Each piece is compressed on its own, without what earlier ones left; that takes no time unless
    `steps` has some for it. Messages are written by the compressor's codec. `cut` and `steps` are
    told the time in which all ranks gather all ranks' compressed bytes, by how many each one has.
    Specs with algorithms by which switches add are refused.
    """

    compress: str  # as people write a compressor


@runtime_checkable
class WantsGain(Protocol):
    """A scheduler whose releases have a `gain`.

    Specs with a controller without one, or with algorithms by which switches add, are refused.
    """

    wants_gain: bool


@runtime_checkable
class SetsRates(Protocol):
    """A scheduler that does nothing but set the rates of hosts.

    Specs with algorithms by which switches add are refused: their hosts pace themselves.
    """

    sets_rates: bool


@runtime_checkable
class Weighs(Protocol):
    """A scheduler that goes by jobs' weights; if none of a run does, its header says so."""

    weighs: bool


@runtime_checkable
class ChoosesHosts(Protocol):
    """A scheduler whose places have nothing to do with those of the spec; a header says so."""

    chooses_hosts: bool
