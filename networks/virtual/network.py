"""A whole network in virtual time: topology, P4 switches, hosts, and collectives run on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import torch

from collectives.schedule import Aggregate, Schedule
from hosts import agent as agents
from hosts import rc
from hosts.agent import Completion, make_ring, take_completions
from hosts.rank import Plan, RankExecutor, Receive, Reduce, Send, plans, staging_bytes
from ina.registry import Aggregator, HostProtocol, System
from networks.virtual import loop
from networks.virtual import state as s
from networks.virtual.heap import CAPACITY, grow_heap
from networks.virtual.meter import Direction, Meter, RunResult
from networks.virtual.pcap import Capture
from networks.virtual.state import Network, make_network, open_network
from ringleaf.arena import Store
from ringleaf.compiled import address_of
from ringleaf.errors import BackendError, ConfigError
from ringleaf.packets import OUTBOX_ROWS, POOL_FREE, POOL_SIZE, grow_pool, make_pool
from ringleaf.units import FOREVER_PS, serialize_ps
from switches import Program, Switch
from switches.forwarding import forwarding_entities
from switches.queues import make_queues
from topologies.addresses import ipv4, mac
from topologies.graph import Link, attachment, hosts, link, neighbors, switches
from topologies.routing import base_rtt_ps

MAX_MTU = 9000  # payload of a jumbo frame; UDP could carry 65 kB
RING_ROWS = 1 << 16
BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"
FIRST_SOURCE_PORT = 0xC000  # RoCEv2 senders use the dynamic range


@dataclass(frozen=True, slots=True)
class Options:
    """How links, queues and hosts behave; sizes in bytes, times in picoseconds."""

    mtu: int = 4096  # payload of a full rc packet
    window: int | None = None  # packets in flight per connection; None: twice the path's capacity
    queue_bytes: int = 4 << 20  # per switch port
    ecn_packets: int = 0  # mark from this queue depth on; 0: never
    loss: float = 0.0  # probabilities, per packet and link
    duplicate: float = 0.0
    reorder: float = 0.0
    jitter_ps: int = 5_000_000  # how late a reordered or duplicated packet is at most
    system: System | None = None  # in-network aggregation
    lanes: int = 256
    slots: int | None = None  # per worker; None: twice the path's capacity
    bins: int = 512  # of the link utilisation series
    capture: Path | None = None  # folder for pcaps
    staging_depth: int = 4  # receives posted ahead per peer


class VirtualNetwork:
    """Hosts, switches and links of a topology, in virtual time.

    Raises:
        ConfigError: If an option is out of range, or the topology and the program don't fit.
    """

    def __init__(self, graph: nx.Graph[str], options: Options, *, seed: int = 1) -> None:
        _check(options)
        self.graph = graph
        self.options = options
        self.now_ps = 0
        self._hosts = hosts(graph)
        self._switches = switches(graph)
        self._rank = {host: rank for rank, host in enumerate(self._hosts)}
        self.store = Store()
        system = options.system
        name = system.program(options.lanes) if system else "forward"
        self.program = Program.load(BUILD / f"{name}.json")
        make_pool(
            self.store,
            size=8192,
            head_bytes=max(self.program.head_bytes, 128),
            field_count=self.program.field_count,
            lane_count=self.program.lane_count,
        )
        self._ring = make_ring(self.store, RING_ROWS)
        self._rtt_ps = max(base_rtt_ps(graph, self._hosts[0], host, 4096) for host in self._hosts)
        self._make_switches(seed)
        self._rc = [self._make_rc(rank) for rank in range(len(self._hosts))]
        self._qps: list[dict[int, int]] = [{} for _ in self._hosts]  # rank -> peer -> QP
        self._peers: list[list[int]] = [[] for _ in self._hosts]  # rank -> QP -> peer
        self._aggregator = self._make_aggregator()
        self._network = self._join(seed)
        self._capture = None
        if options.capture is not None:
            names = [f"{node}-{port}" for node, port in self._ports]
            self._capture = Capture(options.capture, self.store, self._network, names)

    # Building

    def _make_switches(self, seed: int) -> None:
        entities = forwarding_entities(self.graph, ecn_packets=self.options.ecn_packets)
        self.switches: dict[str, Switch] = {}
        for number, name in enumerate(self._switches):
            ports = len(neighbors(self.graph, name))
            switch = Switch(self.program, self.store, ports=ports, name=name, seed=seed + number)
            switch.write(entities[name])
            self.switches[name] = switch

    def _make_rc(self, rank: int) -> int:
        options = self.options
        access = self._access(rank)
        full_ps = serialize_ps(options.mtu + 120, access.rate_bps)
        window = options.window or min(max(8, 2 * self._rtt_ps // full_ps), 1 << 14)
        return rc.make_rc(
            self.store,
            host=rank,
            ring=self._ring,
            mtu=options.mtu,
            window=window,
            min_timeout_ps=2 * self._rtt_ps + 4 * window * full_ps,
            rnr_wait_ps=self._rtt_ps,
        )

    def _access(self, rank: int) -> Link:
        host = self._hosts[rank]
        return link(self.graph, host, attachment(self.graph, host))

    def _make_aggregator(self) -> Aggregator | None:
        if self.options.system is None:
            return None
        aggregator = self.options.system.join(
            self.graph,
            self.store,
            ring=self._ring,
            lanes=self.options.lanes,
            slots=self.options.slots,
            rtt_ps=self._rtt_ps,
        )
        for name, entities in aggregator.entities.items():
            self.switches[name].write(entities)
        return aggregator

    def _join(self, seed: int) -> int:
        """Number the ports, lay out the network's columns and fill them."""
        nodes = [*self._switches, *self._hosts]
        self._ports = [(node, port) for node in nodes for port in neighbors(self.graph, node)]
        number = {place: index for index, place in enumerate(self._ports)}
        queues = [
            make_queues(self.store, self.options.queue_bytes) if node in self.switches else 0
            for node, _ in self._ports
        ]
        per_host = 1 if self._aggregator is None else 2
        at = make_network(
            self.store,
            ports=len(self._ports),
            nodes=len(nodes),
            agents=per_host * len(self._hosts),
            ring=self._ring,
            bins=self.options.bins,
            seed=seed,
        )
        net = open_network(self.store.arena, at)
        self._fill_ports(net, number, {node: index for index, node in enumerate(nodes)})
        net.ports[:, s.QUEUES_AT] = queues
        net.nodes[:, s.FIRST_PORT] = [number[node, 1] for node in nodes]
        self._fill_switches(net)
        self._fill_hosts(net, per_host)
        options = self.options
        net.state[s.DUPLICATE] = round(options.duplicate * s.PROBABILITY_ONE)
        net.state[s.REORDER] = round(options.reorder * s.PROBABILITY_ONE)
        net.state[s.JITTER_PS] = options.jitter_ps
        return at

    def _fill_ports(
        self, net: Network, number: dict[tuple[str, int], int], index: dict[str, int]
    ) -> None:
        graph = self.graph
        for (node, port), here in number.items():
            peer = neighbors(graph, node)[port]
            wire = link(graph, node, peer)
            row = net.ports[here]
            row[s.PEER] = number[peer, graph.edges[node, peer]["ports"][peer]]
            row[s.NODE], row[s.LOCAL_PORT] = index[node], port
            row[s.RATE_BPS], row[s.DELAY_PS] = wire.rate_bps, wire.delay_ps
        net.ports[:, s.LOSS] = round(self.options.loss * s.PROBABILITY_ONE)

    def _fill_switches(self, net: Network) -> None:
        rows = net.nodes[: len(self._switches)]
        rows[:, s.KIND] = s.SWITCH
        rows[:, s.BLOCK_AT] = [self.switches[name].at for name in self._switches]
        rows[:, s.INGRESS] = address_of(self.program.ingress)
        rows[:, s.EGRESS] = address_of(self.program.egress)

    def _fill_hosts(self, net: Network, per_host: int) -> None:
        """Give each host an rc agent and, if the network aggregates, a worker."""
        protocols: list[tuple[HostProtocol, Sequence[int]]] = [(rc, self._rc)]
        if self._aggregator is not None:
            protocols.append((self._aggregator.protocol, self._aggregator.workers))
        first_node = len(self._switches)
        rows = net.nodes[first_node:]
        rows[:, s.KIND] = s.HOST
        rows[:, s.FIRST_AGENT] = range(0, net.agents.shape[0], per_host)
        rows[:, s.AGENT_COUNT] = per_host
        for offset, (protocol, blocks) in enumerate(protocols):
            agents = net.agents[offset::per_host]
            agents[:, s.AGENT_AT] = blocks
            agents[:, s.AGENT_NODE] = range(first_node, len(net.nodes))
            agents[:, s.RECEIVE] = address_of(protocol.receive)
            agents[:, s.TRANSMIT] = address_of(protocol.transmit)
            agents[:, s.FIRE_TIMER] = address_of(protocol.fire_timer)
        self._agent = {int(row[s.AGENT_AT]): number for number, row in enumerate(net.agents)}

    def _connect(self, pairs: Iterable[tuple[int, int]]) -> None:
        """See to it that these ranks have a connection with each other."""
        for a, b in pairs:
            if b in self._qps[a]:
                continue
            for rank, peer in ((a, b), (b, a)):
                self._qps[rank][peer] = rc.add_qp(self.store, self._rc[rank])
                self._peers[rank].append(peer)
            for rank, peer in ((a, b), (b, a)):
                rc.connect_qp(
                    self.store,
                    self._rc[rank],
                    self._qps[rank][peer],
                    peer_qp=self._qps[peer][rank],
                    macs=(self._mac(rank), self._mac(peer)),
                    addresses=(self._ip(rank), self._ip(peer)),
                    source_port=FIRST_SOURCE_PORT + (rank * 131 + peer) % 0x4000,
                )

    def _mac(self, rank: int) -> int:
        return mac(self.graph, self._hosts[rank], 1)

    def _ip(self, rank: int) -> int:
        return ipv4(self.graph, self._hosts[rank])

    # Tensors

    def tensors(
        self, elements: int, dtype: torch.dtype = torch.float32, schedule: Schedule | None = None
    ) -> list[torch.Tensor]:
        """Return one uninitialised tensor per rank, in registered memory.

        `run` works on them in place. Earlier tensors of this network lose their memory to them.
        Naming the schedule makes room for what it needs besides.
        """
        item = torch.empty(0, dtype=dtype).element_size()
        size = -(-max(elements * item, 1) // 4096) * 4096
        total = len(self._hosts) * size
        if schedule is not None:
            for plan in plans(schedule, elements):
                total += self._staging(plan, elements, schedule.chunks, item) + 4096
        self.store.release_memory()
        self.store.register_memory(total)
        self.store.release_memory()
        addresses = [self.store.register_memory(size) for _ in self._hosts]
        return [self._view(address, elements, dtype) for address in addresses]

    def _staging(self, plan: Plan, elements: int, chunks: int, item: int) -> int:
        return staging_bytes(plan, elements, chunks, item, self.options.staging_depth)

    def _view(self, address: int, elements: int, dtype: torch.dtype) -> torch.Tensor:
        item = torch.empty(0, dtype=dtype).element_size()
        memory = self.store.arena.memory[address : address + elements * item]
        return torch.from_numpy(memory).view(dtype)

    def _address(self, tensor: torch.Tensor) -> int | None:
        """Where a tensor lies in registered memory, if it does."""
        memory = self.store.arena.memory
        offset = tensor.data_ptr() - memory.ctypes.data
        size = tensor.numel() * tensor.element_size()
        inside = offset >= 0 and offset + size <= memory.size and tensor.is_contiguous()
        return offset if inside else None

    @contextmanager
    def _registered(
        self, tensors: list[torch.Tensor], staging: list[int]
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Addresses of the tensors, copied there and back if they lie elsewhere, and of staging."""
        mark = self.store.memory_used
        stagings = [self.store.register_memory(size) for size in staging]
        sizes = [tensor.numel() * tensor.element_size() for tensor in tensors]
        if any(self._address(tensor) is None for tensor in tensors):
            addresses = [self.store.register_memory(max(size, 1)) for size in sizes]
            copies = [
                self._view(address, tensor.numel(), tensor.dtype)
                for address, tensor in zip(addresses, tensors, strict=True)
            ]
        else:
            addresses = [self._address(tensor) or 0 for tensor in tensors]
            copies = tensors
        for copy, tensor in zip(copies, tensors, strict=True):
            if copy is not tensor:
                copy.copy_(tensor)
        try:
            yield addresses, stagings
        finally:
            for copy, tensor in zip(copies, tensors, strict=True):
                if copy is not tensor:
                    tensor.copy_(copy)
            self.store.release_memory(mark)

    # Running

    def run(self, schedule: Schedule, tensors: list[torch.Tensor]) -> RunResult:
        """Run a collective on the ranks' tensors, in place, and say what happened.

        Raises:
            ConfigError: If the tensors don't fit the schedule or the network.
            BackendError: If nothing is left to happen and ranks are not done.
        """
        self._check_tensors(schedule, tensors)
        parts = plans(schedule, tensors[0].numel())
        self._connect(
            (rank, peer)
            for rank, plan in enumerate(parts)
            for peer in sorted({*plan.sends, *plan.receives})
        )
        item = tensors[0].element_size()
        staging = [self._staging(plan, tensors[0].numel(), schedule.chunks, item) for plan in parts]
        with self._registered(tensors, staging) as (addresses, stagings):
            dtype = tensors[0].dtype
            executors = [
                RankExecutor(
                    plan,
                    self._view(addresses[rank], tensors[0].numel(), dtype),
                    addresses[rank],
                    schedule.chunks,
                    staging=stagings[rank],
                    view=lambda address, count: self._view(address, count, dtype),
                    depth=self.options.staging_depth,
                )
                for rank, plan in enumerate(parts)
            ]
            return self._execute(executors, dtype)

    def _check_tensors(self, schedule: Schedule, tensors: list[torch.Tensor]) -> None:
        ranks = len(self._hosts)
        if schedule.ranks != ranks or len(tensors) != ranks:
            raise ConfigError(
                f"run: schedule and tensors must be for {ranks} ranks, "
                f"got {schedule.ranks} and {len(tensors)}"
            )
        if len({(tensor.shape, tensor.dtype) for tensor in tensors}) != 1 or tensors[0].dim() != 1:
            shapes = sorted({(tuple(t.shape), str(t.dtype)) for t in tensors})
            raise ConfigError(f"run: tensors must be alike and of one dimension, got {shapes}")
        if self._aggregator is None and any(isinstance(row, Aggregate) for row in schedule.rows):
            raise ConfigError(
                f"run: {schedule.algorithm!r} aggregates in the network; set Options.system"
            )

    def _execute(self, executors: list[RankExecutor], dtype: torch.dtype) -> RunResult:
        meter = Meter(self.store, self._network, self.links, len(self._hosts), self.now_ps)
        finish_ps = [self.now_ps] * len(executors)
        for rank, executor in enumerate(executors):
            executor.start()
            self._issue(rank, executor, dtype)
        left = {rank for rank, executor in enumerate(executors) if not executor.done}
        while left:
            reason = loop.run(self.store.arena, self._network, FOREVER_PS)
            if reason == loop.REPORTED:
                for rank in self._dispatch(executors, finish_ps):
                    self._issue(rank, executors[rank], dtype)
                    if executors[rank].done:
                        left.discard(rank)
            elif reason == loop.NEEDS_ROOM:
                self._grow()
            elif reason == loop.CAPTURED and self._capture is not None:
                self._capture.flush()
            else:
                raise BackendError(f"run: ranks {sorted(left)} wait, and nothing will happen")
        if self._capture is not None:
            self._capture.flush()
        return meter.result(finish_ps)

    def _dispatch(self, executors: list[RankExecutor], finish_ps: list[int]) -> list[int]:
        """Tell executors what agents have reported; return the ranks concerned, in order."""
        concerned: dict[int, None] = {}
        words = self.store.arena.words
        for report in take_completions(self.store.arena, self._ring):
            self.now_ps = report.time_ps
            rank = int(words[report.agent + agents.HOST])
            concerned[rank] = None
            self._tell(executors[rank], rank, report)
            is_send = report.agent == self._rc[rank] and report.kind == rc.SENT
            if not (is_send and executors[rank].receives):
                finish_ps[rank] = report.time_ps
        return list(concerned)

    def _tell(self, executor: RankExecutor, rank: int, report: Completion) -> None:
        if report.agent != self._rc[rank]:
            executor.aggregated(report.b)
        elif report.kind == rc.SENT:
            executor.sent(report.b)
        elif report.kind == rc.RECEIVED:
            executor.received(report.b)
        else:
            peer = self._peers[rank][report.a]
            raise BackendError(f"h{rank}: message from h{peer} overran its buffer, row {report.b}")

    def _issue(self, rank: int, executor: RankExecutor, dtype: torch.dtype) -> None:
        """Hand an executor's requests to the host's agents."""
        arena, at = self.store.arena, self._rc[rank]
        woken: dict[int, None] = {}
        for request in executor.take_requests():
            if isinstance(request, Receive):
                qp = self._qps[rank][request.peer]
                accepted = rc.post_receive(
                    arena, at, qp, request.address, request.size_bytes, request.tag
                )
            elif isinstance(request, Send):
                qp = self._qps[rank][request.peer]
                accepted = rc.post_send(
                    arena, at, qp, request.address, request.size_bytes, request.tag, self.now_ps
                )
                woken[at] = None
            else:
                assert isinstance(request, Reduce)
                assert self._aggregator is not None
                elements = request.size_bytes // torch.empty(0, dtype=dtype).element_size()
                self._aggregator.start(
                    arena, rank, request.address, elements, request.tag, dtype, self.now_ps
                )
                accepted = True
                woken[self._aggregator.workers[rank]] = None
            assert accepted, "an executor posts less than a ring holds"
        for agent in woken:
            loop.wake(arena, self._network, self._agent[agent], self.now_ps)

    def _grow(self) -> None:
        words = self.store.arena.words
        if words[POOL_FREE] < 2 * OUTBOX_ROWS:
            grow_pool(self.store, 2 * int(words[POOL_SIZE]))
        heap_at = int(self.store.arena.words[self._network + s.HEAP_AT])
        grow_heap(self.store, heap_at, 2 * int(self.store.arena.words[heap_at + CAPACITY]))

    def close(self) -> None:
        """Finish the pcaps."""
        if self._capture is not None:
            self._capture.close()

    # Measuring

    @property
    def links(self) -> list[Direction]:
        """Both directions of every link, in the order of their ports."""
        return [(node, neighbors(self.graph, node)[port]) for node, port in self._ports]


def _check(options: Options) -> None:
    """Refuse what no link or host can do."""
    for name in ("loss", "duplicate", "reorder"):
        if not 0 <= getattr(options, name) < 1:
            raise ConfigError(f"options: {name} must be in [0, 1), got {getattr(options, name)}")
    for name in ("mtu", "queue_bytes", "bins", "staging_depth"):
        if getattr(options, name) < 1:
            raise ConfigError(f"options: {name} must be >= 1, got {getattr(options, name)}")
    if options.mtu > MAX_MTU:
        raise ConfigError(f"options: mtu must be <= {MAX_MTU}, got {options.mtu}")
