"""NICs that compute, joined to a network as an aggregation system is: by agents on its hosts.

Switches just forward. A network hands each rank's tensor to its NIC, and hears from it when the
rank's task is done, in virtual time and live; a schedule of one aggregate starts the task of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt

from ringleaf.collectives.schedule import Aggregate, Collective, Op, Schedule
from ringleaf.core.arena import Arena, Store
from ringleaf.core.tensors import Array, ElementType
from ringleaf.hosts.agent import HostAgent
from ringleaf.hosts.nic import agent
from ringleaf.hosts.nic.state import TASK, UDP_PORT, NicPlace, make_nic
from ringleaf.hosts.plan import PeerMessages
from ringleaf.ina.systems import FORWARD, JobRequest, System
from ringleaf.networks.endpoints.connections import ChannelFlow, Connections
from ringleaf.networks.groups import Group
from ringleaf.networks.options import NetworkOptions
from ringleaf.topologies.graph import index

MakeState = Callable[[Store, int], int]
"""Registers memory for the state of a rank's kernel; returns its address."""


def everybody(rank: int, ranks: int) -> list[int]:
    """Return all other ranks."""
    return [peer for peer in range(ranks) if peer != rank]


def neighbours(rank: int, ranks: int) -> list[int]:
    """Return the ranks before and after a rank."""
    return [peer for peer in (rank - 1, rank + 1) if 0 <= peer < ranks]


@dataclass(frozen=True, slots=True)
class Nics:
    """The NICs of a network, as a `ringleaf.ina.systems.Aggregator`.

    Attributes:
        agents: The NICs' agents, by rank.
        states: Addresses of their kernels' states, by rank.
        store: The store that holds them.
        window_bytes: The most bytes that a connection has in flight.
        entities: Nothing for switches.
        mover: Nothing, as it has no part of switches' memory.
        awaited: The reason why a rank waits that is not done, for people.
    """

    agents: Sequence[HostAgent]
    states: Sequence[int]
    store: Store
    window_bytes: int
    entities: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    mover: None = None
    awaited: str = "its NIC to do its task"

    def start(
        self,
        arena: Arena,
        rank: int,
        address: int,
        elements: int,
        tag: int,
        dtype: ElementType,
        now_ps: int,
        priority: int = 0,
    ) -> int:
        """Give a rank its task, on its memory; return the agent that reports `tag` when it is done.

        Elements, their type and the priority are not looked at.
        """
        del elements, dtype, priority
        at = self.agents[rank].block
        arena.words[at + TASK] = tag
        agent.give_task(arena, at, address, now_ps)
        return at

    def raise_priority(self, arena: Arena, rank: int, priority: int) -> None:
        """Do nothing: a NIC's messages have one priority."""


class NicSystem(System):
    """NICs with a kernel, to be joined to one network.

    Args:
        options: The options of that network.
        kernel: The kernel's handler.
        make_state: Makes the state of a rank's kernel.
        latency_ps: Time from a message's arrival to the kernel; 0 on a NIC.
        peers: Returns the ranks that a rank sends to, or gets messages from.
        room: The most messages that wait for a kernel at a time.
    """

    name = "nic"
    title = "SmartNICs"
    has_icrc = True

    def __init__(
        self,
        options: NetworkOptions,
        kernel: Callable[..., int],
        make_state: MakeState,
        *,
        latency_ps: int,
        peers: Callable[[int, int], Sequence[int]],
        room: int,
    ) -> None:
        self._options = options
        self._kernel, self._make_state = kernel, make_state
        self._latency_ps, self._peers, self._room = latency_ps, peers, room
        self._nics: Nics | None = None

    @property
    def joined(self) -> Nics:
        """The NICs; the network must have been made."""
        assert self._nics is not None
        return self._nics

    def program(self, lanes: int) -> str:
        """Return the name of the P4 program: switches forward."""
        del lanes
        return FORWARD

    def join(self, graph: nx.Graph[str], store: Store, request: JobRequest) -> Nics:
        """Make an agent for each host, connected with those of its peers.

        Raises:
            ConfigError: If the hosts don't fit the topology.
        """
        group = Group(request.number, tuple(request.members))
        connections = Connections(
            graph,
            store,
            self._options,
            [group],
            ring=request.ring,
            rtt_ps=request.rtt_ps,
            udp_port=UDP_PORT,
        )
        ranks = len(request.members)
        streams = [
            (rank, PeerMessages(peer, Op.COPY))
            for rank in range(ranks)
            for peer in self._peers(rank, ranks)
        ]
        connections.connect(0, 0, streams)
        states = [self._make_state(store, rank) for rank in range(ranks)]
        agents = []
        for rank, host in enumerate(map(index, request.members)):
            known = set(self._peers(rank, ranks))
            qps = [
                connections.qp(host, ChannelFlow(0, 0, PeerMessages(peer, Op.COPY)))
                if peer in known
                else -1
                for peer in range(ranks)
            ]
            at = make_nic(
                store,
                NicPlace(host, connections.agents[host], qps),
                self._kernel,
                ring=request.ring,
                state_at=states[rank],
                latency_ps=self._latency_ps,
                room=self._room,
            )
            agents.append(HostAgent(host, agent, at))
        self._nics = Nics(agents, states, store, connections.window_bytes)
        return self._nics

    def error_bound(self, parts: Array, lanes: int) -> npt.NDArray[np.float64]:
        """Return zeros: whoever gives NICs their tasks checks results exactly."""
        del lanes
        return np.zeros(parts.shape[1])


def one_task(ranks: int) -> Schedule:
    """Return the schedule that starts each rank's task, and ends when all are done."""
    rows = (Aggregate(0, tuple(range(ranks)), 0),)
    return Schedule(Collective.ALLREDUCE, "nic", ranks, 1, rows)
