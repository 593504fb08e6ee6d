"""A director that has messages sent at given times."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.units import FOREVER_PS
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.virtual import VirtualNetwork


class TimedMessages:
    """A director that has a schedule carried at each of some times, and notes what it is told.

    Args:
        network: The network.
        message: A schedule, and the ranks' tensors.
        starts_ps: The times.
    """

    def __init__(
        self, network: VirtualNetwork, message: tuple[Schedule, list[Any]], *starts_ps: int
    ) -> None:
        self.network, self.message, self.starts_ps = network, message, [*starts_ps]
        self.opened = ExitStack()
        self.due: list[CollectiveOperation] = []
        self.reached: list[int] = []
        self.finished: list[tuple[int, int]] = []

    def start(self, now_ps: int) -> None:
        assert now_ps == 0

    def take_operations(self) -> list[CollectiveOperation]:
        due, self.due = self.due, []
        return due

    def next_ps(self) -> int:
        return self.starts_ps[0] if self.starts_ps else FOREVER_PS

    def reach(self, now_ps: int) -> None:
        self.reached.append(now_ps)
        self.starts_ps.pop(0)
        made = self.network.endpoints.operation(*self.message)
        self.due.append(self.opened.enter_context(made))

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        self.finished.append((operation.end_ps, now_ps))
