"""The switches of a network in virtual time: their programs, and the entities that each has."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import networkx as nx

from ringleaf.core.arena import Store
from ringleaf.core.inputs import FileState, file_state
from ringleaf.core.shipped import p4info_beside
from ringleaf.errors import ConfigError
from ringleaf.ina.holdings import Updates
from ringleaf.ina.table_updates import changed
from ringleaf.networks.forwarding import (
    TELEMETRY_PROGRAM,
    Forwarding,
    Written,
    by_match,
    port_rate,
    program_items,
    route_changes,
)
from ringleaf.networks.options import NetworkOptions
from ringleaf.switches.p4runtime.table_rows import Item, TableRows
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch
from ringleaf.topologies.graph import neighbors, switches
from ringleaf.topologies.route_table import RouteTable


def load_program(path: Path) -> Program:
    """Return a program; one whose files have not changed is loaded once in a process."""
    return _load(path, file_state(path), file_state(p4info_beside(path) or path))


@cache
def _load(path: Path, *states: FileState) -> Program:
    del states  # others are another program
    return Program.load(path)


Message = tuple[str, Any]
"""A P4Runtime message, with its verb."""


@dataclass(frozen=True)
class WrittenRoutes:
    """A switch's routes."""

    rows: list[Item]

    @cached_property
    def entries(self) -> Written:
        """The entries by what they match: many, and looked at only when routes change."""
        return by_match(self.rows)


@dataclass(frozen=True, slots=True)
class RouteStep:
    """A switch's new routes, and the messages that lead to them."""

    routes: WrittenRoutes
    messages: list[Message]


class SwitchSet:
    """The switches of a topology.

    It knows nothing of the network: a network is in memory until nobody has it, and not until a
    search for garbage finds it.

    Args:
        graph: The topology.
        options: The network's options, which may assign programs to switches.
        usual: The program of all other switches.

    Attributes:
        programs: By switch, in the graph's order.
        switches: Likewise, once they are made.
        items: By switch, what was written to it: entities, and rows that stand for many.

    Raises:
        ConfigError: If a program is assigned to a switch that is not there.
    """

    def __init__(self, graph: nx.Graph[str], options: NetworkOptions, usual: Path) -> None:
        self._graph, self._options = graph, options
        assigned = options.assigned
        if unknown := assigned.keys() - set(switches(graph)):
            raise ConfigError(f"program: no such switch, got {min(unknown)!r}")
        paths = {
            name: assigned[name].program if name in assigned else usual for name in switches(graph)
        }
        loaded = {path: load_program(path) for path in dict.fromkeys(paths.values())}
        self.programs = {name: loaded[path] for name, path in paths.items()}
        self.switches: dict[str, Switch] = {}
        self.items: dict[str, list[Item]] = {}
        self._routes: dict[str, WrittenRoutes] = {}  # which come first of a switch's items
        self._forwarding: Forwarding | None = None
        self._keys: dict[str, Hashable] = {}
        self._steps: dict[tuple[str, Hashable, Hashable], RouteStep] = {}
        self._known: dict[tuple[str, Hashable], WrittenRoutes] = {}  # by switch and key
        self._messages: dict[Hashable, Any] = {}  # by program, verb, table and content of an entry

    def make(self, store: Store, seed: int, table: RouteTable) -> None:
        """Make the switches, and write their entities: those of routes, or those assigned.

        Args:
            store: The store that holds them.
            seed: The seed of their random numbers.
            table: The topology's routes.
        """
        options, graph = self._options, self._graph
        rows = self._forwarding_of(graph).rows(table)
        more = program_items(options.switch_program, graph)
        for number, (name, program) in enumerate(self.programs.items()):
            own = options.assigned[name].entities if name in options.assigned else None
            usual = [*rows[name], *more[name]]
            if own is None:
                self._routes[name] = WrittenRoutes(rows[name])
            self.items[name] = usual if own is None else list(own)
            ports = len(neighbors(graph, name))
            switch = Switch(program, store, ports=ports, name=name, seed=seed + number)
            switch.write(self.items[name])
            self.switches[name] = switch

    def add(self, name: str, entities: Sequence[Item]) -> None:
        """Write further entities to a switch."""
        self.switches[name].write(entities)
        self.items[name] += entities

    def update(self, updates: Updates) -> None:
        """Write P4Runtime entities with their verbs to switches, at once.

        Raises:
            ConfigError: If packets are recorded: a trace has its entries at the beginning.
        """
        if self._options.record is not None:
            raise ConfigError(
                "memory: must not change while traces are recorded in virtual time, got "
                f"{self._options.allocator!r}; leave out record"
            )
        for name, entities in updates.items():
            self.switches[name].write(entities)
            self.items[name] = changed(self.items[name], entities)

    def tell_rate(self, name: str, port: int, rate_bps: int) -> None:
        """Have a switch whose program tells its ports' rates know another rate of a port."""
        if self._options.switch_program == TELEMETRY_PROGRAM and name in self._routes:
            self.update({name: [~port_rate(port, rate_bps)]})

    def reroute(
        self,
        graph: nx.Graph[str],
        table: RouteTable | None = None,
        keys: Mapping[str, Hashable] | None = None,
    ) -> None:
        """Write the routes of the same topology with other links, where they differ from now.

        Args:
            graph: The topology, with other links.
            table: Its routes, if they are not the usual ones.
            keys: By switch, what its routes follow from: with an equal key they are the same, and
                are not worked out again. None: they are worked out.

        Raises:
            TopologyError: If a switch can't reach a host; all stays as it is.
        """
        steps = [
            (name, self._keys.get(name), keys[name] if keys else None) for name in self._routes
        ]
        moving = [step for step in steps if step[2] is None or step[1] != step[2]]
        new = [step for step in moving if None in step or step not in self._steps]
        unknown = [name for name, _, key in new if key is None or (name, key) not in self._known]
        rows = self._forwarding_of(graph).rows(table, unknown)
        for name in unknown:
            self._known[name, keys[name] if keys else None] = WrittenRoutes(rows[name])
        for step in new:
            name, _, key = step
            routes = self._known[name, key]
            changes = route_changes(self._routes[name].entries, routes.entries)
            messages = [self._message(self.programs[name], *each) for each in changes]
            self._steps[step] = RouteStep(routes, messages)
        for step in moving:
            self._take(step[0], self._steps[step])
            self._keys[step[0]] = step[2]

    def _message(self, program: Program, verb: str, item: Item, content: Any) -> Message:
        """Return the message of a change of a route; those of equal ones are the same."""
        encode = program.encoder.encode
        if not isinstance(item, TableRows):
            return verb, encode(item)[1]
        key = id(program), verb, item.table, (*item.match,), content
        if key not in self._messages:
            self._messages[key] = encode(item.entity(content))[1]
        return verb, self._messages[key]

    def _forwarding_of(self, graph: nx.Graph[str]) -> Forwarding:
        """Return what makes a topology's rows: of the last one that was asked for."""
        if self._forwarding is None or self._forwarding.graph is not graph:
            self._forwarding = Forwarding(graph, ecmp=self._options.ecmp, ecn=self._options.ecn)
        return self._forwarding

    def _take(self, name: str, step: RouteStep) -> None:
        """Write the messages by which a switch's routes become others."""
        self.switches[name].write_messages(step.messages)
        self.items[name] = [*step.routes.rows, *self.items[name][len(self._routes[name].rows) :]]
        self._routes[name] = step.routes

    def renew(self, name: str, store: Store) -> Switch:
        """Make a switch anew, with the entities that it has, and return it.

        Its block in the arena stays behind, unused.
        """
        old = self.switches[name]
        switch = Switch(old.program, store, ports=len(old.ports), name=name)
        switch.write(self.items[name])
        self.switches[name] = switch
        return switch
