"""A network whose messages are flows: the same hosts, collectives and links, without packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.collectives.symmetric_rows import symmetry_of
from ringleaf.collectives.symmetry import Exchange, Symmetry
from ringleaf.core.arena import Store
from ringleaf.core.tensors import FLOAT32, Array, ElementType, as_arrays
from ringleaf.core.units import FOREVER_PS
from ringleaf.errors import ConfigError
from ringleaf.networks.endpoints.director import Director, Reacts
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.endpoints.tensors import HasEndpoints
from ringleaf.networks.flow.class_run import ClassRun, without_classes
from ringleaf.networks.flow.class_search import find_classes
from ringleaf.networks.flow.classes import Classes
from ringleaf.networks.flow.layout import Layout
from ringleaf.networks.flow.machine import FlowMachine
from ringleaf.networks.flow.scope import LEAST_RANKS, MOST_WHOLE, check_flow
from ringleaf.networks.flow.sums import FluidSums, FluidSystem
from ringleaf.networks.flow.troubles import FlowTroubles
from ringleaf.networks.flow.ways import Ways
from ringleaf.networks.groups import Group, whole
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.telling import Tell, Telling
from ringleaf.networks.virtual.fabric import places
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.graph import directions, hosts
from ringleaf.topologies.pair_links import PairLinks
from ringleaf.topologies.routing import longest_rtt_ps, routes

if TYPE_CHECKING:
    import torch

    from ringleaf.topologies.route_table import RouteTable


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
        self._found: tuple[Schedule, Classes | None] | None = None
        self._is_lazy = groups is None and not options.has_data and options.system is None
        if not self._is_lazy:
            self._machine  # noqa: B018 - what is wrong with groups and systems is found now

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
        until_ps: int | None = None,
    ) -> RunResult:
        """Run a collective on the ranks' tensors, in place, and return its result.

        Arguments and errors are those of `VirtualNetwork.run`. A large symmetric collective without
        data is carried by classes of ranks, as on a new network; of its messages, only the ends of
        steps are noted, for `notes`.
        """
        if (classes := self._classes_of(schedule, tensors[0].size)) is not None:
            by_class = ClassRun(self.graph, self.options, classes, self._rtt_ps)
            elements, dtype = tensors[0].size, tensors[0].dtype
            return by_class.run(schedule, elements, dtype, tell, notes=notes is not None)
        machine = self._machine
        machine.execution.check_idle()
        machine.telling = Telling(tell)
        with self.endpoints.operation(schedule, as_arrays(tensors)) as operation:
            machine.tables.update()
            meter, journal = machine.meter(), self._watch(schedule, notes)
            with machine.disturbed():
                finish_ps = machine.carry(operation, until_ps)
        result = machine.with_queues(meter.result(finish_ps or [machine.now_ps]))
        if not finish_ps:
            return replace(result, gave_up=True)
        if journal is None:
            return result
        return replace(result, notes=journal.notes, left_out=journal.left_out)

    def play(self, director: Director, tell: Tell | None = None) -> RunResult:
        """Let a director run collectives, several at a time, until it has no more to start.

        Arguments and errors are those of `VirtualNetwork.play`.
        """
        machine = self._machine
        machine.execution.check_idle()
        machine.tables.update()
        machine.telling = Telling(tell)
        meter = machine.meter()
        with machine.disturbed():
            end_ps = self._direct(director)
        return machine.with_queues(meter.result([end_ps]))

    def _direct(self, director: Director) -> int:
        """Let a director run collectives; return when the last one was over."""
        machine, under_way = self._machine, list[CollectiveOperation]()
        end_ps = machine.now_ps
        if reacts := isinstance(director, Reacts):
            machine.execution.open_stage(director)
        director.start(machine.now_ps)
        while True:
            for operation in director.take_operations():
                self._start(operation)
                if operation.left:
                    under_way.append(operation)
                else:
                    director.finish(operation, machine.now_ps)
            next_ps = director.next_ps()
            if next_ps == FOREVER_PS and not under_way:
                return end_ps
            done = machine.advance(next_ps, under_way) if next_ps > machine.now_ps else []
            for operation in sorted(done, key=_order):
                end_ps = operation.end_ps
                under_way.remove(operation)
                director.finish(operation, machine.now_ps)
            if reacts or machine.now_ps >= next_ps:  # what it starts next begins now
                director.reach(machine.now_ps)

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
        self._machine.execution.start(operation, self.now_ps)

    def _watch(self, schedule: Schedule, notes: int | None) -> Journal | None:
        """Begin to note a collective's messages, as far as the options say."""
        most, journal = notes or self.options.watch_messages, None
        if most:
            messages = schedule.as_rows.messages
            journal = Journal(self.store, messages, most=most, start_ps=self.now_ps)
        self._machine.execution.note(journal)
        return journal

    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        """Return one array per rank; they share their memory if ranks go by classes."""
        if schedule is not None and self._classes_of(schedule, elements) is not None:
            return [np.broadcast_to(np.zeros(1, dtype), (elements,))] * schedule.ranks
        return super().arrays(elements, dtype, schedule)

    @property
    def slots(self) -> int | None:
        """Packets that a worker of the first group's system has in flight; None without one."""
        return None if self._is_lazy else super().slots

    def _classes_of(self, schedule: Schedule, elements: int) -> Classes | None:
        """Return the classes of a collective's ranks, if it is carried by them."""
        if not self._is_lazy or "_machine" in self.__dict__ or schedule.ranks < LEAST_RANKS:
            return None
        if self.options.faults:
            return None
        symmetry, pairs = symmetry_of(schedule.as_rows), self._pairs
        if symmetry is None or without_classes(schedule, elements, self.options):
            return None
        if schedule.ranks != len(self.groups[0].hosts) or not pairs.can_find():
            return None
        if self._found is not None and self._found[0] is not schedule:
            self._found = self._found_before(schedule, symmetry)
        if self._found is None:
            classes = find_classes(symmetry, pairs, np.arange(schedule.ranks))
            if classes is None and schedule.ranks > MOST_WHOLE:
                raise ConfigError(
                    f"run: hardly any two ranks of {schedule.algorithm} do the same on this "
                    f"topology, got {schedule.ranks}; take at most {MOST_WHOLE} ranks"
                )
            self._found = schedule, classes
        return self._found[1]

    def _found_before(
        self, schedule: Schedule, symmetry: Symmetry | Exchange
    ) -> tuple[Schedule, Classes] | None:
        """Return the classes that were found last, if these ranks are the same ones' peers."""
        assert self._found is not None
        classes = self._found[1]
        if classes is None or not symmetry.is_like(classes.symmetry):
            return None
        return schedule, replace(classes, symmetry=symmetry)

    @property
    def classes(self) -> Classes | None:
        """The classes of the last collective that was carried by them; None: there is none."""
        return None if self._found is None else self._found[1]

    @cached_property
    def _pairs(self) -> PairLinks:
        return PairLinks(self.graph, self._table)

    @cached_property
    def _machine(self) -> FlowMachine:
        """All hosts and links, and what carries their flows."""
        graph, options = self.graph, self.options
        endpoints = Endpoints(graph, self.store, options, self.groups, rtt_ps=self._rtt_ps)
        ports = places(graph)
        layout = Layout(
            *(graph, self.store, ports, endpoints.connections, self.groups),
            Ways(graph, ecmp=options.ecmp, table=self._table),
            ring=endpoints.ring,
            bins=options.bins,
            owners=endpoints.owners,
        )
        self._sums.lay_out(layout, endpoints.connections.agents)
        troubles = None
        if options.faults:
            troubles = FlowTroubles(graph, options, self.store, layout)
        return FlowMachine(
            *(graph, self.store, options, endpoints, layout),
            ends=[(place.node, place.peer) for place in ports],
            sources={ipv4(graph, host): host for host in hosts(graph)},
            check=self._sums.check,
            troubles=troubles,
        )

    @cached_property
    def _table(self) -> RouteTable:
        return routes(self.graph)

    @cached_property
    def _rtt_ps(self) -> int:
        size_bytes = self.options.mtu_bytes
        if self._pairs.can_find() and not self.graph.graph.get("uneven", False):
            return self._pairs.longest_rtt_ps(size_bytes)
        return longest_rtt_ps(self.graph, size_bytes, table=self._table)

    @cached_property
    def endpoints(self) -> Endpoints:  # type: ignore[override]
        """The hosts."""
        return self._machine.endpoints

    @property
    def now_ps(self) -> int:
        """The time."""
        return self._machine.now_ps

    def close(self) -> None:
        """Do nothing: there are no files to finish."""


def _order(operation: CollectiveOperation) -> tuple[int, int, int]:
    return operation.end_ps, operation.group, operation.channel
