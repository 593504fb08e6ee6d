"""A whole network in virtual time: topology, P4 switches, hosts, and their collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import networkx as nx

import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
from ringleaf.collectives.schedule import Schedule
from ringleaf.core.arena import Store
from ringleaf.core.packets import packets_in_use
from ringleaf.core.tensors import Array, as_arrays
from ringleaf.core.units import FOREVER_PS, format_time
from ringleaf.errors import BackendError, ConfigError
from ringleaf.hosts.agent import make_ring, take_completions
from ringleaf.ina.registry import program_of
from ringleaf.networks.circuit_plan import CircuitPlan
from ringleaf.networks.endpoints.director import Director, Reacts
from ringleaf.networks.endpoints.endpoints import RING_ROWS, Endpoints
from ringleaf.networks.endpoints.execution import Execution
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.leases import ChunkLeases, Fill, Leases, is_of_ranks
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.endpoints.segments import SegmentLeases, is_one_sum
from ringleaf.networks.endpoints.tensors import HasEndpoints
from ringleaf.networks.faults import Disturbance
from ringleaf.networks.groups import Group, whole
from ringleaf.networks.options import NetworkOptions
from ringleaf.networks.outcome import Forbidden, RunResult
from ringleaf.networks.telling import Tell, Telling
from ringleaf.networks.virtual.capture import Capture, Consumer
from ringleaf.networks.virtual.circuits import CircuitSwitching
from ringleaf.networks.virtual.fabric import lay_out, places
from ringleaf.networks.virtual.meter import Meter
from ringleaf.networks.virtual.occupancy import FEW_SAMPLES, watch
from ringleaf.networks.virtual.passage import Passage
from ringleaf.networks.virtual.pausing import Pauses
from ringleaf.networks.virtual.pcap import PortCapture, interfaces
from ringleaf.networks.virtual.pool import lay_out_pool
from ringleaf.networks.virtual.regions import LEAST_GRID_PS, Note, Regions, divide, grid_ps
from ringleaf.networks.virtual.room import make_room
from ringleaf.networks.virtual.stalls import Stalls
from ringleaf.networks.virtual.state import number_agents, open_network
from ringleaf.networks.virtual.switch_set import SwitchSet
from ringleaf.networks.virtual.trees import Trees
from ringleaf.networks.virtual.troubles import Troubles
from ringleaf.networks.virtual.watch import PacketWatch, Sight
from ringleaf.switches.engine.disciplines import free_all
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.detours import is_adaptive
from ringleaf.topologies.graph import hosts, index, switches
from ringleaf.topologies.routing import longest_rtt_ps, routes

if TYPE_CHECKING:
    import torch


class VirtualNetwork(HasEndpoints):
    """Hosts, switches and links of a topology, in virtual time.

    Args:
        graph: The topology.
        options: NetworkOptions of links, queues and hosts.
        groups: Groups that run collectives together; None: all hosts, with the options' system.
        seed: Seed of losses and the like.

    Raises:
        ConfigError: If topology, program and options don't fit one another.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        options: NetworkOptions,
        *,
        groups: Sequence[Group] | None = None,
        seed: int = 1,
    ) -> None:
        options.check_data()
        self.graph = graph
        self.options = options
        self.store = Store(has_data=options.has_data)
        self.groups = groups or [whole(graph, options.system, options.servers)]
        systems = [group.system for group in self.groups if group.system is not None]
        name = program_of(systems, options.lanes, options.switch_program)
        options.check_program(name != options.switch_program, adaptive=is_adaptive(graph))
        self._switches = SwitchSet(graph, options, options.programs / f"{name}.json")
        self.programs = self._switches.programs
        whole_bytes = lay_out_pool(self.store, set(self.programs.values()), options)
        self._plan = CircuitPlan.of(graph, options)
        table = routes(graph) if self._plan is None else self._plan.table
        self._rtt_ps = longest_rtt_ps(graph, options.mtu_bytes, table=table)
        self._switches.make(self.store, seed, table)
        self.switches = self._switches.switches
        self.endpoints = Endpoints(
            graph if self._plan is None else self._plan.hosts_graph,
            *(self.store, options, self.groups),
            rtt_ps=self._rtt_ps,
            table=table if self._plan is None else None,
        )
        for aggregator in self.endpoints.aggregators.values():
            for switch, entities in aggregator.entities.items():
                self._switches.add(switch, entities)
        self.endpoints.door = self._switches.update
        self._places = places(graph)
        self._network = self._lay_out(seed)
        if self._plan is not None:
            CircuitSwitching.widen(self.store, self._network, self._plan, self._places)
        self._trim()
        self.pauses = Pauses.of(self.store, self._network, graph, self._places, options)
        self._regions = self._divide()
        self._links = [(place.node, place.peer) for place in self._places]
        number_agents(self.store.arena, self._network)
        consumers = self._consumers(seed)
        self._execution = Execution(
            self.endpoints,
            self.store,
            wake=loop.wake,
            networks=self._regions.blocks,
            overhead_ps=options.message_overhead_ps,
        )
        for at, driver in zip(self._regions.blocks, self._execution.drivers, strict=True):
            self.store.arena.words[at + s.DRIVER] = driver
        self._wake_cross_traffic()
        self._trees = Trees(self.store, self.endpoints, self._switches, self._regions)
        self._troubles = Troubles(
            *(graph, options, self._switches),
            links=self._links,
            store=self.store,
            networks=self._regions.blocks,
            head_bytes=whole_bytes,
            systems=systems,
            restart=self.restart,
            trees=self._trees,
        )
        self.circuits = self._switch_circuits()
        self._stalls = Stalls(
            *(graph, options, self.store, self.endpoints, self._regions.blocks, self._rtt_ps),
            self.switches,
        )
        self._forbidden: Forbidden = Counter()  # before the run
        self._passage = Passage(
            *(self.store, self._regions, self.endpoints.rings, self._execution, self._troubles),
            *(self.circuits, self.pauses),
        )
        if consumers:
            self._passage.capture = Capture(self.store, self._network, consumers)
        self.leases: Leases | None = None
        """The leases of the last run's tensors, if it had some."""

    def _switch_circuits(self) -> CircuitSwitching | None:
        """Return what sets circuits up, if the options have a controller."""
        if self._plan is None:
            return None
        options = self.options
        return CircuitSwitching(
            *(self._plan, self.store, self._regions.blocks, self._places, self._switches),
            self.endpoints.connections,
            late_ps=options.jitter_ps if options.reorder or options.duplicate else 0,
        )

    def _trim(self) -> None:
        """Have switches trim packets, if the options say so."""
        if self.options.trim_bytes is not None:
            from ringleaf.networks.virtual.trimming import lay_out_trimming

            room = self.options.trim_bytes
            lay_out_trimming(self.store, self._network, self.switches, room)

    def _wake_cross_traffic(self) -> None:
        """Have the timers of hosts' cross traffic set."""
        blocks = self._regions.blocks
        for agent in self.endpoints.cross_traffic:
            region = self.endpoints.region(agent.host)
            loop.wake(self.store.arena, blocks[region], agent.block, 0)

    def _divide(self) -> Regions:
        """Divide the network among threads, if its packets are not to be seen one by one."""
        options, names = self.options, hosts(self.graph)
        wide = grid_ps(self.store, self._network) >= LEAST_GRID_PS
        seen = options.capture is not None or options.record is not None
        busy = {host for group in self.groups for host in group.nodes}
        threads = min(options.threads, len(busy)) if wide and not seen else 1
        region = divide(self.graph, threads, busy)
        rings = [self.endpoints.ring]
        rings += [make_ring(self.store, RING_ROWS) for _ in range(1, threads)]
        self.endpoints.divide([region[name] for name in names], rings)
        nodes = [*switches(self.graph), *names]
        return Regions(self.store, self._network, [region[name] for name in nodes], rings)

    def count_windows(self, note: Note) -> None:
        """Have regions take turns, and `note` called with the events of each in each window."""
        self._regions.note = note

    @property
    def now_ps(self) -> int:
        """The simulated time."""
        return self._passage.now_ps

    @property
    def threads(self) -> int:
        """The number of threads that handle events."""
        return len(self._regions.blocks)

    def watch(self, see: Callable[[Sequence[Sight]], None]) -> None:
        """Have `see` called after each event in which packets came or left, before the next one.

        Switches and tensors are then as that event has left them. It can't be used while recording.
        """
        assert self._passage.capture is None, "a network that captures can't be watched"
        assert self.threads == 1, "a network of several threads can't be watched"
        self._passage.capture = PacketWatch(self.store, self._network, self._places, see)

    def _consumers(self, seed: int) -> list[Consumer]:
        """Return the consumers of the packets that the loop captures."""
        options, ports = self.options, self._places
        consumers: list[Consumer] = []
        if options.capture is not None:
            named = interfaces(self.graph)
            consumers.append(PortCapture(options.capture, self.store, self._network, named))
        if options.record is not None:
            from ringleaf.networks.virtual.record import TraceRecorder

            record = TraceRecorder(
                options.record,
                self.store,
                self._network,
                ports,
                self.programs,
                self._switches.items,
                seed=seed,
            )
            consumers.append(record)
        return consumers

    def _lay_out(self, seed: int) -> int:
        return lay_out(
            self.graph,
            self._places,
            self.store,
            self.options,
            self.switches,
            [self.endpoints.agents(host) for host in range(self.endpoints.hosts)],
            ring=self.endpoints.ring,
            seed=seed,
            owners=self.endpoints.owners,
        )

    def run(
        self,
        schedule: Schedule,
        tensors: Sequence[torch.Tensor | Array],
        tell: Tell | None = None,
        *,
        disturbances: Sequence[Disturbance] = (),
        notes: int | None = None,
        fill: Fill | None = None,
        until_ps: int | None = None,
    ) -> RunResult:
        """Run a collective on the ranks' tensors, in place, and return its result.

        Args:
            schedule: For as many ranks as there are hosts.
            tensors: One per rank, of shape (elements,) and one type. Those that `tensors`
                gave, or `arrays`, are not copied.
            tell: Called with the network's packet-hops so far, many times a second.
            disturbances: Links that fail and switches that restart meanwhile.
            notes: The most notes of messages; None: as many as the options say.
            fill: Writes what ranks bring in, when it is needed: nothing is in the tensors, and the
                results are where `leases` says. For what `can_lease` says.
            until_ps: Time after the start at which ranks that are not done give up, and not
                before; the network can't be used after it. None: they don't.

        Raises:
            ConfigError: If schedule, tensors and network don't fit one another.
            BackendError: If nothing gets through any more and ranks are not done. The network
                can't be used after any error that ended a run.
        """
        self._execution.check_idle()
        self._passage.telling = Telling(tell)
        self._disturb(disturbances)
        with self.endpoints.operation(schedule, as_arrays(tensors)) as operation:
            self._begin_circuits(schedule, as_arrays(tensors))
            meter, patience = self.meter(), self._stalls.patience(self.now_ps)
            journal = self._watch_run(schedule, notes)
            self.leases = self._lease(schedule, operation, as_arrays(tensors), fill)
            with self.leases.starting() if self.leases else nullcontext():
                self._execution.start(operation, self.now_ps)
            end_ps = None if until_ps is None else self.now_ps + until_ps
            while operation.left:
                self._passage.advance(patience.deadline_ps if end_ps is None else end_ps)
                operation.check()
                if operation.left and self.now_ps == end_ps:
                    return replace(meter.result([end_ps]), gave_up=True)
                if operation.left and end_ps is None:
                    self._stalls.check(patience, [operation], self.now_ps)
            self._passage.end_window()
            self._settle()
            finish_ps = [operation.finish_ps(rank) for rank in range(schedule.ranks)]
            if self.leases is not None:
                self.leases.settle()
        result = self._completed(meter.result(finish_ps))
        if journal is None:
            return result
        return replace(result, notes=journal.notes, left_out=journal.left_out)

    def _begin_circuits(self, schedule: Schedule, arrays: Sequence[Array]) -> None:
        """Set up the circuits with which a collective starts."""
        if self.circuits is not None:
            nodes = [index(host) for host in self.groups[0].nodes]
            sizes = arrays[0].size, arrays[0].dtype.itemsize
            self.circuits.begin(self.circuits.meter.planned(schedule, nodes, *sizes), self.now_ps)

    def _disturb(self, disturbances: Sequence[Disturbance]) -> None:
        """Note what will be disturbed in a run that begins, and what was forbidden before."""
        self._forbidden = self._stalls.forbidden()
        if self.circuits is not None:
            self.circuits.check([*self._troubles.usual, *disturbances])
        self._trees.begin(self.now_ps)
        self._troubles.begin(disturbances, self.now_ps)

    def _settle(self) -> None:
        """Undo what a run has disturbed."""
        self._troubles.settle(self.now_ps)
        if self.circuits is not None:
            self.circuits.settle(self.now_ps)

    def _completed(self, result: RunResult) -> RunResult:
        """Return a run's result with what others than links and hosts know of it."""
        forbidden = self._stalls.forbidden() - self._forbidden
        result = replace(result, rebuilt=self._trees.take(), forbidden=forbidden)
        return self._with_memory(self._with_circuits(result))

    def _with_circuits(self, result: RunResult) -> RunResult:
        """Return the result with what circuits did, if there are some."""
        if self.circuits is None:
            return result
        return replace(result, circuits=self.circuits.use(result.link_bytes, result.time_ps))

    def _times_paused(self) -> int:
        if self.pauses is None:
            return 0
        return sum(port.asked for port in self.pauses.by_port(self.now_ps))

    def can_lease(self, schedule: Schedule) -> bool:
        """Return whether `run` takes a schedule whose tensors are only there when needed.

        It is of ranks' messages alone, without servers, codecs and scratch memory; or one sum of
        all, by a system whose workers can have a segment at a time.
        """
        system = self.options.system
        if system is not None and is_one_sum(schedule):
            return system.leases
        return is_of_ranks(schedule)

    def _lease(
        self,
        schedule: Schedule,
        operation: CollectiveOperation,
        arrays: Sequence[Array],
        fill: Fill | None,
    ) -> Leases | None:
        if fill is None:
            return None
        leases: ChunkLeases | SegmentLeases
        if is_one_sum(schedule):
            leases = self.endpoints.lease_sum(arrays, fill)
        else:
            leases = ChunkLeases(self.store, operation.executors, arrays, fill)
        operation.lease(leases)
        return leases

    def _watch_run(self, schedule: Schedule, notes: int | None) -> Journal | None:
        """Begin to watch a single collective, as far as the options say; return its journal."""
        options, now_ps = self.options, self.now_ps
        self._passage.occupancy = None
        if options.watch_memory:
            self._passage.occupancy = watch(self.switches, self.endpoints, now_ps, FEW_SAMPLES)
        journal = None
        most, messages = notes or options.watch_messages, schedule.as_rows.messages
        if most:
            journal = Journal(
                self.store, messages, most=most, start_ps=now_ps, regions=self.threads
            )
        self._execution.note(journal)
        return journal

    def play(
        self,
        director: Director,
        tell: Tell | None = None,
        *,
        disturbances: Sequence[Disturbance] = (),
    ) -> RunResult:
        """Let a director run collectives, several at a time, until it has no more to start.

        The director hears of collectives that are done at the end of the window of time that they
        end in, which is no longer than a link's delay; or earlier, if it wants to be called. So
        its decisions don't depend on the number of threads. One that `Reacts` hears of hosts at
        once.

        `tell` and `disturbances` are as for `run`.

        Raises:
            BackendError: If nothing gets through any more and collectives are not done, or if an
                error ended an earlier run.
        """
        self._execution.check_idle()
        self._passage.telling = Telling(tell)
        self._disturb(disturbances)
        if self.circuits is not None:
            self.circuits.begin(self.options.planned, self.now_ps)
        under_way: list[CollectiveOperation] = []
        meter, patience = self.meter(), self._stalls.patience(self.now_ps)
        if self.options.watch_memory:
            self._passage.occupancy = watch(self.switches, self.endpoints, self.now_ps)
        end_ps = self.now_ps
        if reacts := isinstance(director, Reacts):
            self._execution.open_stage(director)
        director.start(self.now_ps)
        while True:
            for operation in director.take_operations():
                self._execution.start(operation, self.now_ps)
                if operation.left:
                    under_way.append(operation)
                else:
                    director.finish(operation, self.now_ps)
            next_ps = director.next_ps()
            if next_ps == FOREVER_PS and not under_way:
                self._settle()
                return self._completed(meter.result([end_ps]))
            for operation in self._passage.advance_together(next_ps, patience.deadline_ps):
                end_ps = operation.end_ps
                under_way.remove(operation)
                director.finish(operation, self.now_ps)
            self._stalls.check(patience, under_way, self.now_ps)
            if reacts or self.now_ps >= next_ps:  # what it starts next begins now
                director.reach(self.now_ps)

    def _with_memory(self, result: RunResult) -> RunResult:
        """Return the result with the series of jobs' use of switches' memory, if watched."""
        if self._passage.occupancy is None:
            return result
        self._passage.occupancy.sample(self.now_ps)
        return replace(
            result,
            memory_interval_ps=self._passage.occupancy.interval_ps,
            memory_series=self._passage.occupancy.series(),
        )

    def meter(self) -> Meter:
        """Return a meter of all that happens from now on."""
        return Meter(
            self.store,
            self._regions.blocks,
            self._links,
            self.endpoints.hosts,
            self.now_ps,
            self._sources,
            self._times_paused,
        )

    @cached_property
    def _sources(self) -> dict[int, str]:
        """The host of each IPv4 address."""
        return {ipv4(self.graph, host): host for host in hosts(self.graph)}

    def restart(self, name: str) -> None:
        """Clear a switch's registers, counters and queued packets, and write its tables anew.

        Its block in the arena stays behind, unused.

        Raises:
            ConfigError: If packets are recorded: a trace has one beginning; or with PFC.
        """
        if self.options.record is not None:
            raise ConfigError(f"restart: not while traces are recorded, got {name!r}")
        if self.pauses is not None:
            raise ConfigError(f"restart: not with pfc, whose counts it would lose, got {name!r}")
        switch = self._switches.renew(name, self.store)
        net = self._net()
        net.nodes[switches(self.graph).index(name), s.BLOCK_AT] = switch.at
        for number, (node, _) in enumerate(self._links):
            if node == name:
                free_all(self.store.arena, int(net.ports[number, s.QUEUES_AT]))
        self._trees.note_restart(name)

    def drain(self) -> int:
        """Let all packets under way arrive; return the number of packets that are never freed.

        A packet of the pool that is no longer in use, but was not freed, is a leak. Timers of
        congestion controllers, which raise a rate that was cut, may go on for longer.

        Raises:
            BackendError: If packets go on although no collective is under way.
        """
        limit_ps = self._stalls.limit_ps
        if not self._passage.is_quiet_by(self.now_ps + limit_ps):
            before, deadline_ps = self._passage.hops, self.now_ps + 2 * limit_ps
            if not self._passage.is_quiet_by(deadline_ps) and self._passage.hops > before:
                raise BackendError(
                    "drain: nothing may happen any more after a collective, got packets for "
                    f"{format_time(deadline_ps - self.now_ps)}"
                )
        return packets_in_use(self.store)

    def _net(self) -> s.NetworkState:
        return open_network(self.store.arena, self._network)

    def close(self) -> None:
        """Finish the capture and traces."""
        if self._passage.capture is None:
            return
        while True:  # handle the rest of the last instant, so that traces end with it
            take_completions(self.store.arena, self.endpoints.ring)
            reason = loop.run(self.store.arena, self._network, self.now_ps)
            if reason == loop.NEEDS_ROOM:
                make_room(self.store, self._network)
            elif reason == loop.CAPTURED:
                self._passage.capture.flush()
            elif reason != loop.REPORTED:
                break
        self._passage.capture.close(self.now_ps)
