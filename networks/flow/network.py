"""A network whose messages are flows: the same hosts, collectives and links, without packets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import networkx as nx

import ringleaf.networks.virtual.state as s
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.heap import CAPACITY, grow_heap
from ringleaf.core.tensors import Array, as_arrays
from ringleaf.core.units import FOREVER_PS, PS_PER_US, format_size
from ringleaf.errors import BackendError, ConfigError
from ringleaf.networks.endpoints.director import Director, Reacts
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.execution import Execution
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.endpoints.tensors import HasEndpoints
from ringleaf.networks.flow import loop
from ringleaf.networks.flow.layout import Layout
from ringleaf.networks.flow.scope import check_flow
from ringleaf.networks.flow.sums import FluidSums, FluidSystem
from ringleaf.networks.flow.ways import Ways
from ringleaf.networks.groups import Group, whole
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.virtual.fabric import places
from ringleaf.networks.virtual.meter import Meter
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.graph import directions, hosts, link
from ringleaf.topologies.routing import longest_rtt_ps, routes

if TYPE_CHECKING:
    import torch

TELL_PS = 50 * PS_PER_US

Tell = Callable[[int], None]


class FlowNetwork(HasEndpoints):
    """Hosts and links of a topology, whose messages share links by max-min fair rates.

    Args:
        graph: The topology.
        options: NetworkOptions of links and hosts.
        groups: Groups that run collectives together; None: all hosts.

    Raises:
        ConfigError: If the options ask for something that flows don't have.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        options: NetworkOptions,
        *,
        groups: Sequence[Group] | None = None,
    ) -> None:
        self.graph, self.options = graph, options
        asked = groups or [whole(graph, options.system, options.servers)]
        self._check()
        self.store = Store(has_data=options.has_data)
        self._sums = FluidSums(self.store)
        self.groups = self._fluid(asked)
        self.now_ps = 0
        table = routes(graph)
        rtt_ps = longest_rtt_ps(graph, options.mtu_bytes, table=table)
        self.endpoints = Endpoints(graph, self.store, options, self.groups, rtt_ps=rtt_ps)
        self._places = places(graph)
        self._layout = Layout(
            *(graph, self.store, self._places, self.endpoints.connections, self.groups),
            Ways(graph, ecmp=options.ecmp, table=table),
            ring=self.endpoints.ring,
            bins=options.bins,
            owners=self.endpoints.owners,
        )
        self._sums.lay_out(self._layout, self.endpoints.connections.agents)
        self._execution = Execution(
            self.endpoints,
            self.store,
            wake=loop.wake,
            networks=[self._layout.at],
            overhead_ps=options.message_overhead_ps,
        )
        [driver] = self._execution.drivers
        self.store.arena.words[self._layout.net + s.DRIVER] = driver
        self._tell: Tell | None = None

    def _check(self) -> None:
        """Check that flows can stand for what is asked for."""
        check_flow({each.name: getattr(self.options, each.name) for each in fields(self.options)})
        worst = max((sent.loss or 0.0 for _, _, sent in directions(self.graph)), default=0.0)
        check_flow({"loss": worst}, "links: ")

    def _fluid(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups with the fluid forms of their systems."""
        systems = {id(group.system): group.system for group in groups if group.system is not None}
        fluid = {key: FluidSystem(system, self._sums) for key, system in systems.items()}
        return [
            replace(group, system=fluid[id(group.system)]) if group.system is not None else group
            for group in groups
        ]

    def run(
        self,
        schedule: Schedule,
        tensors: Sequence[torch.Tensor | Array],
        tell: Tell | None = None,
        *,
        notes: int | None = None,
    ) -> RunResult:
        """Run a collective on the ranks' tensors, in place, and return its result.

        Arguments and errors are those of `VirtualNetwork.run`.
        """
        self._execution.check_idle()
        self._tell = tell
        with self.endpoints.operation(schedule, as_arrays(tensors)) as operation:
            self._layout.update()
            meter, journal = self._meter(), self._watch(schedule, notes)
            self._execution.start(operation, self.now_ps)
            while operation.left:
                self._advance(FOREVER_PS, [operation])
                operation.check()
            finish_ps = [operation.finish_ps(rank) for rank in range(schedule.ranks)]
        result = self._with_queues(meter.result(finish_ps))
        if journal is None:
            return result
        return replace(result, notes=journal.notes, left_out=journal.left_out)

    def play(self, director: Director, tell: Tell | None = None) -> RunResult:
        """Let a director run collectives, several at a time, until it has no more to start.

        Arguments and errors are those of `VirtualNetwork.play`.
        """
        self._execution.check_idle()
        self._layout.update()
        self._tell = tell
        under_way: list[CollectiveOperation] = []
        meter, end_ps = self._meter(), self.now_ps
        if isinstance(director, Reacts):
            self._execution.open_stage(director)
        director.start(self.now_ps)
        while True:
            for operation in director.take_operations():
                self._start(operation)
                if operation.left:
                    under_way.append(operation)
                else:
                    director.finish(operation, self.now_ps)
            next_ps = director.next_ps()
            if next_ps == FOREVER_PS and not under_way:
                return self._with_queues(meter.result([end_ps]))
            done = self._advance(next_ps, under_way) if next_ps > self.now_ps else []
            for operation in sorted(done, key=_order):
                end_ps = operation.end_ps
                under_way.remove(operation)
                director.finish(operation, self.now_ps)
            if self.now_ps >= next_ps:
                director.reach(self.now_ps)

    def _start(self, operation: CollectiveOperation) -> None:
        if operation.rate_bps:
            raise ConfigError(
                "scheduler: flows are not paced by hosts, got a rate of "
                f"{operation.rate_bps} bit/s; take net=virtual"
            )
        if operation.priority and not operation.marks:
            raise ConfigError(
                "scheduler: flows have no priorities that only hosts obey, got one of "
                f"{operation.priority}; take net=virtual"
            )
        self._execution.start(operation, self.now_ps)

    def _with_queues(self, result: RunResult) -> RunResult:
        """Return the result with the queues that packets might have had since the beginning.

        Raises:
            BackendError: If one might have overflowed.
        """
        peaks = self._layout.most_queued()
        for ends, most_bytes in peaks.items():
            room_bytes = link(self.graph, *ends).queue_bytes_or(self.options.queue_bytes)
            if most_bytes > room_bytes:
                raise BackendError(
                    f"run: the queue from {ends[0]} to {ends[1]} must hold all that windows send, "
                    f"up to {format_size(most_bytes)}, got {format_size(room_bytes)}, and flows "
                    "have no losses; take net=virtual, or a larger queue for flows"
                )
        return replace(result, queue_peaks=peaks, peak_queue_bytes=max(peaks.values(), default=0))

    def _watch(self, schedule: Schedule, notes: int | None) -> Journal | None:
        """Begin to note a collective's messages, as far as the options say."""
        most, journal = notes or self.options.watch_messages, None
        if most:
            messages = schedule.as_rows.messages
            journal = Journal(self.store, messages, most=most, start_ps=self.now_ps)
        self._execution.note(journal)
        return journal

    def _meter(self) -> Meter:
        links = [(place.node, place.peer) for place in self._places]
        count, blocks = self.endpoints.hosts, [self._layout.net]
        return Meter(self.store, blocks, links, count, self.now_ps, self._sources, lambda: 0)

    @cached_property
    def _sources(self) -> dict[int, str]:
        return {ipv4(self.graph, host): host for host in hosts(self.graph)}

    def _advance(
        self, until_ps: int, under_way: Sequence[CollectiveOperation]
    ) -> list[CollectiveOperation]:
        """Let time run until operations are done, or to `until_ps`; return those then done."""
        while True:
            stop_ps = min(until_ps, self._report())
            reason = loop.run(self.store.arena, self._layout.at, stop_ps)
            if reason == loop.NEEDS_ROOM:
                self._make_room()
            elif reason == loop.REPORTED:
                self.now_ps = max(self.now_ps, self._execution.now_ps)
                self._execution.take_asked()
                self._sums.check()
                return self._execution.take_done()
            elif reason == loop.EMPTY and until_ps == FOREVER_PS:
                raise BackendError(
                    f"run: nothing is under way any more, got {self._waits(under_way)}"
                )
            else:
                self.now_ps = stop_ps
                if reason == loop.EMPTY or stop_ps == until_ps:
                    self.now_ps = until_ps
                    return []

    def _report(self) -> int:
        """Tell how far the run is; return the time of the next report."""
        if self._tell is None:
            return FOREVER_PS
        self._tell(int(self.store.arena.words[self._layout.net + s.HOPS]))
        return self.now_ps + TELL_PS

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
        heap = int(self.store.arena.words[self._layout.net + s.HEAP_AT])
        grow_heap(self.store, heap, 2 * int(self.store.arena.words[heap + CAPACITY]))

    def close(self) -> None:
        """Do nothing: there are no files to finish."""


def _order(operation: CollectiveOperation) -> tuple[int, int, int]:
    return operation.end_ps, operation.group, operation.channel
