"""A live network of namespaces and P4 switches, with hosts: the counterpart of virtual time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import networkx as nx
import numpy as np

from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.ethernet import LINE_OVERHEAD_BYTES
from ringleaf.core.live_limits import check_faults, check_queues, check_ways
from ringleaf.core.tensors import FLOAT32, Array, ElementType, as_arrays
from ringleaf.errors import ConfigError
from ringleaf.hosts.congestion.registry import find_controller
from ringleaf.ina.allocation import OWN
from ringleaf.ina.rebuilding import Rebuilder
from ringleaf.ina.registry import program_of
from ringleaf.networks.circuit_plan import CircuitPlan
from ringleaf.networks.endpoints.director import Planner
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.tensors import GivesTensors
from ringleaf.networks.faults import (
    check_restarts,
    check_verified,
    disturbances_of,
    live_disturbances,
)
from ringleaf.networks.forwarding import forwarding_entities, program_items
from ringleaf.networks.groups import Group
from ringleaf.networks.live.coordination import Played
from ringleaf.networks.live.coordinator import Lateness
from ringleaf.networks.live.engine import LinkEnd
from ringleaf.networks.live.host_process import LivePlace
from ringleaf.networks.live.hosts import LiveHosts, LiveOutcome
from ringleaf.networks.live.led_crew import LedCrew
from ringleaf.networks.live.line_changes import SwitchChanges, changes_of
from ringleaf.networks.live.processor import Stopwatch
from ringleaf.networks.live.surroundings import STALL_S, CrewSurroundings
from ringleaf.networks.mininet.circuits import LiveCircuits
from ringleaf.networks.mininet.control_process import ControlProcess
from ringleaf.networks.mininet.fabric import LiveSettings, MininetFabric
from ringleaf.networks.mininet.recording import Folders
from ringleaf.networks.mininet.rerouting import Rerouting, route_changes, with_trees
from ringleaf.networks.mininet.topo import Programs
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import Drop, Forbidden, ProcessorSeconds, RunResult, tell_forbidden
from ringleaf.networks.virtual.fabric import places
from ringleaf.switches.p4runtime.table_rows import entities_of
from ringleaf.topologies.detours import is_adaptive
from ringleaf.topologies.graph import attachment, hosts, index, link, switches

if TYPE_CHECKING:
    import torch

PEAK = "peak_queue_bytes"
ECN_FIELDS = ("IP.tos", "IP.chksum")  # the fields that a switch changes to mark a packet

NONE: Mapping[int, Rebuilder] = {}
Counters = Mapping[str, Sequence[Mapping[str, int]]]
T = TypeVar("T")


class _Counted(NamedTuple):
    """All that switches have counted so far."""

    counters: Counters
    forbidden: Forbidden


class LiveTestbed:
    """Namespaces, links and switches that stay up while networks with hosts come and go.

    Args:
        graph: The topology, with rates as they shall be.
        settings: Settings of switches and links.
    """

    __test__ = False  # for pytest: no tests, in spite of its name

    def __init__(self, graph: nx.Graph[str], settings: LiveSettings) -> None:
        self.graph = graph
        self.settings = settings
        self._fabric: MininetFabric | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._fabric is not None:
            self._fabric.__exit__(kind, error, traceback)
            self._fabric = None

    def program(
        self,
        path: Programs,
        entities: Mapping[str, Sequence[Any]],
        *,
        record: Path | None = None,
        mask: Sequence[str] = (),
    ) -> MininetFabric:
        """Return the fabric; its switches run a program (BMv2 JSON) with new tables and registers.

        With a folder to `record` to, all packets from then on are recorded.
        """
        is_new = self._fabric is None
        if self._fabric is None:
            fabric = MininetFabric(self.graph, self.settings, program=path, entities=entities)
            self._fabric = fabric.__enter__()
        if record is not None:
            self._fabric.record(record, mask=mask)
        if record is not None or not is_new:
            self._fabric.program(path, entities=entities)
        return self._fabric


class MininetNetwork(GivesTensors):
    """The hosts of a testbed, for one collective after the other.

    A run without any progress for `stall_s` ends with an error.

    Raises:
        ConfigError: If topology, program and options don't fit one another, or something is
            missing that the network needs.
        BackendError: If a switch does not start, or refuses its program or entities.
    """

    def __init__(
        self,
        testbed: LiveTestbed,
        options: NetworkOptions,
        *,
        seed: int = 1,
        stall_s: float = STALL_S,
        groups: Sequence[Group] | None = None,
    ) -> None:
        _check_settings(testbed.settings, options)
        check_faults(testbed.settings.switch, options.faults, "options: ")
        reads = find_controller(options.cc).reads_queues
        check_queues(testbed.settings.switch, options.cc, "options: ", reads=reads)
        if is_adaptive(testbed.graph):
            check_ways(testbed.settings.switch, options.switch_program, "options: ")
        _check_doors(options)
        disturbances = disturbances_of(options.faults, testbed.graph, options.reroute_ps)
        recorded = options.record is not None or options.capture is not None
        pauses = options.pfc is not None
        check_restarts(disturbances, records=recorded, pauses=pauses, where="options: ")
        self._changes, self._restarts, self._reroutes = live_disturbances(disturbances)
        self._control: ControlProcess | None = None  # of the run that is under way
        self._rerouting: Rerouting | None = None  # likewise, if routes change
        self._circuits: LiveCircuits | None = None  # likewise, or of the last one
        self._has_trees = False  # whether any of a run's changes of routes are of trees, too
        self.graph = testbed.graph
        self._options = options
        self._stall_s = stall_s
        if options.circuits is not None:
            captured = options.capture is not None
            options.circuits.check_live(testbed.settings.switch, "options: ", captured=captured)
        self._plan = CircuitPlan.of(self.graph, options)
        if self._plan is not None:
            self._plan.check_disturbances(self._changes)
        seen = self.graph if self._plan is None else self._plan.hosts_graph
        self._hosts = LiveHosts(seen, options, seed=seed, groups=groups)
        table = None if self._plan is None else self._plan.table
        written: dict[str, Sequence[Any]] = dict(
            forwarding_entities(self.graph, ecmp=options.ecmp, ecn=options.ecn, table=table)
        )
        for switch, items in program_items(options.switch_program, self.graph).items():
            written[switch] = [*written[switch], *entities_of(items)]
        for switch, assigned in options.assigned.items():
            if assigned.entities is not None:
                written[switch] = assigned.entities
        of_jobs = self._hosts.entities
        entities = {name: [*written[name], *of_jobs.get(name, [])] for name in switches(self.graph)}
        systems = [group.system for group in self._hosts.groups if group.system is not None]
        check_verified(
            [each.kind for each in options.faults], systems, trims=False, where="options: "
        )
        name = program_of(systems, options.lanes, options.switch_program)
        options.check_program(name != options.switch_program, adaptive=is_adaptive(self.graph))
        self._folders = None
        if options.record is not None or options.capture is not None:
            self._folders = Folders(options.record, options.capture)
        common = options.programs / f"{name}.json"
        self._fabric = testbed.program(
            {
                switch: options.assigned[switch].program if switch in options.assigned else common
                for switch in switches(self.graph)
            },
            entities,
            record=self._folders.traces if self._folders else None,
            mask=(
                *(ECN_FIELDS if options.ecn.is_on else ()),
                *(field for system in systems for field in system.last_comers),
            ),
        )

    @property
    def slots(self) -> int | None:
        """Packets that a worker of the aggregation system has in flight; None without one."""
        return self._hosts.slots

    def arrays(
        self, elements: int, dtype: ElementType = FLOAT32, schedule: Schedule | None = None
    ) -> list[Array]:
        """Return one uninitialised array per rank, of shape (elements,), in registered memory."""
        return self._hosts.arrays(elements, dtype, schedule)

    def run(
        self,
        schedule: Schedule,
        tensors: Sequence[torch.Tensor | Array],
        tell: Callable[[int], None] | None = None,
        *,
        until_ps: int | None = None,
    ) -> RunResult:
        """Run a collective on the ranks' tensors, in place, and return its result.

        `tell` is not called: hosts are processes that count for themselves. Ranks that are not
        done by `until_ps` after the start give up.

        Raises:
            ConfigError: If schedule, tensors and network don't fit one another.
            BackendError: If a host or a switch ends, or there is no progress any more.
        """
        before, wall_s = self._count(), time.monotonic()
        with self._disturbed(self._hosts.endpoints.rebuilders, schedule, as_arrays(tensors)):
            outcome = self._hosts.run(
                schedule,
                tensors,
                self._around(),
                switches_s=self._fabric.cpu_s,
                until_ps=until_ps,
            )
        return self._result(outcome, before, time.monotonic() - wall_s)

    @property
    def store(self) -> Store:
        """The hosts' store, with shared memory."""
        return self._hosts.store

    @property
    def endpoints(self) -> Endpoints:
        """The hosts, without the network."""
        return self._hosts.endpoints

    def play(self, director: Planner, collect: Callable[[], T]) -> tuple[RunResult, Lateness, T]:
        """Let a director run collectives, several at a time, until it has no more to start.

        It decides in a process of its own, the coordinator's.

        Args:
            director: Made for `endpoints`.
            collect: Called in that process when all is over; its result is pickled.

        Returns:
            The network's result, how late hosts began what was decided, and what `collect` gave.

        Raises:
            BackendError: If a host, a switch or the coordinator ends, or there is no progress any
                more.
        """
        played, result = self._act(lambda crew, watch: crew.play(director, collect, watch))
        return result, played.lateness, played.collected

    def lead(self, director: Planner) -> RunResult:
        """Let a director run collectives as `play` does; it decides in this process.

        Time stands while nothing is under way.

        Raises:
            BackendError: If a host or a switch ends, or there is no progress any more.
        """
        return self._act(lambda crew, watch: crew.lead(director, watch))[1]

    def _act(self, act: Callable[[LedCrew, Stopwatch], Played]) -> tuple[Played, RunResult]:
        """Have a crew act; return how it played, and the network's result."""
        fabric = self._fabric
        before, wall_s = self._count(), time.monotonic()
        stopwatch = Stopwatch(fabric.cpu_s)
        with self._disturbed(self._hosts.endpoints.rebuilders):
            played = act(self._hosts.led_crew(self._around()), stopwatch)
        outcome = LiveOutcome([played.end_ps], played.counters, stopwatch, played.rebuilt)
        return played, self._result(outcome, before, time.monotonic() - wall_s)

    def _count(self) -> _Counted:
        return _Counted(self._fabric.counters(), self._fabric.forbidden())

    def _result(self, outcome: LiveOutcome, before: _Counted, wall_s: float) -> RunResult:
        now = self._count()
        moved = difference(now.counters, before.counters)
        usage = outcome.stopwatch.usage(
            hosts_s=sum(counted["cpu_s"] for counted in outcome.counters),
            is_one_thread=self._fabric.settings.switch == "embedded",
        )
        result = summarise(self.graph, outcome, moved, wall_s=wall_s, usage=usage)
        result = replace(result, forbidden=now.forbidden - before.forbidden)
        if self._circuits is None:
            return result
        return replace(result, circuits=self._circuits.use(result.link_bytes, result.time_ps))

    def close(self) -> None:
        """Write the recording, if there is one; the testbed stays up.

        Raises:
            BackendError: If the disk is full, or the like.
        """
        if self._folders is not None:
            self._fabric.save_recording()
            self._folders.close(self.graph)

    def _around(self) -> CrewSurroundings:
        fabric, process = self._fabric, self._control
        return CrewSurroundings(
            [self._place(host) for host in hosts(self.graph)],
            fabric.watched() | (process.watched if process else {}),
            fabric.check,
            self._explain,
            self._stall_s,
            fabric.door(),
            self._begin,
            self._rerouting if self._has_trees else None,
        )

    def _explain(self) -> list[str]:
        """Return possible reasons why nothing gets through."""
        forbidden = tell_forbidden(self._fabric.forbidden())
        return [*self._fabric.cut_links(), *filter(None, [forbidden])]

    def _begin(self, start_ns: int) -> None:
        """Have switches' lines change in a run that starts then; hosts see to their own."""
        if self._control is not None:
            self._control.begin(start_ns)
        if not (self._changes or self._restarts):
            return
        names = frozenset(switches(self.graph))
        lines = [
            (place.node, place.port, change)
            for place in places(self.graph)
            if place.node in names
            for change in changes_of(self._changes, (place.node, place.peer))
        ]
        restarts = [(each.switch, each.after_ps) for each in self._restarts]
        self._fabric.disturb(SwitchChanges(lines, restarts), start_ns)

    @contextmanager
    def _disturbed(
        self,
        rebuilders: Mapping[int, Rebuilder] = NONE,
        schedule: Schedule | None = None,
        arrays: Sequence[Array] = (),
    ) -> Iterator[None]:
        """Have what changes in a run ready, and all as usual after it, however it ends.

        Jobs' trees, by group, become others with routes.
        """
        with ExitStack() as stack:
            if self._changes or self._plan is not None:
                stack.callback(self._fabric.settle)
            if self._reroutes:
                routes = route_changes(self.graph, self._options, self._reroutes)
                routes = with_trees(self.graph, routes, self._reroutes, rebuilders, self._restarts)
                self._has_trees = any(each.groups for each in routes)
                self._rerouting = stack.enter_context(Rerouting(self._fabric.door(), routes))
                self._control = self._rerouting
            elif self._plan is not None:
                self._circuits = circuits = self._make_circuits(self._plan, stack)
                if schedule is not None:
                    nodes = [index(host) for host in self._hosts.groups[0].nodes]
                    circuits.expect(schedule, nodes, arrays[0])
                self._control = stack.enter_context(ControlProcess("circuits", circuits.be))
            yield

    def _make_circuits(self, plan: CircuitPlan, stack: ExitStack) -> LiveCircuits:
        """Return the circuits of one run."""
        assert self._hosts.traffic is not None
        commands = self._fabric.commands()
        stack.callback(commands.close)
        traffic, door = self._hosts.traffic, self._fabric.door()
        return LiveCircuits(plan, self._options, traffic, door, commands)

    def _place(self, host: str) -> LivePlace:
        switch = attachment(self.graph, host)
        wire = link(self.graph, host, switch)
        loss = wire.loss_or(self._options.loss)
        pfc = str(self._options.pfc or "")
        line = LinkEnd(self._fabric.interface(host), wire.rate_bps, wire.delay_ps, loss, pfc=pfc)
        namespace = Path(f"/proc/{self._fabric.namespace_pid(host)}/ns/net")
        return LivePlace(host, line, namespace, changes_of(self._changes, (host, switch)))


def _check_doors(options: NetworkOptions) -> None:
    """Check that only one process writes to the switches in a run.

    Raises:
        ConfigError: If two would.
    """
    if options.reroute_ps is not None and options.allocator != OWN:
        raise ConfigError(
            "reroute: live switches have one controller, got one that divides their memory, "
            f"{options.allocator!r}; leave out either of them"
        )


def _check_settings(settings: LiveSettings, options: NetworkOptions) -> None:
    """Check that options for what a testbed has made are as it was made.

    Raises:
        ConfigError: If one of them differs.
    """
    for name in ("discipline", "queue_bytes", "loss", "pfc"):
        setting, option = getattr(settings, name), getattr(options, name)
        if option != setting:
            raise ConfigError(
                f"options: {name} must be the testbed's, {setting!r}, got {option!r}; "
                f"give Settings({name}={option!r})"
            )


def _line_bytes(port: Mapping[str, int]) -> int:
    """Return the bytes that a port has sent, with preamble, FCS and gap."""
    return port.get("tx_line_bytes", port["tx_bytes"] + LINE_OVERHEAD_BYTES * port["tx_packets"])


def difference(now: Counters, before: Counters) -> Counters:
    """Return by how much counters have grown; a peak is that of the time between them already."""
    return {
        name: [
            {key: value if key == PEAK else value - old.get(key, 0) for key, value in port.items()}
            for port, old in zip(ports, before[name], strict=True)
        ]
        for name, ports in now.items()
    }


def summarise(
    graph: nx.Graph[str],
    outcome: LiveOutcome,
    moved: Counters,
    *,
    wall_s: float,
    usage: ProcessorSeconds,
) -> RunResult:
    """Return the result of a run from the counters of hosts and switches.

    Switches count until all is over, hosts until they are told to stop, last acknowledgements
    included. A link's load over time is not known: its series has one bin.
    """
    ranks = dict(zip(hosts(graph), outcome.counters, strict=True))
    ports = [port for ports in moved.values() for port in ports]
    time_ps = max(outcome.finish_ps)
    sent = {
        (place.node, place.peer): ranks[place.node]["tx_line_bytes"]
        if place.node in ranks
        else _line_bytes(moved[place.node][place.port - 1])
        for place in places(graph)
    }

    def total(key: str) -> int:
        return sum(int(counted[key]) for counted in outcome.counters)

    peaks = [port[PEAK] for port in ports if PEAK in port]
    overflows = sum(port.get("overflow", 0) for port in ports) + total("overflow")
    return RunResult(
        time_ps=time_ps,
        finish_ps=outcome.finish_ps,
        wire_bytes=[counted["tx_line_bytes"] for counted in outcome.counters],
        retransmissions=total("retransmissions"),
        drops=sum(port["dropped"] for port in ports) + total("cut") + total("refused") + overflows,
        lost=sum(port.get("lost", 0) for port in ports) + total("lost"),
        link_bytes=sent,
        bin_ps=max(time_ps, 1),
        link_series={name: np.array([size], np.int64) for name, size in sent.items()},
        peak_queue_bytes=max(peaks, default=None),
        packet_hops=sum(port["rx_packets"] for port in ports) + total("packet_hops"),
        events=total("events"),
        wall_s=wall_s,
        refusals=total("refusals"),
        corrupted=total("corrupted"),
        repaths=total("repaths"),
        pauses=sum(port.get("pauses", 0) for port in ports),
        overflows=overflows,
        usage=usage,
        rebuilt=outcome.rebuilt,
        gave_up=outcome.gave_up,
        drop_counts=[
            Drop(place.node, place.port, place.peer, packets=dropped)
            for place in places(graph)
            if place.node in moved and (dropped := moved[place.node][place.port - 1]["dropped"])
        ],
    )
