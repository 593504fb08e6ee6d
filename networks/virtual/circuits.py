"""Circuits of a network in virtual time: links that come and go, as a controller says.

A change has three parts. Packets leave the circuits that go (draining); nothing is sent on these
and on those that come (dark, for the dead time); then the new ones are up, and routes lead over
them. A dark link loses nothing: its port is held, and what is for it waits in its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.units import FOREVER_PS, PS_PER_S, PS_PER_US
from ringleaf.networks.circuit_plan import CircuitDecisions, CircuitPlan
from ringleaf.networks.endpoints.connections import Connections
from ringleaf.networks.endpoints.driver import due_ps
from ringleaf.networks.endpoints.rack_demand import QueuePairTraffic, RackDemand
from ringleaf.networks.faults import Disturbance
from ringleaf.networks.outcome import CircuitChange, CircuitUse, Direction
from ringleaf.networks.virtual.fabric import PortPlace
from ringleaf.networks.virtual.holding import HeldPorts
from ringleaf.networks.virtual.loop import next_time_ps
from ringleaf.networks.virtual.switch_set import SwitchSet
from ringleaf.switches.engine.queues import BYTES, PACKETS
from ringleaf.topologies.graph import circuits as circuit_links
from ringleaf.topologies.graph import hosts, link
from ringleaf.topologies.switching.plan import Circuits, Pair, Planned

LEAST_LOOK_PS = PS_PER_US
"""The time after which to look again for packets that are late."""


class Stage(Enum):
    """The part of a change that a network is in."""

    UP = auto()
    DRAINING = auto()
    DARK = auto()


class CircuitSwitching:
    """The circuits of a laid-out network.

    Args:
        plan: Their plan.
        store: The store that holds the network.
        blocks: The network blocks of its regions.
        places: Its ports.
        switches: Its switches.
        connections: Its hosts' queue pairs.
        late_ps: The most by which a packet on a line is late.
    """

    def __init__(
        self,
        plan: CircuitPlan,
        store: Store,
        blocks: Sequence[int],
        places: Sequence[PortPlace],
        switches_: SwitchSet,
        connections: Connections,
        late_ps: int = 0,
    ) -> None:
        self._plan, self._store, self._switches = plan, store, switches_
        self._blocks, self._events = blocks, -1
        self._held = HeldPorts(store, blocks)
        ways, graph = plan.ways, plan.graph
        number = {rack: place for place, rack in enumerate(ways.racks)}
        ports = {(place.node, place.peer): port for port, place in enumerate(places)}
        self._ports: dict[Pair, int] = {
            (number[a], number[b]): ports[a, b] for a, b in circuit_links(graph)
        }
        self._rates = {
            pair: link(graph, ways.racks[pair[0]], ways.racks[pair[1]]).rate_bps
            for pair in self._ports
        }
        self._host_ports = [ports[host, next(iter(graph.adj[host]))] for host in hosts(graph)]
        self._late_ps = late_ps
        count = len(hosts(graph))
        self._decisions = CircuitDecisions(plan, QueuePairTraffic(store, connections, range(count)))
        self._circuits, self._next = plan.first, plan.first
        self._routed = self._first = plan.first
        self._stage = Stage.UP
        self._since_ps = self._limit_ps = 0
        self.next_ps = FOREVER_PS
        """The time of the next step."""
        self._changes: list[CircuitChange] = []
        self._start_ps = 0
        self._hold_dark()

    @staticmethod
    def widen(store: Store, network: int, plan: CircuitPlan, places: Sequence[PortPlace]) -> None:
        """Give circuits the most rate that they may have, by which windows of time are made."""
        rows = s.open_network(store.arena, network).ports
        joined = set(circuit_links(plan.graph))
        for port, place in enumerate(places):
            if (place.node, place.peer) in joined:
                rows[port, s.RATE_BPS] *= plan.ways.optical

    @property
    def meter(self) -> RackDemand:
        """The traffic between racks."""
        return self._decisions.meter

    def begin(self, planned: Planned, now_ps: int) -> None:
        """Set up the circuits with which a run starts, in no time."""
        self._start_ps = now_ps
        self._changes, self._stage, self._events = [], Stage.UP, -1
        self._decisions.restart(planned)
        self._circuits = self._next = self._first = self._plan.start(planned)
        self._hold_dark()
        self._light(self._circuits, now_ps)
        self._route(self._circuits)
        controller = self._plan.settings.controller
        self.next_ps = FOREVER_PS if controller.once else now_ps + self._plan.settings.period_ps

    def settle(self, now_ps: int) -> None:
        """Let all that is held go, when a run is over."""
        self.next_ps = FOREVER_PS
        self._stage = Stage.UP
        self._held.release([*self._ports.values(), *self._host_ports], now_ps)

    @property
    def is_waiting(self) -> bool:
        """Whether packets may go on after a later step that can't now."""
        if self.next_ps == FOREVER_PS:
            return False
        return self._stage is not Stage.UP or any(
            self._held.packets(port) for port in self._ports.values() if port in self._held
        )

    def happen(self, now_ps: int) -> None:
        """Take the steps that are due."""
        while self.next_ps <= now_ps:
            if self._stage is Stage.UP:
                self._decide(now_ps)
            elif self._stage is Stage.DRAINING:
                self._drain(now_ps)
            else:
                self._set_up(now_ps)

    def stand(self, until_ps: int) -> None:
        """Leave circuits as they are while hosts compute and nothing is under way.

        Whole periods pass, so that the next decision is no earlier, and a long time costs nothing.
        """
        if self.next_ps < until_ps:
            period_ps = self._plan.settings.period_ps
            self.next_ps += -(-(until_ps - self.next_ps) // period_ps) * period_ps

    def _decide(self, now_ps: int) -> None:
        """Ask the controller, and begin a change if it wants other circuits."""
        self._next = self._decisions.decide(self._circuits, now_ps)
        settings = self._plan.settings
        if self._next == self._circuits:
            self.next_ps = now_ps + self._periods(now_ps) * settings.period_ps
            return
        self._changes.append(CircuitChange(now_ps - self._start_ps))
        self._stage, self._since_ps = Stage.DRAINING, now_ps
        self._limit_ps = FOREVER_PS if settings.drain_ps is None else now_ps + settings.drain_ps
        if settings.pauses:
            # Routes stay until all has arrived, so that no packet overtakes another.
            self._held.hold(self._host_ports)
        else:
            self._route(self._circuits.staying(self._next))
        self._drain(now_ps)

    def _periods(self, now_ps: int) -> int:
        """Return the number of periods until a decision may be another one, and at least 1.

        If nothing has happened since the last decision, nothing will change until the next event.
        So the time in which hosts wait for a timeout costs nothing, however short the period is.
        """
        words = self._store.arena.words
        events = sum(int(words[at + s.EVENTS]) for at in self._blocks)
        before, self._events = self._events, events
        if events != before:
            return 1
        heaps = (int(words[at + s.HEAP_AT]) for at in self._blocks)
        drivers = (int(words[at + s.DRIVER]) for at in self._blocks)
        times = (
            *(next_time_ps(words, heap) for heap in heaps),
            *(due_ps(words, driver) if driver else FOREVER_PS for driver in drivers),
        )
        next_ps = int(min(times))  # words of an array are no numbers of Python
        if next_ps == FOREVER_PS:
            return 1
        return max(-(-(next_ps - now_ps) // self._plan.settings.period_ps), 1)

    def _drain(self, now_ps: int) -> None:
        """Wait until packets have left the circuits that go; then they are dark."""
        empty_ps = self._empty_ps(now_ps)
        if empty_ps > now_ps and now_ps < self._limit_ps:
            self.next_ps = min(empty_ps, self._limit_ps)
            return
        staying = self._circuits.staying(self._next)
        self._held.hold(
            self._ports[pair] for pair in self._circuits.ports if pair not in staying.ports
        )
        self._circuits = staying
        self._note(dark_ps=now_ps - self._start_ps, stayed=self._plan.named(staying))
        self._stage, self.next_ps = Stage.DARK, now_ps + self._plan.settings.dead_ps

    def _set_up(self, now_ps: int) -> None:
        """Set the new circuits up: their ports send, and routes lead over them."""
        self._circuits = self._next
        self._route(self._circuits)
        self._light(self._circuits, now_ps)
        self._held.release(self._host_ports, now_ps)
        self._note(up_ps=now_ps - self._start_ps, pairs=self._plan.named(self._circuits))
        self._stage, self.next_ps = Stage.UP, now_ps + self._plan.settings.period_ps

    def _note(self, **known: Any) -> None:
        self._changes[-1] = self._changes[-1]._replace(**known)

    def _hold_dark(self) -> None:
        """Hold the ports of all circuits that are not up."""
        up = self._circuits.ports
        self._held.hold(port for pair, port in self._ports.items() if pair not in up)

    def _light(self, circuits: Circuits, now_ps: int) -> None:
        """Give circuits their rates, and let their ports send."""
        rows = self._held.ports
        for pair in circuits.ports:
            rate = circuits.rate_of(pair) * self._rates[pair]
            rows[self._ports[pair], s.RATE_BPS] = max(int(rate), 1)
        self._held.release((self._ports[pair] for pair in circuits.ports), now_ps)

    def _route(self, circuits: Circuits) -> None:
        """Have switches send by these circuits."""
        if circuits != self._routed:
            ways = self._plan.ways
            self._switches.reroute(self._plan.graph, ways.table(circuits), ways.keys(circuits))
            self._routed = circuits

    def _empty_ps(self, now_ps: int) -> int:
        """Return when the circuits that go are empty, if nothing more is sent to them.

        If senders pause, all ports must be empty. A packet that goes on to another port then makes
        it later, so it must be asked again.
        """
        rows = self._held.ports
        busy = self._held.busy_until_ps()
        if self._plan.settings.pauses:
            dark = [port for port in self._ports.values() if port in self._held]
            counted = np.setdiff1d(np.arange(len(rows)), dark)
        else:
            staying = self._circuits.staying(self._next).ports
            going = [pair for pair in self._circuits.ports if pair not in staying]
            counted = np.array([self._ports[pair] for pair in going], np.int64)
        if not len(counted):
            return now_ps
        rows, busy = rows[counted], busy[counted]
        queued = self._line_bytes(rows[:, s.QUEUES_AT])
        busy = np.where(queued > 0, np.maximum(busy, now_ps), busy)
        empty = busy + -(-queued * (8 * PS_PER_S) // rows[:, s.RATE_BPS]) + rows[:, s.DELAY_PS]
        return int(empty.max()) + self._late_ps

    def _line_bytes(self, queues: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bytes of line time of what is in queues; a host's port has none."""
        words = self._store.arena.words
        filled = words[queues + BYTES] + words[queues + PACKETS] * LINE_OVERHEAD_BYTES
        return np.where(queues > 0, filled, 0)

    def use(self, link_bytes: dict[Direction, int], time_ps: int) -> CircuitUse:
        """Return what circuits have done in a run of this length."""
        return self._plan.use(self._first, self._changes, link_bytes, time_ps)

    def check(self, disturbances: Iterable[Disturbance]) -> None:
        """Check that disturbances leave to the controller what it sets; see `CircuitPlan`."""
        self._plan.check_disturbances(disturbances)
