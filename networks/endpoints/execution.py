"""Execution of collectives: starts operations, and takes those that the driver has done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import ringleaf.hosts.executor.layout as x
from ringleaf.arena import Store
from ringleaf.errors import BackendError
from ringleaf.heap import CAPACITY, SEQUENCE, grow_heap, make_heap, renumber
from ringleaf.hosts.executor import walk
from ringleaf.hosts.plan import SEND
from ringleaf.networks.endpoints import driver as d
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.operation import Operation

if TYPE_CHECKING:
    from ringleaf.networks.endpoints.endpoints import Endpoints

Wake = Callable[..., int]


class Execution:
    """Drives operations: all of a network's, or only one host's part of them.

    Args:
        endpoints: The hosts.
        store: The store of the hosts.
        wake: The handler by which the network serves an agent that was given something to do
            (`driver.set_wake`).
        network: The network's block.
        overhead_ps: Time of a host's processor for each message that it sends or receives; a
            tensor given to an aggregation agent, and its sum, are such messages.
    """

    def __init__(
        self, endpoints: Endpoints, store: Store, *, wake: Wake, network: int, overhead_ps: int = 0
    ) -> None:
        self._endpoints = endpoints
        self._store = store
        self._active: dict[int, Operation] = {}  # by block
        self.at = store.allocate("words", d.DRIVER_WORDS)
        calendar = make_heap(store, 1) if overhead_ps else 0
        words = store.arena.words
        words[self.at + d.RING_AT] = endpoints.ring
        words[self.at + d.NETWORK_AT], words[self.at + d.CALENDAR_AT] = network, calendar
        words[self.at + d.OVERHEAD_PS] = overhead_ps
        self.set_wake(wake)

    @property
    def now_ps(self) -> int:
        """The time of the last report."""
        return int(self._store.arena.words[self.at + d.NOW_PS])

    @property
    def reports(self) -> int:
        """The number of agents' reports so far."""
        return int(self._store.arena.words[self.at + d.REPORTS])

    def set_wake(self, wake: Wake) -> None:
        """Have another handler serve agents from now on."""
        d.set_wake(self._store.arena.words, self.at, wake)

    def note(self, journal: Journal | None) -> None:
        """Have the messages of the operations to come noted in a journal, or in none."""
        self._store.arena.words[self.at + d.JOURNAL_AT] = journal.at if journal else 0

    def start(self, operation: Operation, now_ps: int) -> None:
        """Start an operation's executors; the driver's next `dispatch` posts their requests."""
        assert operation.at not in self._active
        place = operation.group, operation.channel
        self._active[operation.at] = operation
        self._make_room()
        connections, executors = self._endpoints.connections, operation.executors
        self._store.arena.words[self.at + d.NOW_PS] = now_ps
        for node in operation.nodes:
            connections.prioritise(*place, node, operation.priority)
            paced = executors.plans.streams_of(node, SEND) if operation.rate_bps else []
            connections.pace(*place, node, paced, operation.rate_bps)
            d.drive(self._store.arena, self.at, executors.executor(node), now_ps)
        if not operation.left:
            del self._active[operation.at]

    def dispatch(self) -> int:
        """Have the driver take reports and post requests; return why it needs a pause, or 0."""
        return int(d.drive(self._store.arena, self.at, d.DISPATCH, 0))

    def take_done(self) -> list[Operation]:
        """Return the operations that have been done since the last call.

        Raises:
            BackendError: If a message was longer than what its schedule says.
        """
        words = self._store.arena.words
        for operation in self._active.values() if words[self.at + d.FAILED] else ():
            operation.check()
        if part := int(words[self.at + d.OVERLONG]):
            peer, message = words[words[part + x.STREAM] + x.PEER], words[part + x.MESSAGE]
            node = words[walk.executor_of(words, part) + x.NODE]
            raise BackendError(
                f"node {node}: too long a message from node {peer}, got row {message}"
            )
        done = []
        at = int(words[self.at + d.FIRST_DONE])
        while at:
            done.append(self._active.pop(at))
            at = int(words[at + x.NEXT_DONE])
        words[self.at + d.FIRST_DONE] = 0
        return done

    def _make_room(self) -> None:
        """Make room in the calendar for all messages under way."""
        calendar = int(self._store.arena.words[self.at + d.CALENDAR_AT])
        if calendar:
            wanted = sum(len(each.executors.plans.message) for each in self._active.values())
            if wanted > self._store.arena.words[calendar + CAPACITY]:
                grow_heap(self._store, calendar, 2 * wanted)
            if self._store.arena.words[calendar + SEQUENCE] > 0:
                renumber(self._store.arena.words, calendar)
