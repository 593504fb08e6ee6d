"""Who decides what is run on a network, and when: the jobs' driver is one."""

from __future__ import annotations

from typing import Protocol

from ringleaf.networks.hosts.execution import Operation


class Director(Protocol):
    """Sans-I/O: it is told the time and what is done, and asked what to start."""

    def start(self, now_ps: int) -> None:
        """The network is ready."""

    def take_operations(self) -> list[Operation]:
        """Return what is to start now; each is returned once."""

    def next_ps(self) -> int:
        """Return when it wants to be told that time has come; `FOREVER_PS`: not at all."""

    def reach(self, now_ps: int) -> None:
        """The time that it wanted has come."""

    def finish(self, operation: Operation, now_ps: int) -> None:
        """An operation is done on all nodes."""
