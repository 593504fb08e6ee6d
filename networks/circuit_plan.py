"""Circuits before there is a network: what their controller needs, and its first routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from ringleaf.errors import ConfigError
from ringleaf.networks.endpoints.rack_demand import PairTraffic, RackDemand
from ringleaf.networks.faults import Disturbance, LinkRate, Reroute
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import CircuitChange, CircuitUse, Direction
from ringleaf.topologies.graph import circuits as circuit_links
from ringleaf.topologies.graph import switches, without_circuits
from ringleaf.topologies.route_table import RouteTable
from ringleaf.topologies.switching.plan import CircuitDemand, Circuits, Matrix, Planned
from ringleaf.topologies.switching.settings import CircuitSettings
from ringleaf.topologies.switching.ways import CircuitWays


class CircuitPlan:
    """A topology's circuits, before there is a network: its first routes, and what hosts see.

    Args:
        graph: The topology.
        options: The network's options, with a controller.

    Attributes:
        ways: The routes by circuits.
        settings: The controller and its times.
        first: The circuits that are up before anything is known.
        table: The routes with these.

    Raises:
        ConfigError: If the topology does not suit the controller.
    """

    def __init__(self, graph: nx.Graph[str], options: NetworkOptions) -> None:
        assert options.circuits is not None
        self.settings: CircuitSettings = options.circuits
        self.ways = CircuitWays(graph)
        self.graph = graph
        self._check(options)
        self.first = self._first(Planned())
        self.table: RouteTable = self.ways.table(self.first)

    @classmethod
    def of(cls, graph: nx.Graph[str], options: NetworkOptions) -> CircuitPlan | None:
        """Return the plan that the options ask for, if they do."""
        return None if options.circuits is None else cls(graph, options)

    def _check(self, options: NetworkOptions) -> None:
        settings, has_core = self.settings, self.ways.has_core
        where = f"circuits {settings.name}"
        if settings.controller.needs_core and not has_core:
            raise ConfigError(
                f"{where}: racks without a circuit send by packet switches, got {self.graph.name}; "
                "take core=1"
            )
        if options.system is not None and not has_core:
            raise ConfigError(
                f"{where}: switches aggregate on trees of packet switches, got {self.graph.name}; "
                "take core=1"
            )
        if has_core or settings.controller.once:
            return
        # All routes lead over circuits, so packets have no other way meanwhile.
        if not settings.pauses:
            raise ConfigError(
                f"{where}: without a core, senders must pause while circuits change, got "
                "senders=run; take senders=pause"
            )
        if settings.drain_ps is not None:
            raise ConfigError(
                f"{where}: without a core, circuits must drain until they are empty, got a limit; "
                "take drain=empty"
            )

    def _first(self, planned: Planned) -> Circuits:
        """Return the circuits with which a job starts."""
        if self.ways.has_core and not self.settings.controller.once:
            return Circuits()
        return self.decide(self.demand(planned), 0)

    def start(self, planned: Planned) -> Circuits:
        """Return the circuits with which a job starts, now that its traffic is known."""
        return self._first(planned) if self.settings.controller.once else self.first

    def demand(self, planned: Planned, **known: Any) -> CircuitDemand:
        """Return a demand; what is not known is nothing."""
        count = len(self.ways.racks)
        nothing = np.zeros((count, count), np.int64)
        return CircuitDemand(
            racks=count,
            optical=self.ways.optical,
            has_core=self.ways.has_core,
            planned=planned,
            **{"delivered": nothing, "waiting": nothing, "done": nothing, **known},
        )

    def decide(self, demand: CircuitDemand, now_ps: int) -> Circuits:
        """Return the circuits that the controller wants, which are checked."""
        circuits = self.settings.controller.decide(demand, now_ps)
        circuits.check(len(self.ways.racks), self.ways.optical, f"circuits {self.settings.name}")
        return circuits

    @property
    def hosts_graph(self) -> nx.Graph[str]:
        """The topology that hosts and aggregation know: packet switches alone, if they suffice."""
        return without_circuits(self.graph) if self.ways.has_core else self.graph

    def check_disturbances(self, disturbances: Iterable[Disturbance]) -> None:
        """Check that disturbances leave to the controller what it sets.

        Raises:
            ConfigError: If they don't.
        """
        joined = set(circuit_links(self.graph))
        for each in disturbances:
            if isinstance(each, Reroute):
                raise ConfigError("circuits: their controller sets routes, got new ones")
            if isinstance(each, LinkRate) and each.link in joined:
                raise ConfigError(
                    "circuits: their controller sets their rates, got another of "
                    f"{'-'.join(each.link)}; it can be down, or lose packets"
                )

    def use(
        self,
        first: Circuits,
        changes: Iterable[CircuitChange],
        link_bytes: Mapping[Direction, int],
        time_ps: int,
    ) -> CircuitUse:
        """Return what circuits have done in a run of this length, with those that it began with."""
        joined = set(circuit_links(self.graph))
        inner = set(switches(self.graph))
        by_circuit = sum(size for ends, size in link_bytes.items() if ends in joined)
        between = sum(size for ends, size in link_bytes.items() if inner.issuperset(ends))
        return CircuitUse(
            tuple(change for change in changes if change.at_ps < time_ps),
            circuit_bytes=by_circuit,
            packet_bytes=between - by_circuit,
            time_ps=time_ps,
            first=self.named(first),
        )

    def named(self, circuits: Circuits) -> tuple[Direction, ...]:
        """Return the racks that circuits join, by their names."""
        return tuple((self.ways.racks[a], self.ways.racks[b]) for a, b in sorted(circuits.ports))


class CircuitDecisions:
    """The decisions of a controller, in one run after the other.

    Args:
        plan: The topology's circuits.
        read: Returns what hosts have sent one another so far.
    """

    def __init__(self, plan: CircuitPlan, read: Callable[[], PairTraffic]) -> None:
        self._plan = plan
        self._rack_of = plan.ways.racks_of_hosts(plan.graph)
        self.meter = RackDemand(read, self._rack_of, len(plan.ways.racks))
        """The traffic between racks."""
        self.restart(Planned())

    def restart(self, planned: Planned) -> None:
        """Begin with a run whose traffic is known so far."""
        racks = len(self._plan.ways.racks)
        self._planned, self._cycle = planned, 0
        self._done: Matrix = np.zeros((racks, racks), np.int64)
        self.meter.restart()

    def decide(self, current: Circuits, now_ps: int) -> Circuits:
        """Ask the controller which circuits it wants, now that these are up; they are checked.

        Raises:
            ConfigError: If there can't be such circuits, or a rack would not reach another.
        """
        delivered, waiting, flows = self.meter.take()
        self._done += delivered
        demand = self._plan.demand(
            self._planned,
            delivered=delivered,
            waiting=waiting,
            done=self._done.copy(),
            flows=flows,
            rack_of=self._rack_of,
            cycle=self._cycle,
            current=current,
        )
        self._cycle += 1
        chosen = self._plan.decide(demand, now_ps)
        if chosen != current:
            self._plan.ways.check(chosen)
        return chosen
