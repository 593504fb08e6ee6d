"""Workers and switches on links that lose, repeat and reorder, in virtual time.

The switches are the engine's, one packet at a time, so that a test can watch every packet.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
from hand_bounds import atp as atp_bounds
from hand_bounds import switchml as switchml_bounds
from start import start_tensor

from ringleaf.core.arena import Store
from ringleaf.core.headers import UDP_DST_AT
from ringleaf.core.packets import free_packet, make_pool, read_packet, write_packet
from ringleaf.core.units import FOREVER_PS
from ringleaf.hosts.agent import (
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    UDP_PORT_HIGH,
    UDP_PORT_LOW,
    HostAgent,
    make_ring,
    take_completions,
)
from ringleaf.ina.atp import control as atp_control
from ringleaf.ina.atp.job import make_agents
from ringleaf.ina.esa import control as esa_control
from ringleaf.ina.omnireduce_switch import wire as omnireduce_wire
from ringleaf.ina.omnireduce_switch import worker as omnireduce_worker
from ringleaf.ina.panama import control as panama_control
from ringleaf.ina.panama import worker as panama_worker
from ringleaf.ina.panama.pacing import make_paces
from ringleaf.ina.switchml import control as switchml_control
from ringleaf.ina.switchml import worker as switchml_worker
from ringleaf.ina.switchml.state import make_worker
from ringleaf.ina.tensors import FLOAT32, INT32
from ringleaf.ina.tern import wire as tern_wire
from ringleaf.ina.tern import worker as tern_worker
from ringleaf.ina.vote import control as vote_control
from ringleaf.ina.vote import wire as vote_wire
from ringleaf.ina.window_registry import find_window
from ringleaf.networks.forwarding import forwarding_entities
from ringleaf.switches.program import Program
from ringleaf.switches.switch import Switch
from ringleaf.topologies.addresses import ipv4, mac
from ringleaf.topologies.graph import (
    Link,
    add_host,
    add_switch,
    connect,
    hosts,
    index,
    neighbors,
    new_graph,
    port,
    switches,
)
from ringleaf.topologies.trees import aggregation_tree, aggregation_trees

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"
LINK = Link(rate_bps=10**11, delay_ps=1000)
DELAY_PS = 1000
MIN_TIMEOUT_PS = 20 * DELAY_PS

Fate = Callable[[str, str, bytes], list[int]]
"""(from, to, packet) -> how long each copy takes that arrives, in picoseconds."""


@dataclass(frozen=True)
class PanamaJob(switchml_control.SwitchmlJob):
    """A job with so many trees, which divide its slots."""

    trees: int = 1


@dataclass(frozen=True)
class A2tpJob(atp_control.AtpJob):
    """A job with ATP's packets and A2TP's program and windows."""


@dataclass(frozen=True)
class EsaJob(atp_control.AtpJob):
    """A job with ATP's packets and ESA's program and entities."""

    urgency: int = 0


@dataclass(frozen=True)
class OmniJob(switchml_control.SwitchmlJob):
    """A job of OmniReduce in switches."""


@dataclass(frozen=True)
class VotingJob(switchml_control.SwitchmlJob):
    """A job of votes; packets have 24 words of signs."""


@dataclass(frozen=True)
class TernJob(switchml_control.SwitchmlJob):
    """A job of ternary sums; packets have 48 words."""


Job = switchml_control.SwitchmlJob | atp_control.AtpJob
NAMES: dict[type[Job], str] = {
    atp_control.AtpJob: "atp",
    A2tpJob: "a2tp",
    EsaJob: "esa",
    PanamaJob: "panama",
    OmniJob: "omnireduce",
    VotingJob: "vote",
    TernJob: "tern",
}


@cache
def program(name: str) -> Program:
    return Program.load(BUILD / f"{name}.json")


def program_name(jobs: Sequence[Job]) -> str:
    """The program for all of these jobs' systems."""
    systems = {NAMES.get(type(job), "switchml") for job in jobs}
    return (
        min(systems)
        if systems & {"tern", "vote"}
        else f"{'-'.join(sorted(systems))}-{jobs[0].lanes}"
    )


def on_time(_src: str, _dst: str, _packet: bytes) -> list[int]:
    return [DELAY_PS]


def misbehaving(rng: Random, loss: float, twice: float, late: float) -> Fate:
    """Each copy is lost, repeated or late by up to 30 hops, with these probabilities."""

    def fate(_src: str, _dst: str, _packet: bytes) -> list[int]:
        copies = 1 + (rng.random() < twice)
        return [
            DELAY_PS * (rng.randint(1, 30) if rng.random() < late else 1)
            for _ in range(copies)
            if rng.random() >= loss
        ]

    return fate


def tree_of(levels: Sequence[int]) -> nx.Graph[str]:
    """A tree: the root has levels[0] children, those levels[1], ..., the last ones are hosts."""
    graph = new_graph("tree", ())
    tier = [add_switch(graph, 0, len(levels) - 1, "", (0, 0))]
    for depth, fan_out in enumerate(levels[:-1], 1):
        below = []
        for parent in tier:
            for _ in range(fan_out):
                number = len(switches(graph))
                below.append(add_switch(graph, number, len(levels) - 1 - depth, "", (0, 0)))
                connect(graph, parent, below[-1], LINK)
        tier = below
    for leaf in tier:
        for _ in range(levels[-1]):
            connect(graph, leaf, add_host(graph, len(hosts(graph)), (0, 0)), LINK)
    return graph


@dataclass(frozen=True)
class Run:
    """What became of one tensor of one job."""

    job: Job
    parts: np.ndarray  # (ranks, elements)
    results: np.ndarray

    def check(self) -> None:
        """Fail unless all ranks have the same, right sum."""
        count = self.parts.shape[1]
        for result in self.results:
            assert result.tobytes() == self.results[0].tobytes(), "ranks differ"
        if self.parts.dtype == np.int32:
            assert self.results[0].tolist() == self.parts.sum(axis=0, dtype=np.int32).tolist()
        elif count:
            error = np.abs(self.results[0] - self.parts.astype(np.float64).sum(axis=0))
            if isinstance(self.job, atp_control.AtpJob):
                bounds = atp_bounds(self.parts)
            else:
                bounds = switchml_bounds(self.parts, self.job.lanes)
            assert (error <= bounds).all(), f"off by {(error / bounds).max()} bounds"


@dataclass(frozen=True)
class Party:
    """One job on the network: what switches are told of it, and its agents, workers first."""

    entities: Mapping[str, Sequence[Any]]
    agents: Sequence[HostAgent]


def atp_party(
    graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int, window: str = "aimd"
) -> Party:
    agents = make_agents(
        graph,
        store,
        job,
        ring=ring,
        min_timeout_ps=MIN_TIMEOUT_PS,
        rtt_ps=4 * DELAY_PS,
        window=find_window(window),
        first_sequence=first,
    )
    return Party(atp_control.entities(graph, job), agents)


def esa_party(graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int) -> Party:
    agents = atp_party(graph, store, ring, job, first).agents
    return Party(esa_control.entities(graph, job), agents)


def switchml_party(
    graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int, **told: Any
) -> Party:
    """A job on all hosts; job j aggregates at its own root."""
    members = hosts(graph)
    workers = [
        make_worker(
            store,
            host=index(host),
            ring=ring,
            job=job.number,
            workers=len(members),
            slots=job.slots,
            lanes=job.lanes,
            mac=mac(graph, host, 1),
            address=ipv4(graph, host),
            min_timeout_ps=MIN_TIMEOUT_PS,
            first_round=first,
            **told,
        )
        for host in members
    ]
    agents = [HostAgent(number, switchml_worker, at) for number, at in enumerate(workers)]
    tree = aggregation_tree(graph, members, index=job.number)
    return Party(switchml_control.entities(graph, tree, job), agents)


def panama_party(graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int) -> Party:
    """A job on all hosts, over trees of different roots."""
    party = switchml_party(graph, store, ring, job, first, trees=job.trees)
    for agent in party.agents:
        make_paces(store, agent.block, find_window("dctcp"))
    agents = [HostAgent(agent.host, panama_worker, agent.block) for agent in party.agents]
    trees = aggregation_trees(graph, hosts(graph), most=job.trees)
    assert len(trees) == job.trees, "there are fewer roots"
    return Party(panama_control.entities(graph, trees, job), agents)


def omnireduce_party(graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int) -> Party:
    """A job on all hosts, whose switches leave zeros out."""
    told = {"first_port": omnireduce_wire.FIRST_UDP_PORT, "header_bytes": 14}
    party = switchml_party(graph, store, ring, job, first, **told)
    for agent in party.agents:
        omnireduce_worker.make_extras(store, agent.block)
    agents = [HostAgent(agent.host, omnireduce_worker, agent.block) for agent in party.agents]
    return Party(party.entities, agents)


def vote_party(graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int) -> Party:
    """A job on all hosts, whose switches count signs."""
    told = {"first_port": vote_wire.FIRST_UDP_PORT, "fraction_bits": 0, "elements": 768}
    party = switchml_party(graph, store, ring, job, first, **told)
    tree = aggregation_tree(graph, hosts(graph), index=job.number)
    return Party(vote_control.entities(graph, tree, job), party.agents)


def tern_party(graph: nx.Graph[str], store: Store, ring: int, job: Any, first: int) -> Party:
    """A job on all hosts, whose switches add ternary elements."""
    told = {"first_port": tern_wire.FIRST_UDP_PORT, "fraction_bits": 0, "elements": 768}
    party = switchml_party(graph, store, ring, job, first, header_bytes=14, **told)
    for agent in party.agents:
        tern_worker.make_extras(store, agent.block, len(party.agents))
    agents = [HostAgent(agent.host, tern_worker, agent.block) for agent in party.agents]
    return Party(party.entities, agents)


PARTIES: dict[str, Callable[..., Party]] = {
    "a2tp": partial(atp_party, window="a2tp"),
    "vote": vote_party,
    "tern": tern_party,
    "atp": atp_party,
    "esa": esa_party,
    "omnireduce": omnireduce_party,
    "panama": panama_party,
    "switchml": switchml_party,
}


class Network:
    """Jobs of one or several systems on a topology.

    `first` is the round, or sequence number, that they begin with; `told` is for SwitchML's
    workers.
    """

    def __init__(
        self,
        graph: nx.Graph[str],
        jobs: Sequence[Job],
        fate: Fate = on_time,
        first: int = 0,
        **told: Any,
    ) -> None:
        switchml_control.check_jobs(
            [job for job in jobs if isinstance(job, switchml_control.SwitchmlJob)]
        )
        self.graph = graph
        self.fate = fate
        self.jobs = jobs
        self.now_ps = self.order = 0
        self.hops: list[tuple[str, str, bytes]] = []
        self.events: list[tuple[int, int, str, str, bytes]] = []
        self.store = Store(1 << 20)
        code = program(program_name(jobs))
        make_pool(
            self.store,
            size=2048,
            head_bytes=code.head_bytes,
            field_count=code.field_count,
            lane_count=code.lane_count,
        )
        self.ring = make_ring(self.store, 1024)
        self.parties = [
            PARTIES[NAMES.get(type(job), "switchml")](
                graph, self.store, self.ring, job, first, **told
            )
            for job in jobs
        ]
        self.switches = self._make_switches(code)
        self.agents: dict[str, list[HostAgent]] = defaultdict(list)
        for party in self.parties:
            for agent in party.agents:
                self.agents[f"h{agent.host}"].append(agent)

    def _make_switches(self, code: Program) -> dict[str, Switch]:
        routes = forwarding_entities(self.graph)
        made = {}
        for name in switches(self.graph):
            ports = len(neighbors(self.graph, name))
            made[name] = Switch(code, self.store, ports, name)
            made[name].write(routes[name])
        for party in self.parties:
            for name, told in party.entities.items():
                made[name].write(told)
        return made

    @property
    def words(self) -> Any:
        return self.store.arena.words

    @property
    def retransmissions(self) -> int:
        blocks = [agent.block for party in self.parties for agent in party.agents]
        return sum(int(self.words[at + RETRANSMISSIONS]) for at in blocks)

    def send(self, src: str, dst: str, packet: bytes) -> None:
        self.hops.append((src, dst, packet))
        for delay_ps in self.fate(src, dst, packet):
            self.order += 1
            heapq.heappush(self.events, (self.now_ps + delay_ps, self.order, src, dst, packet))

    def arrive(self, src: str, dst: str, packet: bytes) -> None:
        if dst in self.switches:
            switch = self.switches[dst]
            in_port = port(self.graph, dst, src)
            for out_port, copy in switch.process(in_port, packet, self.now_ps):
                self.send(dst, neighbors(self.graph, dst)[out_port], copy)
            return
        row = write_packet(self.store.arena, packet)
        udp_port = int.from_bytes(packet[UDP_DST_AT : UDP_DST_AT + 2], "big")
        for agent in self.agents[dst]:
            at = agent.block
            if self.words[at + UDP_PORT_LOW] <= udp_port <= self.words[at + UDP_PORT_HIGH]:
                agent.protocol.receive(self.store.arena, at, row, self.now_ps)
        free_packet(self.store.arena, row)

    def transmit_all(self) -> None:
        for host, agents in self.agents.items():
            for agent in agents:
                while self.words[agent.block + READY]:
                    packet = agent.protocol.transmit(self.store.arena, agent.block, 0, self.now_ps)
                    if packet >= 0:
                        data = read_packet(self.store.arena, packet)
                        free_packet(self.store.arena, packet)
                        self.send(host, next(iter(self.graph.adj[host])), data)

    def run(self, reports: int, limit: int = 1_000_000) -> None:
        """Run until the workers have reported so often; fail if they never do."""
        agents = [agent for party in self.parties for agent in party.agents]
        for _ in range(limit):
            self.transmit_all()
            reports -= len(take_completions(self.store.arena, self.ring))
            if reports == 0:
                return
            timers = [int(self.words[agent.block + TIMER_AT_PS]) for agent in agents]
            timer_ps = min(timers)
            event_ps = self.events[0][0] if self.events else FOREVER_PS
            assert min(timer_ps, event_ps) < FOREVER_PS, "nothing is left to happen"
            if timer_ps < event_ps:
                self.now_ps = max(self.now_ps, timer_ps)
                due = agents[timers.index(timer_ps)]
                due.protocol.fire_timer(self.store.arena, due.block, 0, self.now_ps)
            else:
                self.now_ps, _, src, dst, packet = heapq.heappop(self.events)
                self.arrive(src, dst, packet)
        raise AssertionError("the workers do not come to an end")

    def settle(self) -> None:
        """Let everything arrive that is on its way; nobody may lack anything any more."""
        while self.events:
            self.transmit_all()
            self.now_ps, _, src, dst, packet = heapq.heappop(self.events)
            self.arrive(src, dst, packet)

    def reduce(self, *tensors: np.ndarray) -> list[Run]:
        """Sum one tensor per job, all at once; tensors are shaped (ranks, elements)."""
        return self._reduce(list(enumerate(tensors)))

    def stream(self, *tensors: np.ndarray) -> list[Run]:
        """Sum tensors of the first job, which its workers are given at once, in this order."""
        return self._reduce([(0, parts) for parts in tensors])

    def _reduce(self, given: Sequence[tuple[int, np.ndarray]]) -> list[Run]:
        places = [
            [self._start(job, rank, part) for rank, part in enumerate(parts)]
            for job, parts in given
        ]
        if places:
            self.run(sum(map(len, places)))
        memory = self.store.arena.memory
        runs = []
        for (job, parts), row in zip(given, places, strict=True):
            size = parts[0].nbytes
            results = [memory[at : at + size].view(parts.dtype) for at in row]
            runs.append(Run(self.jobs[job], parts, np.stack(results)))
        return runs

    def _start(self, job: int, rank: int, part: np.ndarray) -> int:
        """Have a worker sum this in place; return where."""
        place = self.store.register_memory(part.nbytes)
        arena = self.store.arena
        arena.memory[place : place + part.nbytes] = part.view(np.uint8)
        dtype = INT32 if part.dtype == np.int32 else FLOAT32
        worker: Any = self.parties[job].agents[rank]
        assert start_tensor(
            *(worker.protocol, arena, worker.block, place, part.size, dtype, 0, self.now_ps),
            getattr(self.jobs[job], "urgency", 0),
        )
        return place
