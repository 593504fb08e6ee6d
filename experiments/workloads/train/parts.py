"""Calls that belong together: ranks' parts in collectives and messages."""

from __future__ import annotations

from dataclasses import dataclass

from ringleaf.errors import BackendError
from ringleaf.experiments.workloads.train.calls import CollectiveCall


class CallError(BackendError):
    """Calls that can't go together, or that can never end."""


@dataclass(frozen=True, slots=True)
class RankCall:
    """One rank's part in a collective."""

    rank: int  # of the world
    number: int  # of the call, by its rank
    call: CollectiveCall
    clock_ps: int  # when it was made
    buffer: str = ""  # where its data lie


@dataclass(frozen=True, slots=True)
class MatchedCalls:
    """Calls that belong together.

    Attributes:
        group: The name of the process group.
        members: The world's ranks that take part, in the order of the group's ranks; of a
            message, sender and receiver.
        parts: Their calls, in this order.
        number: The place among the group's calls, from 0; of a message, among those between the
            two.
        start_ps: When the last of them was made.
    """

    group: str
    members: tuple[int, ...]
    parts: tuple[RankCall, ...]
    number: int
    start_ps: int

    @property
    def call(self) -> CollectiveCall:
        """The first member's call."""
        return self.parts[0].call

    @property
    def is_of_one(self) -> bool:
        """Whether one rank alone takes part, maybe as both ends of a message."""
        return len({*self.members}) < 2
