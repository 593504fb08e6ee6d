"""Execution of collectives: starts operations, and takes those that the driver has done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import ringleaf.hosts.executor.layout as x
from ringleaf.core.arena import Store
from ringleaf.core.callbacks import Callback
from ringleaf.core.heap import CAPACITY, COUNT, grow_heap, make_heap, push_event
from ringleaf.errors import BackendError
from ringleaf.hosts.executor import parts
from ringleaf.hosts.plan import SEND
from ringleaf.networks.endpoints import driver as d
from ringleaf.networks.endpoints.director import Reacts
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.operation import CollectiveOperation

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
        networks: The network's blocks, one for each region of the hosts.
        overhead_ps: Time of a host's processor for each message that it sends or receives; a
            tensor given to an aggregation agent, and its sum, are such messages.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        store: Store,
        *,
        wake: Wake,
        networks: Sequence[int],
        overhead_ps: int = 0,
    ) -> None:
        self._endpoints = endpoints
        self._store = store
        self._active: dict[int, CollectiveOperation] = {}  # by its blocks
        self._overhead_ps = overhead_ps
        self._alarms: Callback | None = None
        self._reserve = 0  # events for what directors start at once
        self.drivers = [store.allocate("words", d.DRIVER_WORDS) for _ in networks]
        """The blocks of the drivers, one for each region."""
        self._calendars = [make_heap(store, 1) if overhead_ps else 0 for _ in networks]
        words = store.arena.words
        rows = zip(self.drivers, networks, endpoints.rings, self._calendars, strict=True)
        for at, network, ring, calendar in rows:
            words[at + d.RING_AT] = ring
            words[at + d.NETWORK_AT], words[at + d.CALENDAR_AT] = network, calendar
            words[at + d.OVERHEAD_PS] = overhead_ps
        self.set_wake(wake)

    @property
    def operations(self) -> list[CollectiveOperation]:
        """The operations under way, each once."""
        return list({id(each): each for each in self._active.values()}.values())

    @property
    def now_ps(self) -> int:
        """The time of the last report."""
        return self._most(d.NOW_PS)

    @property
    def reports(self) -> int:
        """The number of agents' reports so far."""
        words = self._store.arena.words
        return sum(words.item(at + d.REPORTS) for at in self.drivers)

    def _most(self, word: int) -> int:
        words = self._store.arena.words
        return max(words.item(at + word) for at in self.drivers)

    def set_wake(self, wake: Wake) -> None:
        """Have another handler serve agents from now on."""
        for at in self.drivers:
            d.set_wake(self._store.arena.words, at, wake)

    def note(self, journal: Journal | None) -> None:
        """Have the messages of the operations to come noted in a journal, or in none."""
        blocks = journal.blocks if journal else [0] * len(self.drivers)
        for at, block in zip(self.drivers, blocks, strict=True):
            self._store.arena.words[at + d.JOURNAL_AT] = block

    def open_stage(self, director: Reacts) -> None:
        """Be the stage of a director that reacts."""
        self._reserve = director.events
        self._calendars = [each or make_heap(self._store, 1) for each in self._calendars]
        self._make_room()
        self._alarms = Callback(partial(self._ring, director), failed=-1)
        for at, calendar in zip(self.drivers, self._calendars, strict=True):
            words = self._store.arena.words
            words[at + d.CALENDAR_AT], words[at + d.ALARM] = calendar, self._alarms.address
        director.join(self)

    def alarm(self, host: int, at_ps: int) -> None:
        """Have the director called at a time, for a host."""
        calendar = self._calendars[self._endpoints.region(host)]
        words = self._store.arena.words
        assert words[calendar + COUNT] < words[calendar + CAPACITY]
        push_event(words, calendar, at_ps, d.AT_HOST | host, 0)

    def _ring(self, director: Reacts, host: int) -> int:
        driver = self.drivers[self._endpoints.region(host)]
        return int(director.ring(host, int(self._store.arena.words[driver + d.NOW_PS])))

    def check_idle(self) -> None:
        """Check that nothing is under way, before a run begins.

        Raises:
            BackendError: If an error ended an earlier run, whose packets are still on their way.
        """
        if self._active:
            groups = ", ".join(f"group {each.group}" for each in self.operations)
            raise BackendError(
                f"network: must have nothing under way, got a collective of {groups}, which an "
                "error ended; make a new network"
            )

    def start(self, operation: CollectiveOperation, now_ps: int) -> None:
        """Start an operation's executors; the driver's next `dispatch` posts their requests."""
        executors = operation.executors
        assert all(self._active.get(at) in (None, operation) for at in executors.blocks)
        place = operation.group, operation.channel
        self._active |= dict.fromkeys(executors.blocks, operation)
        self._make_room()
        connections = self._endpoints.connections
        arena, first = self._store.arena, executors.executor(0)
        for at in self.drivers:
            arena.words[at + d.NOW_PS] = now_ps
        for node in operation.nodes:
            executor = first + node * x.EXECUTOR_WORDS
            if arena.words.item(executor + x.IS_UNDER_WAY):
                continue  # the director has begun it
            connections.renew(*place, node)
            connections.prioritise(*place, node, operation.priority, marks=operation.marks)
            connections.encourage(*place, node, operation.gain)
            paced = executors.plans.streams_of(node, SEND) if operation.rate_bps else []
            connections.pace(*place, node, paced, operation.rate_bps)
            d.drive(arena, self.drivers[executors.region(node)], executor, now_ps)
        if not operation.left:
            self._forget(operation)

    def begin(self, operation: CollectiveOperation, node: int, now_ps: int) -> None:
        """Start one node of an operation, while its region's events are handled."""
        executors = operation.executors
        self._active |= dict.fromkeys(executors.blocks, operation)
        driver = self.drivers[executors.region(node)]
        self._endpoints.connections.renew(operation.group, operation.channel, node)
        d.drive(self._store.arena, driver, executors.executor(node), now_ps)

    def _forget(self, operation: CollectiveOperation) -> None:
        for block in operation.executors.blocks:
            del self._active[block]

    def dispatch(self) -> int:
        """Have the first driver take reports and post requests; return why it pauses, or 0."""
        return int(d.drive(self._store.arena, self.drivers[0], d.DISPATCH, 0))

    def check(self) -> None:
        """Raise the exception by which a function that agents called has failed, if one has."""
        if self._most(d.FAILED):
            if self._alarms is not None:
                self._alarms.check()
            for operation in set(self._active.values()):
                operation.check()

    def take_done(self) -> list[CollectiveOperation]:
        """Return the operations that have been done since the last call.

        Raises:
            BackendError: If a message was longer than what its schedule says.
        """
        self.check()
        words = self._store.arena.words
        if part := self._most(d.OVERLONG):
            peer, message = words[words[part + x.STREAM] + x.PEER], words[part + x.MESSAGE]
            node = words[parts.executor_of(words, part) + x.NODE]
            raise BackendError(
                f"node {node}: too long a message from node {peer}, got row {message}"
            )
        done = []
        for driver in self.drivers:
            at = int(words[driver + d.FIRST_DONE])
            words[driver + d.FIRST_DONE] = 0
            while at:
                ended = self._active.get(at)  # None: it ended with another region's nodes
                if ended is not None and not ended.left:
                    done.append(ended)
                    self._forget(ended)
                at = int(words[at + x.NEXT_DONE])
        return done

    def take_asked(self) -> bool:
        """Return whether the director has more to start, once."""
        words, at = self._store.arena.words, np.array(self.drivers) + d.WANTED
        is_asked = bool(words[at].any())
        words[at] = 0
        return is_asked

    def _make_room(self) -> None:
        """Make room in the calendars for all messages under way, and what directors may add."""
        for calendar in filter(None, self._calendars):
            operations = set(self._active.values()) if self._overhead_ps else ()
            capacity = self._reserve + sum(each.executors.plans.count for each in operations)
            if capacity > self._store.arena.words[calendar + CAPACITY]:
                grow_heap(self._store, calendar, 2 * capacity)
