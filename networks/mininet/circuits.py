"""Circuits of a live network: a process has switches' ports wait, and routes move with them.

It does what `ringleaf.networks.virtual.circuits` does in virtual time, by the wall clock: decide,
drain, be dark, set up. Hosts send all the time, so routes move away from circuits before they go.
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.tensors import Array
from ringleaf.core.units import FOREVER_PS, PS_PER_NS
from ringleaf.networks.circuit_plan import CircuitDecisions, CircuitPlan
from ringleaf.networks.endpoints.rack_demand import PairTraffic
from ringleaf.networks.forwarding import Forwarding, route_updates
from ringleaf.networks.live.client import DaemonCommands
from ringleaf.networks.live.members import listen, say
from ringleaf.networks.mininet.control_process import hear_start, is_over
from ringleaf.networks.mininet.programming import Door
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import CircuitChange, CircuitUse, Direction
from ringleaf.topologies.graph import circuits as circuit_links
from ringleaf.topologies.graph import link, port
from ringleaf.topologies.switching.plan import Circuits, Pair

LOOK_NS = 1_000_000
"""The time between two looks whether circuits that go are empty."""


class LiveCircuits:
    """The circuits of one live run, as a process of its own sees to them.

    Args:
        plan: The topology's circuits; its switches have the routes of the plan's first ones.
        options: The network's options.
        read: Returns what hosts have sent one another so far.
        door: Writes to the switches, from that process alone.
        commands: Commands to the daemon of the switches, likewise.
    """

    def __init__(
        self,
        plan: CircuitPlan,
        options: NetworkOptions,
        read: Callable[[], PairTraffic],
        door: Door,
        commands: DaemonCommands,
    ) -> None:
        self._plan, self._door, self._commands = plan, door, commands
        self._forwarding = Forwarding(plan.graph, ecmp=options.ecmp, ecn=options.ecn)
        self._decisions = CircuitDecisions(plan, read)
        self._planned = options.planned
        # A message might be too long for what the process has to tell.
        self._file = os.fdopen(os.memfd_create("circuits"), "r+b", buffering=0)
        ways, graph = plan.ways, plan.graph
        number = {rack: place for place, rack in enumerate(ways.racks)}
        self._ports: dict[Pair, tuple[str, int]] = {
            (number[a], number[b]): (a, port(graph, a, b)) for a, b in circuit_links(graph)
        }
        self._rates = {
            pair: link(graph, *(ways.racks[end] for end in pair)).rate_bps for pair in self._ports
        }
        self._keys: dict[str, Hashable] = ways.keys(plan.first)
        self._rows = self._routes(plan.first)
        self._circuits = plan.first
        self._changes: list[CircuitChange] = []
        self._start_ns = 0

    def expect(self, schedule: Schedule, nodes: Sequence[int], tensor: Array) -> None:
        """Note that the run is of one schedule, with these hosts and tensors like this one."""
        sizes = tensor.size, tensor.dtype.itemsize
        self._planned = self._decisions.meter.planned(schedule, nodes, *sizes)

    @property
    def first(self) -> Circuits:
        """The circuits with which the run begins."""
        return self._plan.start(self._planned)

    def use(self, link_bytes: Mapping[Direction, int], time_ps: int) -> CircuitUse:
        """Return what circuits have done in the run, which is over and took so long."""
        return self._plan.use(self.first, self.changes(), link_bytes, time_ps)

    def changes(self) -> list[CircuitChange]:
        """Return the changes of the run that is over."""
        self._file.seek(0)
        content: bytes = self._file.read()
        changes: list[CircuitChange] = pickle.loads(content) if content else []
        return changes

    def be(self, control: socket.socket) -> None:
        """Be the process, from before the run to its end."""
        self._decisions.restart(self._planned)
        self._circuits = self.first
        dark = [place for pair, place in self._ports.items() if pair not in self._circuits.ports]
        self._commands.ask("hold", ports=dark)
        self._door(dict.fromkeys(self._keys, ()))  # which connects
        self._set_up(self._circuits)
        say(control, {"ready": True})
        start_ns = hear_start(control)
        if start_ns is not None:
            self._start_ns = start_ns
            self._switch(control)
            listen(control)
        self._route(self._plan.first)
        self._file.write(pickle.dumps(self._changes))
        say(control, {"settled": True})

    def _switch(self, control: socket.socket) -> None:
        """Change circuits until the run is over."""
        settings = self._plan.settings
        due_ns = self._start_ns
        while not settings.controller.once:
            if is_over(control, due_ns + settings.period_ps // PS_PER_NS):
                return
            chosen = self._decisions.decide(self._circuits, self._now_ps)
            if chosen != self._circuits and not self._change(control, chosen):
                return
            due_ns = time.monotonic_ns()

    def _change(self, control: socket.socket, chosen: Circuits) -> bool:
        """Have other circuits; return whether they are up before the run is over."""
        self._changes.append(CircuitChange(self._now_ps))
        staying = self._circuits.staying(chosen)
        going = [self._ports[pair] for pair in self._circuits.ports if pair not in staying.ports]
        self._route(staying)
        if not self._drain(control, going):
            return False
        self._commands.ask("hold", ports=going)
        self._circuits = staying
        self._note(dark_ps=self._now_ps, stayed=self._plan.named(staying))
        if is_over(control, time.monotonic_ns() + self._plan.settings.dead_ps // PS_PER_NS):
            return False
        self._set_up(chosen)
        self._note(up_ps=self._now_ps, pairs=self._plan.named(chosen))
        return True

    def _drain(self, control: socket.socket, going: Sequence[tuple[str, int]]) -> bool:
        """Wait until packets have left circuits, or for the most time that this may take."""
        drain_ps = self._plan.settings.drain_ps
        limit_ps = FOREVER_PS if drain_ps is None else self._now_ps + drain_ps
        while self._commands.ask("queued", ports=going) and self._now_ps < limit_ps:
            if is_over(control, time.monotonic_ns() + LOOK_NS):
                return False
        return True

    def _set_up(self, circuits: Circuits) -> None:
        """Have circuits up: routes lead over them, and their ports send."""
        self._circuits = circuits
        self._route(circuits)
        rates = [
            (*self._ports[pair], max(int(circuits.rate_of(pair) * self._rates[pair]), 1))
            for pair in circuits.ports
        ]
        self._commands.ask("release", rates=rates)

    def _route(self, circuits: Circuits) -> None:
        """Have switches send by these circuits."""
        keys = self._plan.ways.keys(circuits)
        moved = [name for name, key in keys.items() if key != self._keys[name]]
        if not moved:
            return
        rows = self._routes(circuits, moved)
        updates = {name: route_updates(self._rows[name], rows[name]) for name in moved}
        self._door({name: each for name, each in updates.items() if each})
        self._rows |= rows
        self._keys = keys

    def _routes(self, circuits: Circuits, only: Sequence[str] | None = None) -> dict[str, Any]:
        return self._forwarding.rows(self._plan.ways.table(circuits), only)

    @property
    def _now_ps(self) -> int:
        """The time since the run's start."""
        return (time.monotonic_ns() - self._start_ns) * PS_PER_NS

    def _note(self, **known: Any) -> None:
        self._changes[-1] = self._changes[-1]._replace(**known)
