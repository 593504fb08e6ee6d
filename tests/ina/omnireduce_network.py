"""OmniReduce's hosts on a network that loses, repeats and reorders, in virtual time.

Switches only forward, so there are none: a packet goes to the host whose address it has.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

import networkx as nx
import numpy as np
from start import start_tensor

from ringleaf.core.arena import Store
from ringleaf.core.headers import IP_DST_AT, UDP_DST_AT
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
from ringleaf.ina.omnireduce import worker
from ringleaf.ina.omnireduce.job import make_agents
from ringleaf.ina.tensors import FLOAT32, INT32
from ringleaf.topologies.addresses import ipv4
from ringleaf.topologies.graph import Link, add_host, add_switch, connect, hosts, index, new_graph

DELAY_PS = 1000
MIN_TIMEOUT_PS = 20 * DELAY_PS

Fate = Callable[[bytes], list[int]]
"""Packet -> how long each copy takes that arrives, in picoseconds."""


def on_time(_packet: bytes) -> list[int]:
    return [DELAY_PS]


def misbehaving(rng: Random, loss: float, twice: float, late: float) -> Fate:
    """Each copy is lost, repeated or late by up to 30 hops, with these probabilities."""

    def fate(_packet: bytes) -> list[int]:
        copies = 1 + (rng.random() < twice)
        return [
            DELAY_PS * (rng.randint(1, 30) if rng.random() < late else 1)
            for _ in range(copies)
            if rng.random() >= loss
        ]

    return fate


def star(count: int) -> nx.Graph[str]:
    graph = new_graph("star", ())
    switch = add_switch(graph, 0, 0, "", (0, 0))
    for number in range(count):
        host = add_host(graph, number, (0, 0))
        connect(graph, switch, host, Link(rate_bps=10**11, delay_ps=1000))
    return graph


class Network:
    """One job: rank i on host i, aggregators on the last hosts, or with the workers."""

    def __init__(
        self,
        ranks: int,
        servers: int = 0,
        *,
        slots: int = 3,
        lanes: int = 64,
        fate: Fate = on_time,
        first_round: int = 0,
    ) -> None:
        graph = star(ranks + servers)
        names = hosts(graph)
        self.ranks, self.fate = ranks, fate
        self.now_ps = self.order = 0
        self.packets: list[bytes] = []
        self.events: list[tuple[int, int, int, bytes]] = []
        self.store = Store(1 << 20)
        make_pool(self.store, size=64, head_bytes=1280, field_count=0, lane_count=0)
        self.ring = make_ring(self.store, 1024)
        self.agents = make_agents(
            graph,
            self.store,
            number=1,
            members=names[:ranks],
            places=names[ranks:] or names,
            ring=self.ring,
            lanes=lanes,
            slots=slots,
            min_timeout_ps=MIN_TIMEOUT_PS,
            first_round=first_round,
        )
        self._host = {ipv4(graph, name).to_bytes(4, "big"): index(name) for name in names}

    @property
    def words(self) -> Any:
        return self.store.arena.words

    @property
    def retransmissions(self) -> int:
        return sum(int(self.words[agent.block + RETRANSMISSIONS]) for agent in self.agents)

    def _transmit_all(self) -> None:
        arena = self.store.arena
        for agent in self.agents:
            while self.words[agent.block + READY]:
                packet = agent.protocol.transmit(arena, agent.block, 0, self.now_ps)
                if packet >= 0:
                    self.send(read_packet(arena, packet))
                    free_packet(arena, packet)

    def send(self, packet: bytes) -> None:
        self.packets.append(packet)
        for delay_ps in self.fate(packet):
            self.order += 1
            to = self._host[packet[IP_DST_AT : IP_DST_AT + 4]]
            heapq.heappush(self.events, (self.now_ps + delay_ps, self.order, to, packet))

    def _agent(self, host: int, packet: bytes) -> HostAgent:
        port = int.from_bytes(packet[UDP_DST_AT : UDP_DST_AT + 2], "big")
        (agent,) = (
            agent
            for agent in self.agents
            if agent.host == host
            and self.words[agent.block + UDP_PORT_LOW] <= port
            and port <= self.words[agent.block + UDP_PORT_HIGH]
        )
        return agent

    def deliver(self, host: int, packet: bytes) -> None:
        agent = self._agent(host, packet)
        row = write_packet(self.store.arena, packet)
        agent.protocol.receive(self.store.arena, agent.block, row, self.now_ps)
        free_packet(self.store.arena, row)

    def run(self, reports: int, limit: int = 200_000) -> None:
        """Run until workers have reported so often; fail if they never do."""
        for _ in range(limit):
            self._transmit_all()
            reports -= len(take_completions(self.store.arena, self.ring))
            if reports == 0:
                return
            blocks = [
                (int(self.words[a.block + TIMER_AT_PS]), n) for n, a in enumerate(self.agents)
            ]
            timer_ps, number = min(blocks)
            event_ps = self.events[0][0] if self.events else FOREVER_PS
            assert min(timer_ps, event_ps) < FOREVER_PS, "nothing is left to happen"
            if timer_ps < event_ps:
                self.now_ps = max(self.now_ps, timer_ps)
                agent = self.agents[number]
                agent.protocol.fire_timer(self.store.arena, agent.block, 0, self.now_ps)
            else:
                self.now_ps, _, host, packet = heapq.heappop(self.events)
                self.deliver(host, packet)
        raise AssertionError("the workers do not come to an end")

    def reduce(self, *tensors: np.ndarray) -> list[np.ndarray]:
        """Sum tensors, shaped (ranks, elements), given one after the other; return the results."""
        mark = self.store.memory_used
        places = [[self._start(rank, part) for rank, part in enumerate(t)] for t in tensors]
        self.run(sum(map(len, places)))
        results = [
            np.stack([self._read(at, parts[0].nbytes, parts.dtype) for at in row])
            for row, parts in zip(places, tensors, strict=True)
        ]
        self.store.release_memory(mark)
        return results

    def _read(self, at: int, size: int, dtype: np.dtype[Any]) -> np.ndarray:
        values: np.ndarray = self.store.arena.memory[at : at + size].view(dtype).copy()
        return values

    def _start(self, rank: int, part: np.ndarray) -> int:
        place = self.store.register_memory(part.nbytes)
        arena = self.store.arena
        arena.memory[place : place + part.nbytes] = part.view(np.uint8)
        dtype = INT32 if part.dtype == np.int32 else FLOAT32
        at = self.agents[rank].block
        assert start_tensor(worker, arena, at, place, part.size, dtype, rank, self.now_ps)
        return place


def in_order(parts: np.ndarray) -> np.ndarray:
    """The sum as it must be, to the bit: rank after rank."""
    total: np.ndarray = parts[0].copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total += part
    return total
