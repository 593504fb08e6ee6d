"""Directors, which decide what a network runs and when; the driver of jobs is one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ringleaf.hosts.executor.build import Executors
from ringleaf.networks.endpoints.operation import CollectiveOperation, Combine


class Director(Protocol):
    """A sans-I/O source of operations: it is told the time and the ends of operations."""

    def start(self, now_ps: int) -> None:
        """Begin, as the network is ready."""

    def take_operations(self) -> list[CollectiveOperation]:
        """Return the operations that are to start now; each is returned once."""

    def next_ps(self) -> int:
        """Return the time at which it wants `reach` to be called; `FOREVER_PS`: never."""

    def reach(self, now_ps: int) -> None:
        """Take note that the time that it asked for has come."""

    def finish(self, operation: CollectiveOperation, now_ps: int) -> None:
        """Take note that an operation is done on all nodes, since its `end_ps`.

        The network says so at the end of a window of time, which is no longer than a link's delay.
        """


class DirectorStage(Protocol):
    """What a director may have done at once, by the host that it has just heard of."""

    def begin(self, operation: CollectiveOperation, node: int, now_ps: int) -> None:
        """Start a node of an operation; the network asks for the operation before the others."""

    def alarm(self, host: int, at_ps: int) -> None:
        """Have `ring` called at a time."""


@runtime_checkable
class Reacts(Protocol):
    """A director that acts when something happens on a host, not only between windows of time.

    Hosts that different threads simulate are told of at the same time, each by its own thread. So
    all that it does then is the host's own, and nothing of the arena is allocated.
    """

    events: int
    """The most alarms, and messages begun at once, that there may be at a time."""

    def join(self, stage: DirectorStage) -> None:
        """Take note of who carries out what it decides at once; before the start."""

    def ring(self, host: int, now_ps: int) -> bool:
        """Take note that an alarm's time has come; return whether there is more to start."""


class Planner(Director, Protocol):
    """A director that knows all its collectives before time begins, as hosts' processes need."""

    def build(self) -> list[tuple[Executors, Combine]]:
        """Make the executors of all operations that there may be; return them, and what reduces."""
