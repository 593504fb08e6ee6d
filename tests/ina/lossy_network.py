"""Workers and switches on links that lose, repeat and reorder, in virtual time.

The switches are the engine's, one packet at a time, so that a test can watch every packet.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np

from hosts.agent import (
    READY,
    RETRANSMISSIONS,
    TIMER_AT_PS,
    make_ring,
    take_completions,
)
from ina.switchml.control import Job, check_jobs, entities
from ina.switchml.scaling import error_bounds
from ina.switchml.state import FLOAT32, INT32, make_worker
from ina.switchml.worker import fire_timer, receive, start_tensor, transmit
from ringleaf.arena import Store
from ringleaf.packets import free_packet, make_pool, read_packet, write_packet
from ringleaf.units import FOREVER_PS
from switches import Program, Switch
from switches.forwarding import forwarding_entities
from topologies.addresses import ipv4, mac
from topologies.graph import (
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
from topologies.trees import aggregation_tree

BUILD = Path(__file__).resolve().parents[2] / "p4" / "build"
LINK = Link(rate_bps=10**11, delay_ps=1000)
DELAY_PS = 1000
MIN_TIMEOUT_PS = 20 * DELAY_PS

Fate = Callable[[str, str, bytes], list[int]]
"""(from, to, packet) -> how long each copy takes that arrives, in picoseconds."""


@cache
def program(lanes: int) -> Program:
    return Program.load(BUILD / f"switchml-{lanes}.json")


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
            bounds = error_bounds(self.parts, self.job.lanes)
            assert (error <= bounds).all(), f"off by {(error / bounds).max()} bounds"


class Network:
    """Jobs on all hosts of a topology; job j aggregates at its own root."""

    def __init__(
        self,
        graph: nx.Graph[str],
        jobs: Sequence[Job],
        fate: Fate = on_time,
        first_round: int = 0,
    ) -> None:
        check_jobs(jobs)
        self.graph = graph
        self.fate = fate
        self.jobs = jobs
        self.now_ps = self.order = 0
        self.hops: list[tuple[str, str, bytes]] = []
        self.events: list[tuple[int, int, str, str, bytes]] = []
        self.store = Store(1 << 20)
        code = program(jobs[0].lanes)
        make_pool(
            self.store,
            size=2048,
            head_bytes=code.head_bytes,
            field_count=code.field_count,
            lane_count=code.lane_count,
        )
        self.ring = make_ring(self.store, 1024)
        self.switches = self._make_switches(code)
        self.workers = [
            [self._make_worker(job, host, first_round) for host in hosts(graph)] for job in jobs
        ]

    def _make_switches(self, code: Program) -> dict[str, Switch]:
        routes = forwarding_entities(self.graph)
        made = {}
        for name in switches(self.graph):
            ports = len(neighbors(self.graph, name))
            made[name] = Switch(code, self.store, ports, name)
            made[name].write(routes[name])
        for job in self.jobs:
            tree = aggregation_tree(self.graph, hosts(self.graph), index=job.number)
            for name, told in entities(self.graph, tree, job).items():
                made[name].write(told)
        return made

    def _make_worker(self, job: Job, host: str, first_round: int) -> int:
        return make_worker(
            self.store,
            host=index(host),
            ring=self.ring,
            job=job.number,
            workers=len(hosts(self.graph)),
            slots=job.slots,
            lanes=job.lanes,
            mac=mac(self.graph, host, 1),
            address=ipv4(self.graph, host),
            min_timeout_ps=MIN_TIMEOUT_PS,
            first_round=first_round,
        )

    @property
    def words(self) -> Any:
        return self.store.arena.words

    @property
    def retransmissions(self) -> int:
        return sum(int(self.words[at + RETRANSMISSIONS]) for ats in self.workers for at in ats)

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
        for ats in self.workers:  # a worker knows its job's packets
            receive(self.store.arena, ats[index(dst)], row, self.now_ps)
        free_packet(self.store.arena, row)

    def transmit_all(self) -> None:
        for ats in self.workers:
            for host, at in zip(hosts(self.graph), ats, strict=True):
                while self.words[at + READY]:
                    packet = transmit(self.store.arena, at, 0, self.now_ps)
                    if packet >= 0:
                        data = read_packet(self.store.arena, packet)
                        free_packet(self.store.arena, packet)
                        self.send(host, next(iter(self.graph.adj[host])), data)

    def run(self, reports: int, limit: int = 100_000) -> None:
        """Run until the workers have reported so often; fail if they never do."""
        timers = [at for ats in self.workers for at in ats]
        for _ in range(limit):
            self.transmit_all()
            reports -= len(take_completions(self.store.arena, self.ring))
            if reports == 0:
                return
            timer_ps, at = min((int(self.words[at + TIMER_AT_PS]), at) for at in timers)
            event_ps = self.events[0][0] if self.events else FOREVER_PS
            assert min(timer_ps, event_ps) < FOREVER_PS, "nothing is left to happen"
            if timer_ps < event_ps:
                self.now_ps = timer_ps
                fire_timer(self.store.arena, at, 0, self.now_ps)
            else:
                self.now_ps, _, src, dst, packet = heapq.heappop(self.events)
                self.arrive(src, dst, packet)
        raise AssertionError("the workers do not come to an end")

    def reduce(self, *tensors: np.ndarray) -> list[Run]:
        """Sum one tensor per job, all at once; tensors are shaped (ranks, elements)."""
        places = [
            [self._start(job, rank, part) for rank, part in enumerate(parts)]
            for job, parts in enumerate(tensors)
        ]
        self.run(sum(map(len, places)))
        memory = self.store.arena.memory
        runs = []
        for job, parts in enumerate(tensors):
            size = parts[0].nbytes
            results = [memory[at : at + size].view(parts.dtype) for at in places[job]]
            runs.append(Run(self.jobs[job], parts, np.stack(results)))
        return runs

    def _start(self, job: int, rank: int, part: np.ndarray) -> int:
        """Have a worker sum this in place; return where."""
        place = self.store.register_memory(part.nbytes)
        arena = self.store.arena
        arena.memory[place : place + part.nbytes] = part.view(np.uint8)
        dtype = INT32 if part.dtype == np.int32 else FLOAT32
        at = self.workers[job][rank]
        assert start_tensor(arena, at, place, place, part.size, dtype, 0, 0, self.now_ps)
        return place
