"""A machine that carries flows: hosts, links or classes of them, the event loop, and the meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import networkx as nx

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.heap import CAPACITY, grow_heap
from ringleaf.core.units import FOREVER_PS, format_size
from ringleaf.errors import BackendError
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.execution import Execution
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.flow import loop
from ringleaf.networks.flow.counting import settle
from ringleaf.networks.flow.layout import FlowTables
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import Direction, RunResult
from ringleaf.networks.telling import Telling
from ringleaf.networks.virtual.meter import Meter
from ringleaf.topologies.graph import link

if TYPE_CHECKING:
    from ringleaf.networks.flow.troubles import FlowTroubles


class FlowMachine:
    """Carries the flows of hosts, and lets their operations go on.

    Args:
        graph: The topology.
        store: The store that has the hosts.
        options: The options of the network.
        endpoints: The hosts.
        tables: The tables of flows.
        ends: Both ends of each link, by number.
        sources: The hosts by IPv4 address.
        check: Raises the exception with which something has ended that was called back.
        troubles: Its faults, if there are some.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        store: Store,
        options: NetworkOptions,
        endpoints: Endpoints,
        tables: FlowTables,
        *,
        ends: Sequence[Direction],
        sources: Mapping[int, str],
        check: Callable[[], None] = lambda: None,
        troubles: FlowTroubles | None = None,
    ) -> None:
        self.now_ps = 0
        self.troubles = troubles
        self.endpoints, self.tables = endpoints, tables
        self.telling = Telling()
        self._check = check
        self._graph, self._store, self._options = graph, store, options
        self._ends, self._sources = list(ends), sources
        self.execution = Execution(
            endpoints,
            store,
            wake=loop.wake,
            networks=[tables.at],
            overhead_ps=options.message_overhead_ps,
        )
        [driver] = self.execution.drivers
        store.arena.words[tables.net + s.DRIVER] = driver

    def meter(self) -> Meter:
        """Return what measures a run from now on."""
        blocks, hosts = [self.tables.net], self.endpoints.hosts
        return Meter(self._store, blocks, self._ends, hosts, self.now_ps, self._sources, lambda: 0)

    def carry(self, operation: CollectiveOperation, until_ps: int | None = None) -> list[int]:
        """Carry an operation to its end; return the times at which its ranks were done.

        There are none if they were not by `until_ps` after the start.
        """
        end_ps = FOREVER_PS if until_ps is None else self.now_ps + until_ps
        self.execution.start(operation, self.now_ps)
        while operation.left:
            self.advance(end_ps, [operation])
            operation.check()
            if operation.left and self.now_ps == end_ps:
                return []
        return [operation.finish_ps(rank) for rank in range(operation.ranks)]

    def advance(
        self, until_ps: int, under_way: Sequence[CollectiveOperation]
    ) -> list[CollectiveOperation]:
        """Let time run until operations are done, or to `until_ps`; return those then done."""
        try:
            return self._advance(until_ps, under_way)
        finally:
            self._settle()

    def _advance(
        self, until_ps: int, under_way: Sequence[CollectiveOperation]
    ) -> list[CollectiveOperation]:
        while True:
            told_ps = self.telling.next_ps(self.now_ps, self._counted)
            stop_ps = min(until_ps, told_ps, self._next_trouble_ps)
            reason = loop.run(self._store.arena, self.tables.at, stop_ps)
            if reason == loop.NEEDS_ROOM:
                self._make_room()
            elif reason == loop.REPORTED:
                self.now_ps = max(self.now_ps, self.execution.now_ps)
                self.execution.take_asked()
                self._check()
                return self.execution.take_done()
            elif reason == loop.EMPTY and min(until_ps, self._next_trouble_ps) == FOREVER_PS:
                raise BackendError(
                    f"run: nothing is under way any more, got {self._waits(under_way)}"
                )
            else:
                if reason == loop.EMPTY:
                    stop_ps = min(until_ps, self._next_trouble_ps)
                self.now_ps = stop_ps
                if self.troubles is not None:
                    self._settle()  # before ways are others
                    self.troubles.happen(stop_ps)
                if stop_ps == until_ps:
                    return []

    @property
    def _next_trouble_ps(self) -> int:
        return FOREVER_PS if self.troubles is None else self.troubles.next_ps

    @contextmanager
    def disturbed(self) -> Iterator[None]:
        """Have the faults of a run that begins, and all as usual after it."""
        if self.troubles is None:
            yield
            return
        self.troubles.begin(self.now_ps)
        try:
            yield
        finally:
            self.troubles.settle(self.now_ps)

    def with_queues(self, result: RunResult) -> RunResult:
        """Return the result with the queues that packets might have had since the beginning.

        Raises:
            BackendError: If one might have overflowed.
        """
        peaks = self.tables.most_queued()
        for ends, most_bytes in peaks.items():
            room_bytes = link(self._graph, *ends).queue_bytes_or(self._options.queue_bytes)
            if most_bytes > room_bytes:
                raise BackendError(
                    f"run: the queue from {ends[0]} to {ends[1]} must hold all that windows send, "
                    f"up to {format_size(most_bytes)}, got {format_size(room_bytes)}, and flows "
                    "have no losses; take net=virtual, or a larger queue for flows"
                )
        return replace(result, queue_peaks=peaks, peak_queue_bytes=max(peaks.values(), default=0))

    def _settle(self) -> None:
        """Have all bytes on links that have been carried."""
        settle(self._store.arena, self.tables.at)

    def _counted(self) -> tuple[int, int]:
        """Return the packet-hops and the events so far."""
        words, at = self._store.arena.words, self.tables.net
        return int(words[at + s.HOPS]), int(words[at + s.EVENTS])

    def _waits(self, under_way: Sequence[CollectiveOperation]) -> str:
        """Return who waits for whom, of the first nodes that do."""
        waits = (
            f"{names[node]} waits for {', '.join(parts)}"
            for each in under_way
            for names in [self.endpoints.groups[each.group].nodes]
            for node in each.unfinished()
            if (parts := each.waits(node, names))
        )
        return next(waits, "nobody who says for what")

    def _make_room(self) -> None:
        heap = int(self._store.arena.words[self.tables.net + s.HEAP_AT])
        grow_heap(self._store, heap, 2 * int(self._store.arena.words[heap + CAPACITY]))
