"""A whole network in virtual time: topology, P4 switches, hosts, and their collectives."""

from __future__ import annotations

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
from ringleaf.core.faults import CORRUPT
from ringleaf.core.packets import POOL_SIZE, free_packets, make_pool
from ringleaf.core.tensors import Array, as_arrays
from ringleaf.core.units import FOREVER_PS, format_time
from ringleaf.errors import BackendError, ConfigError
from ringleaf.hosts.agent import make_ring, take_completions
from ringleaf.hosts.rc.wire import ICRC_BYTES
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
from ringleaf.networks.outcome import RunResult
from ringleaf.networks.telling import Tell, Telling
from ringleaf.networks.virtual.capture import Capture, Consumer
from ringleaf.networks.virtual.circuits import CircuitSwitching
from ringleaf.networks.virtual.fabric import lay_out, places
from ringleaf.networks.virtual.meter import Meter
from ringleaf.networks.virtual.occupancy import FEW_SAMPLES, Occupancy, watch
from ringleaf.networks.virtual.patience import Patience, limit_ps, probes_of
from ringleaf.networks.virtual.pausing import Pauses
from ringleaf.networks.virtual.pcap import PortCapture, interfaces
from ringleaf.networks.virtual.regions import LEAST_GRID_PS, Note, Regions, divide, grid_ps
from ringleaf.networks.virtual.room import make_room
from ringleaf.networks.virtual.state import number_agents, open_network
from ringleaf.networks.virtual.switch_set import SwitchSet
from ringleaf.networks.virtual.trees import Trees
from ringleaf.networks.virtual.troubles import Troubles
from ringleaf.networks.virtual.watch import PacketWatch, Sight
from ringleaf.switches.engine.disciplines import free_all
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.graph import hosts, index, switches
from ringleaf.topologies.routing import longest_rtt_ps, most_links, routes

if TYPE_CHECKING:
    import torch

POOL_PACKETS = 1 << 16  # those that were never used take no memory
POOL_VECTORS = 8192
LEAST_HEAD_BYTES = 128  # the size of hosts' headers


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
        self.now_ps = 0
        self.groups = groups or [whole(graph, options.system, options.servers)]
        systems = [group.system for group in self.groups if group.system is not None]
        name = program_of(systems, options.lanes, options.switch_program)
        options.check_program(name != options.switch_program)
        self._switches = SwitchSet(graph, options, options.programs / f"{name}.json")
        self.programs = self._switches.programs
        loaded = set(self.programs.values())
        head_bytes = max(LEAST_HEAD_BYTES, *(each.head_bytes for each in loaded))
        # Packets whose bytes are recorded, or change, lie in their heads.
        recorded_bytes = head_bytes + max(options.mtu_bytes, 4 * options.lanes)
        whole_bytes = recorded_bytes + ICRC_BYTES
        if any(each.kind == CORRUPT for each in options.faults):
            head_bytes = whole_bytes
        elif options.record is not None:
            head_bytes = recorded_bytes
        make_pool(
            self.store,
            size=POOL_PACKETS,
            vectors=POOL_VECTORS,
            head_bytes=head_bytes,
            field_count=max(each.field_count for each in loaded),
            lane_count=max(each.lane_count for each in loaded),
        )
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
        self._capture: Capture | PacketWatch | None = None
        if consumers:
            self._capture = Capture(self.store, self._network, consumers)
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
        self._occupancy: Occupancy | None = None
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
        self._telling = Telling()
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
            loop.wake(self.store.arena, blocks[region], agent.block, self.now_ps)

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
    def threads(self) -> int:
        """The number of threads that handle events."""
        return len(self._regions.blocks)

    def watch(self, see: Callable[[Sequence[Sight]], None]) -> None:
        """Have `see` called after each event in which packets came or left, before the next one.

        Switches and tensors are then as that event has left them. It can't be used while recording.
        """
        assert self._capture is None, "a network that captures can't be watched"
        assert self.threads == 1, "a network of several threads can't be watched"
        self._capture = PacketWatch(self.store, self._network, self._places, see)

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
        self._telling = Telling(tell)
        self._disturb(disturbances)
        with self.endpoints.operation(schedule, as_arrays(tensors)) as operation:
            self._begin_circuits(schedule, as_arrays(tensors))
            meter, patience = self.meter(), self._patience()
            journal = self._watch_run(schedule, notes)
            self.leases = self._lease(schedule, operation, as_arrays(tensors), fill)
            with self.leases.starting() if self.leases else nullcontext():
                self._execution.start(operation, self.now_ps)
            end_ps = None if until_ps is None else self.now_ps + until_ps
            while operation.left:
                self._advance(patience.deadline_ps if end_ps is None else end_ps)
                operation.check()
                if operation.left and self.now_ps == end_ps:
                    return replace(meter.result([end_ps]), gave_up=True)
                if operation.left and end_ps is None:
                    self._check_progress(patience, [operation])
            self._end_window()
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
        """Note what will be disturbed in a run that begins."""
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
        result = replace(result, rebuilt=self._trees.take())
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

    def _end_window(self, until_ps: int = FOREVER_PS) -> None:
        """Go on to the end of the last window, or to a time in it.

        What the network has done, and counted, does not depend on the number of threads then.
        """
        end_ps = min(self._regions.end_of_window(self.now_ps), until_ps)
        while (reason := self._run(end_ps)) not in (loop.UNTIL, loop.EMPTY):
            self._go_on(reason)
        self.now_ps = end_ps

    def _watch_run(self, schedule: Schedule, notes: int | None) -> Journal | None:
        """Begin to watch a single collective, as far as the options say; return its journal."""
        options, now_ps = self.options, self.now_ps
        self._occupancy = None
        if options.watch_memory:
            self._occupancy = watch(self.switches, self.endpoints, now_ps, FEW_SAMPLES)
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
        self._telling = Telling(tell)
        self._disturb(disturbances)
        if self.circuits is not None:
            self.circuits.begin(self.options.planned, self.now_ps)
        under_way: list[CollectiveOperation] = []
        meter, patience = self.meter(), self._patience()
        if self.options.watch_memory:
            self._occupancy = watch(self.switches, self.endpoints, self.now_ps)
        end_ps = self.now_ps
        if isinstance(director, Reacts):
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
            for operation in self._advance_together(next_ps, patience.deadline_ps):
                end_ps = operation.end_ps
                under_way.remove(operation)
                director.finish(operation, self.now_ps)
            self._check_progress(patience, under_way)
            if self.now_ps >= next_ps:
                director.reach(self.now_ps)

    def _with_memory(self, result: RunResult) -> RunResult:
        """Return the result with the series of jobs' use of switches' memory, if watched."""
        if self._occupancy is None:
            return result
        self._occupancy.sample(self.now_ps)
        return replace(
            result,
            memory_interval_ps=self._occupancy.interval_ps,
            memory_series=self._occupancy.series(),
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

    def _advance(self, until_ps: int) -> list[CollectiveOperation]:
        """Let time run until agents report, or to `until_ps`; return the operations then done."""
        reason = self._run(until_ps)
        if reason in (loop.UNTIL, loop.EMPTY):
            self.now_ps = until_ps
            return []
        self.now_ps = max(self.now_ps, self._execution.now_ps)
        self._go_on(reason)
        return self._execution.take_done()

    def _advance_together(self, next_ps: int, deadline_ps: int) -> list[CollectiveOperation]:
        """Let time run, and return the operations then done, in the order in which they ended.

        It stops when operations are done, when the director has more to start, at the end of the
        window, or at the earlier of the two times.
        """
        if next_ps <= self.now_ps:
            return []
        done = self._advance(min(next_ps, deadline_ps))
        if self._execution.take_asked() or done:
            self._end_window(next_ps)
            done += self._execution.take_done()
            self._execution.take_asked()
        return sorted(done, key=lambda each: (each.end_ps, each.group, each.channel))

    def _go_on(self, reason: int) -> None:
        """Do what the loop has stopped for, as far as it is not for executors."""
        if reason == loop.NEEDS_ROOM:
            make_room(self.store, *self._regions.blocks)
        elif reason == loop.CAPTURED and self._capture is not None:
            self._capture.flush()

    def _run(self, until_ps: int) -> int:
        """Run the loop, with stops for samples and disturbances; return the reason why it ended."""
        while True:
            stop_ps = min(until_ps, self._look())
            reason = self._regions.run(stop_ps)
            if stop_ps == until_ps or reason not in (loop.UNTIL, loop.EMPTY):
                return reason
            if reason == loop.EMPTY and not self._is_waiting:
                self._troubles.happen(until_ps)  # it stays empty, whatever is disturbed
                return reason
            self.now_ps = stop_ps
            self._troubles.happen(stop_ps)
            if self.circuits is not None:
                self.circuits.happen(stop_ps)

    @property
    def _is_waiting(self) -> bool:
        """Whether packets wait for circuits."""
        return self.circuits is not None and self.circuits.is_waiting

    def _look(self) -> int:
        """Take due samples, tell how far the run is, and return the time of the next such stop."""
        next_ps = self._troubles.next_ps
        if self.circuits is not None:
            next_ps = min(next_ps, self.circuits.next_ps)
        if self._occupancy is not None:
            self._occupancy.sample(self.now_ps)
            next_ps = min(next_ps, self._occupancy.next_ps)
        next_ps = min(next_ps, self._telling.next_ps(self.now_ps, self._counted))
        if self.pauses is not None:
            next_ps = min(next_ps, self.pauses.next_ps(self.now_ps))
        return next_ps

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
        limit_ps = self._limit_ps
        if not self._is_quiet_by(self.now_ps + limit_ps):
            before, deadline_ps = self._hops, self.now_ps + 2 * limit_ps
            if not self._is_quiet_by(deadline_ps) and self._hops > before:
                raise BackendError(
                    "drain: nothing may happen any more after a collective, got packets for "
                    f"{format_time(deadline_ps - self.now_ps)}"
                )
        return int(self.store.arena.words[POOL_SIZE]) - free_packets(self.store)

    def _is_quiet_by(self, deadline_ps: int) -> bool:
        """Let time pass until no event is left; return whether that was before a time."""
        while True:
            for ring in self.endpoints.rings:
                take_completions(self.store.arena, ring)
            reason = self._run(deadline_ps)
            self._go_on(reason)
            if reason in (loop.EMPTY, loop.UNTIL):
                return reason == loop.EMPTY

    @property
    def _hops(self) -> int:
        """The packets that have arrived anywhere so far."""
        return self._counted()[0]

    def _counted(self) -> tuple[int, int]:
        """Return the packets that have arrived anywhere, and the events, so far."""
        words, blocks = self.store.arena.words, self._regions.blocks
        hops, events = (sum(int(words[at + each]) for at in blocks) for each in (s.HOPS, s.EVENTS))
        return hops, events

    def _patience(self) -> Patience:
        groups = range(len(self.endpoints.groups))
        agents = [self.endpoints.agents_of(group) for group in groups]
        return Patience(self.store, agents, limit_ps=self._limit_ps, now_ps=self.now_ps)

    @cached_property
    def _limit_ps(self) -> int:
        """The time without progress that makes a stall."""
        connections = self.endpoints.connections
        return limit_ps(
            self._rtt_ps,
            timeout_ps=connections.longest_timeout_ps,
            quiet_ps=connections.longest_quiet_ps,
            probes=probes_of(self.options.loss, most_links(self.graph)),
        )

    def _check_progress(self, patience: Patience, under_way: Sequence[CollectiveOperation]) -> None:
        stalled = patience.stalled(under_way, self.now_ps)
        if stalled:
            remedy = "--pcap shows where packets end"
            if self.options.faults:
                way = "" if self.options.reroute_ps is not None else ", or add --reroute"
                remedy = f"let what is down come back, like 's0 down for 1ms'{way}"
            raise BackendError(patience.complaint(map(self._named, stalled), remedy))

    def _named(self, operation: CollectiveOperation) -> tuple[CollectiveOperation, Sequence[str]]:
        return operation, self.endpoints.groups[operation.group].nodes

    def _net(self) -> s.NetworkState:
        return open_network(self.store.arena, self._network)

    def close(self) -> None:
        """Finish the capture and traces."""
        if self._capture is None:
            return
        while True:  # handle the rest of the last instant, so that traces end with it
            take_completions(self.store.arena, self.endpoints.ring)
            reason = loop.run(self.store.arena, self._network, self.now_ps)
            if reason == loop.NEEDS_ROOM:
                make_room(self.store, self._network)
            elif reason == loop.CAPTURED:
                self._capture.flush()
            elif reason != loop.REPORTED:
                break
        self._capture.close(self.now_ps)
