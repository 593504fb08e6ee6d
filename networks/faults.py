"""Disturbances of a run: links that change their loss rate, and switches that restart.

They happen between events, at a time of their own. A link that is down loses everything; a burst
of losses is a loss rate that is set and reset; a loss in one direction concerns one port.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringleaf.core.units import FOREVER_PS

Direction = tuple[str, str]
"""A direction of a link: its sending and its receiving end."""


@dataclass(frozen=True, slots=True)
class LinkLoss:
    """A change of the probability with which one direction of a link loses packets.

    Attributes:
        after_ps: Time since the run's start.
        link: The direction.
        loss: Probability, 0 to 1; None restores that of the link.
    """

    after_ps: int
    link: Direction
    loss: float | None


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of a switch: it loses registers, counters and queues; its tables are written anew.

    Attributes:
        after_ps: Time since the run's start.
        switch: Its name.
    """

    after_ps: int
    switch: str


Disturbance = LinkLoss | Restart


class Agenda:
    """The remaining disturbances of one run.

    Args:
        disturbances: In any order. Those of one instant happen in the order given.
        start_ps: Start time of the run.
    """

    def __init__(self, disturbances: Iterable[Disturbance], start_ps: int) -> None:
        self._left = sorted(disturbances, key=lambda each: each.after_ps)
        self._start_ps = start_ps

    @property
    def next_ps(self) -> int:
        """Time of the next disturbance; `FOREVER_PS` if there is none."""
        return self._start_ps + self._left[0].after_ps if self._left else FOREVER_PS

    def take_due(self, now_ps: int) -> list[Disturbance]:
        """Remove and return the disturbances that are due by now."""
        due = [each for each in self._left if self._start_ps + each.after_ps <= now_ps]
        del self._left[: len(due)]
        return due

    def take_rest(self) -> list[Disturbance]:
        """Remove and return the disturbances that are not due yet."""
        rest, self._left = self._left, []
        return rest
