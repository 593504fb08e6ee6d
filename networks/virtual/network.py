"""A whole network in virtual time: topology, P4 switches, hosts, and collectives run on it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import torch

import networks.virtual.loop as loop
import networks.virtual.state as s
from collectives.schedule import Aggregate, Schedule
from hosts import agent as agents
from hosts import rc
from hosts.agent import Completion, make_ring, take_completions
from hosts.rank import Plan, RankExecutor, Receive, Request, Send, plans, staging_bytes
from ina.registry import Aggregator
from networks.virtual.capture import Capture, Consumer
from networks.virtual.connections import Connections
from networks.virtual.fabric import HostAgents, lay_out, places
from networks.virtual.memory import PAGE_BYTES, Memory, item_bytes
from networks.virtual.meter import Meter, RunResult
from networks.virtual.options import Options
from networks.virtual.pcap import PortPcaps
from networks.virtual.record import Recorder
from networks.virtual.room import make_room
from networks.virtual.state import open_network
from ringleaf.arena import Store
from ringleaf.errors import BackendError, ConfigError
from ringleaf.packets import make_pool
from ringleaf.units import FOREVER_PS
from switches import Program, Switch
from switches.forwarding import forwarding_entities
from topologies.graph import hosts, neighbors, switches
from topologies.routing import base_rtt_ps, routes

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"
FORWARD = "forward"
POOL_PACKETS = 8192
RING_ROWS = 1 << 16
LEAST_HEAD_BYTES = 128  # what hosts write


@cache
def _load(name: str) -> Program:
    """One of our own programs; experiments make many networks of the same."""
    return Program.load(BUILD / f"{name}.json")


class VirtualNetwork:
    """Hosts, switches and links of a topology, in virtual time.

    Raises:
        ConfigError: If topology, program and options don't fit one another.
    """

    def __init__(self, graph: nx.Graph[str], options: Options, *, seed: int = 1) -> None:
        self.graph = graph
        self.options = options
        self.store = Store()
        self.now_ps = 0
        self._ranks = len(hosts(graph))
        name = FORWARD if options.system is None else options.system.program(options.lanes)
        self.program = _load(name)
        make_pool(
            self.store,
            size=POOL_PACKETS,
            head_bytes=max(self.program.head_bytes, LEAST_HEAD_BYTES)
            + (options.mtu if options.record else 0),  # payloads are pinned
            field_count=self.program.field_count,
            lane_count=self.program.lane_count,
        )
        self.switches = self._make_switches(seed)
        self._ring = make_ring(self.store, RING_ROWS)
        table = routes(graph)
        rtt_ps = max(
            base_rtt_ps(graph, "h0", host, options.mtu, table=table) for host in hosts(graph)
        )
        self._connections = Connections(graph, self.store, options, ring=self._ring, rtt_ps=rtt_ps)
        self._ahead_bytes = options.ahead_bytes or 2 * self._connections.window_bytes
        self._aggregator = self._join_aggregation(rtt_ps)
        self._memory = Memory(self.store)
        self._planned: tuple[Schedule, int, list[Plan]] | None = None
        self._network = self._lay_out(seed)
        self._links = [(place.node, place.peer) for place in places(graph)]
        rows = open_network(self.store.arena, self._network).agents
        self._number = {at: number for number, at in enumerate(rows[:, s.AGENT_AT].tolist())}
        consumers = self._consumers(seed)
        self._capture = Capture(self.store, self._network, consumers) if consumers else None

    def _consumers(self, seed: int) -> list[Consumer]:
        """Those who get the packets that the loop captures."""
        options, ports = self.options, places(self.graph)
        consumers: list[Consumer] = []
        if options.capture is not None:
            names = [f"{place.node}-{place.port}" for place in ports]
            consumers.append(PortPcaps(options.capture, self.store, self._network, names))
        if options.record is not None:
            record = Recorder(
                options.record,
                self.store,
                self._network,
                ports,
                self.program,
                self._entities,
                seed=seed,
            )
            consumers.append(record)
        return consumers

    def _make_switches(self, seed: int) -> dict[str, Switch]:
        options = self.options
        entities = forwarding_entities(
            self.graph, ecmp=options.ecmp, ecn_packets=options.ecn_packets
        )
        self._entities: dict[str, list[Any]] = {
            name: list(entities[name]) for name in switches(self.graph)
        }
        made = {}
        for number, (name, rows) in enumerate(self._entities.items()):
            ports = len(neighbors(self.graph, name))
            switch = Switch(self.program, self.store, ports=ports, name=name, seed=seed + number)
            switch.write(rows)
            made[name] = switch
        return made

    def _join_aggregation(self, rtt_ps: int) -> Aggregator | None:
        options = self.options
        if options.system is None:
            return None
        aggregator = options.system.join(
            self.graph,
            self.store,
            ring=self._ring,
            lanes=options.lanes,
            slots=options.slots,
            rtt_ps=rtt_ps,
        )
        for name, entities in aggregator.entities.items():
            self.switches[name].write(entities)
            self._entities[name] += entities
        return aggregator

    def _lay_out(self, seed: int) -> int:
        kinds = [HostAgents(rc, self._connections.agents)]
        if self._aggregator is not None:
            kinds.append(HostAgents(self._aggregator.protocol, self._aggregator.workers))
        return lay_out(
            self.graph,
            self.store,
            self.options,
            self.program,
            self.switches,
            kinds,
            ring=self._ring,
            seed=seed,
        )

    def tensors(
        self, elements: int, dtype: torch.dtype = torch.float32, schedule: Schedule | None = None
    ) -> list[torch.Tensor]:
        """Return one uninitialised tensor per rank, in registered memory, for `run`.

        Tensors that were given out before lose their memory to these. With the schedule that
        will run, there is room for what it needs besides, and nothing will have to be copied.
        """
        spare = 0
        if schedule is not None:
            parts = plans(schedule, elements)
            self._planned = (schedule, elements, parts)
            sizes = self._staging(parts, elements, schedule.chunks, dtype)
            spare = sum(size + PAGE_BYTES for size in sizes)
        return self._memory.tensors(self._ranks, elements, dtype, spare_bytes=spare)

    def _take_plans(self, schedule: Schedule, elements: int) -> list[Plan]:
        """The ranks' plans, from `tensors` if it has just made them; executors use them up."""
        planned, self._planned = self._planned, None
        if planned is not None and planned[0] is schedule and planned[1] == elements:
            return planned[2]
        return plans(schedule, elements)

    def _staging(
        self, parts: list[Plan], elements: int, chunks: int, dtype: torch.dtype
    ) -> list[int]:
        """Bytes that each rank's executor needs for what has arrived too early."""
        item, ahead = item_bytes(dtype), self._ahead_bytes
        return [staging_bytes(plan, elements, chunks, item, ahead_bytes=ahead) for plan in parts]

    def run(self, schedule: Schedule, tensors: list[torch.Tensor]) -> RunResult:
        """Run a collective on the ranks' tensors, in place, and say what happened.

        Args:
            schedule: For as many ranks as there are hosts.
            tensors: One per rank, of shape (elements,) and one type. Those that `tensors`
                gave are not copied.

        Raises:
            ConfigError: If schedule, tensors and network don't fit one another.
            BackendError: If nothing is left to happen and ranks are not done.
        """
        self._check(schedule, tensors)
        elements, dtype = tensors[0].numel(), tensors[0].dtype
        parts = self._take_plans(schedule, elements)
        for rank, plan in enumerate(parts):
            self._connections.connect(rank, [*plan.sends, *plan.receives])
        sizes = self._staging(parts, elements, schedule.chunks, dtype)
        with self._memory.registered(tensors, sizes) as (addresses, staging):
            executors = [
                RankExecutor(
                    plan,
                    self._memory.view(addresses[rank], elements, dtype),
                    addresses[rank],
                    schedule.chunks,
                    staging=staging[rank],
                    view=lambda address, count: self._memory.view(address, count, dtype),
                    ahead_bytes=self._ahead_bytes,
                )
                for rank, plan in enumerate(parts)
            ]
            return _Execution(self, executors, dtype).run()

    def _check(self, schedule: Schedule, tensors: list[torch.Tensor]) -> None:
        if schedule.ranks != self._ranks or len(tensors) != self._ranks:
            raise ConfigError(
                f"run: schedule and tensors must be for {self._ranks} ranks, "
                f"got {schedule.ranks} and {len(tensors)}"
            )
        kinds = sorted({f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors})
        if len(kinds) > 1 or tensors[0].dim() != 1:
            raise ConfigError(f"run: tensors must be alike and of one dimension, got {kinds}")
        if self._aggregator is None and any(isinstance(row, Aggregate) for row in schedule.rows):
            raise ConfigError(
                "run: the schedule aggregates in the network, got options without a system"
            )

    def close(self) -> None:
        """Finish the pcaps and traces."""
        if self._capture is None:
            return
        while True:  # what is left of the last instant, so that traces end with it
            take_completions(self.store.arena, self._ring)
            reason = loop.run(self.store.arena, self._network, self.now_ps)
            if reason == loop.NEEDS_ROOM:
                make_room(self.store, self._network)
            elif reason == loop.CAPTURED:
                self._capture.flush()
            elif reason != loop.REPORTED:
                break
        self._capture.close(self.now_ps)


class _Execution:
    """One collective on its way: between the ranks' executors and their hosts' agents."""

    def __init__(
        self, network: VirtualNetwork, executors: list[RankExecutor], dtype: torch.dtype
    ) -> None:
        self._network = network
        self._store = network.store
        self._at = network._network
        self._executors = executors
        self._dtype = dtype
        self._finish_ps = [network.now_ps] * len(executors)

    def run(self) -> RunResult:
        net = self._network
        meter = Meter(self._store, self._at, net._links, net._ranks, net.now_ps)
        for rank, executor in enumerate(self._executors):
            executor.start()
            self._issue(rank)
        left = {rank for rank, executor in enumerate(self._executors) if not executor.done}
        while left:
            reason = loop.run(self._store.arena, self._at, FOREVER_PS)
            if reason == loop.REPORTED:
                for rank in self._dispatch():
                    self._issue(rank)
                    if self._executors[rank].done:
                        left.discard(rank)
            elif reason == loop.NEEDS_ROOM:
                make_room(self._store, self._at)
            elif reason == loop.CAPTURED and net._capture is not None:
                net._capture.flush()
            else:
                raise BackendError(f"run: nothing will happen any more, got waiting ranks {left}")
        return meter.result(self._finish_ps)

    def _dispatch(self) -> list[int]:
        """Tell executors what agents have reported; return the ranks concerned, in order."""
        concerned: dict[int, None] = {}
        arena = self._store.arena
        for report in take_completions(arena, self._network._ring):
            self._network.now_ps = report.time_ps
            rank = int(arena.words[report.agent + agents.HOST])
            concerned[rank] = None
            self._tell(rank, report)
        return list(concerned)

    def _tell(self, rank: int, report: Completion) -> None:
        executor = self._executors[rank]
        connections = self._network._connections
        if report.agent == connections.agents[rank] and report.kind == rc.SENT:
            executor.sent(report.b)
            if executor.receives:
                return  # a rank has its result when the last write is there
        elif report.agent != connections.agents[rank]:
            executor.aggregated(report.b)
        elif report.kind == rc.RECEIVED:
            executor.received(report.b)
        else:
            peer = connections.stream(rank, report.a).peer
            raise BackendError(f"h{rank}: too long a message from h{peer}, got row {report.b}")
        self._finish_ps[rank] = report.time_ps

    def _issue(self, rank: int) -> None:
        """Hand an executor's requests to its host's agents."""
        woken = dict.fromkeys(
            self._post(rank, request) for request in self._executors[rank].take_requests()
        )
        for at in woken:
            loop.wake(self._store.arena, self._at, self._network._number[at], self._now_ps)

    @property
    def _now_ps(self) -> int:
        return self._network.now_ps

    def _post(self, rank: int, request: Request) -> int:
        """Give one request to the agent it is for; return the agent."""
        net, arena = self._network, self._store.arena
        address, size = request.address, request.size_bytes
        at = net._connections.agents[rank]
        if isinstance(request, Receive):
            qp = net._connections.qp(rank, request.stream)
            accepted = rc.post_receive(arena, at, qp, address, size, request.tag)
        elif isinstance(request, Send):
            qp = net._connections.qp(rank, request.stream)
            accepted = rc.post_send(arena, at, qp, address, size, request.tag, self._now_ps)
        else:
            assert net._aggregator is not None
            elements = size // item_bytes(self._dtype)
            net._aggregator.start(
                arena, rank, address, elements, request.tag, self._dtype, self._now_ps
            )
            at, accepted = net._aggregator.workers[rank], True
        assert accepted, "an executor posts less than a ring holds"
        return at
