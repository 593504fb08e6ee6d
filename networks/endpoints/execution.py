"""Execution of collectives: passes requests and reports between executors and hosts' agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import torch

from ringleaf.arena import Store
from ringleaf.errors import BackendError
from ringleaf.hosts import agent as agents
from ringleaf.hosts import rc
from ringleaf.hosts.agent import Completion, take_completions
from ringleaf.hosts.rank import RankExecutor, Receive, Request, Send
from ringleaf.networks.endpoints.connections import Flow
from ringleaf.networks.endpoints.journal import Journal
from ringleaf.networks.endpoints.memory import item_bytes
from ringleaf.networks.endpoints.processors import Processors
from ringleaf.topologies.graph import index
from ringleaf.units import FOREVER_PS

if TYPE_CHECKING:
    from ringleaf.networks.endpoints.endpoints import Endpoints

Wake = Callable[[int, int], None]
"""`wake(agent, now_ps)`: serve an agent that has been given something to do."""

CHANNEL_SHIFT = 32
"""Position of the channel in an aggregation's tag; the bits below it are the row."""


@dataclass(slots=True)
class Operation:
    """A collective that some nodes of a group run, each by its executor."""

    group: int
    channel: int
    ranks: int
    dtype: torch.dtype
    executors: Mapping[int, RankExecutor]  # by node; only those that run here
    priority: int = 0  # of its packets, 0 to 7
    rate_bps: int = 0  # of each host's queue pairs together; 0: as fast as possible
    finish_ps: dict[int, int] = field(default_factory=dict)  # by node: time of its result
    left: set[int] = field(default_factory=set)  # nodes that are not done


class Execution:
    """Drives operations: all of a network's, or only one host's part of them.

    Args:
        endpoints: The hosts.
        store: The store of the hosts.
        wake: Has the network serve an agent.
        overhead_ps: Time of a host's processor for each message that it sends or receives; a
            tensor given to an aggregation agent, and its sum, are such messages.
    """

    def __init__(
        self, endpoints: Endpoints, store: Store, wake: Wake, *, overhead_ps: int = 0
    ) -> None:
        self._endpoints = endpoints
        self._store = store
        self._wake = wake
        self._processors = Processors(overhead_ps) if overhead_ps else None
        self.journal: Journal | None = None  # of messages, if they are noted
        self._done: list[Operation] = []  # and not yet returned
        self._active: dict[tuple[int, int], Operation] = {}  # by group and channel
        self._hosts = [[index(host) for host in group.nodes] for group in endpoints.groups]

    def start(self, operation: Operation, now_ps: int) -> None:
        """Start an operation's executors."""
        place = operation.group, operation.channel
        assert place not in self._active, "one operation per channel"
        self._active[place] = operation
        for node, executor in operation.executors.items():
            operation.finish_ps[node] = now_ps
            self._endpoints.connections.prioritise(*place, node, operation.priority)
            self._endpoints.connections.pace(*place, node, executor.streams, operation.rate_bps)
            executor.start()
            self._issue(operation, node, now_ps)
        operation.left = {n for n, executor in operation.executors.items() if not executor.done}
        if not operation.left:
            del self._active[place]

    def dispatch(self) -> tuple[int | None, list[Operation]]:
        """Pass agents' reports to executors; return their time, if any, and operations now done."""
        concerned: dict[tuple[int, int, int], Operation] = {}
        now_ps = None
        for report in take_completions(self._store.arena, self._endpoints.ring):
            now_ps = report.time_ps
            if self._processors is not None and self._has_come(report):
                host = int(self._store.arena.words[report.agent + agents.HOST])
                self._processors.engage(host, now_ps, partial(self._take, report))
            else:
                operation, node = self._tell(report)
                concerned[operation.group, operation.channel, node] = operation
        for (_, _, node), operation in concerned.items():
            assert now_ps is not None
            self._go_on(operation, node, now_ps)
        return now_ps, self._take_done()

    @property
    def next_ps(self) -> int:
        """The time at which `act` has something to do."""
        return FOREVER_PS if self._processors is None else self._processors.next_ps

    def act(self, now_ps: int) -> list[Operation]:
        """Run the actions that processors complete by `now_ps`; return operations now done."""
        if self._processors is not None:
            self._processors.act(now_ps)
        return self._take_done()

    def _has_come(self, report: Completion) -> bool:
        """Return whether a message or a sum has come: reports of sent messages cost no time."""
        return report.kind != rc.SENT or self._endpoints.group_of(report.agent) is not None

    def _take(self, report: Completion, now_ps: int) -> None:
        """Handle a message at the time when its host's processor has completed it."""
        operation, node = self._tell(report._replace(time_ps=now_ps))
        self._go_on(operation, node, now_ps)

    def _go_on(self, operation: Operation, node: int, now_ps: int) -> None:
        """Issue a node's new requests after a report, and note whether its operation is done."""
        self._issue(operation, node, now_ps)
        if node in operation.left and operation.executors[node].done:
            operation.left.discard(node)
            if not operation.left:
                del self._active[operation.group, operation.channel]
                self._done.append(operation)

    def _take_done(self) -> list[Operation]:
        done, self._done = self._done, []
        return done

    def _tell(self, report: Completion) -> tuple[Operation, int]:
        """Pass a report on; return the operation and the node that it concerned."""
        host = int(self._store.arena.words[report.agent + agents.HOST])
        group = self._endpoints.group_of(report.agent)
        if group is None:
            flow = self._endpoints.connections.flow(host, report.a)
            operation = self._active[flow.group, flow.channel]
            node = self._endpoints.node_of(flow.group, host)
            self._tell_messages(operation, node, flow, report)
        else:
            operation = self._active[group, report.b >> CHANNEL_SHIFT]
            node = self._endpoints.node_of(group, host)
            row = report.b & ((1 << CHANNEL_SHIFT) - 1)
            operation.executors[node].aggregated(row)
            if self.journal is not None:
                self.journal.aggregated(node, row, report.time_ps)
            operation.finish_ps[node] = report.time_ps
        return operation, node

    def _tell_messages(
        self, operation: Operation, node: int, flow: Flow, report: Completion
    ) -> None:
        executor, peer = operation.executors[node], flow.stream.peer
        if report.kind == rc.SENT:
            executor.sent(report.b)
            if self.journal is not None:
                self.journal.sent(node, peer, report.b, report.time_ps)
            if executor.receives:
                return  # a rank has its result when the last write is there
        elif report.kind == rc.RECEIVED:
            executor.received(report.b, report.c)
            if self.journal is not None:
                self.journal.received(node, peer, report.b, report.time_ps)
        else:
            raise BackendError(
                f"node {node}: too long a message from node {peer}, got row {report.b}"
            )
        operation.finish_ps[node] = report.time_ps

    def _issue(self, operation: Operation, node: int, now_ps: int) -> None:
        """Hand an executor's requests to its host's agents."""
        woken: dict[int, None] = {}
        for request in operation.executors[node].take_requests():
            if self._processors is None or isinstance(request, Receive):
                woken[self._post(operation, node, request, now_ps)] = None
            else:
                host = self._hosts[operation.group][node]
                post = partial(self._post_and_wake, operation, node, request)
                self._processors.engage(host, now_ps, post)
        for at in woken:
            self._wake(at, now_ps)

    def _post_and_wake(
        self, operation: Operation, node: int, request: Request, now_ps: int
    ) -> None:
        self._wake(self._post(operation, node, request, now_ps), now_ps)

    def _post(self, operation: Operation, node: int, request: Request, now_ps: int) -> int:
        """Give one request to the agent it is for; return the agent."""
        endpoints, arena = self._endpoints, self._store.arena
        address, size = request.address, request.size_bytes
        if self.journal is not None and not isinstance(request, Receive):
            self.journal.post(node, request.tag, now_ps)
        if not isinstance(request, Receive | Send):
            tag = request.tag | operation.channel << CHANNEL_SHIFT
            elements = size // item_bytes(operation.dtype)
            return endpoints.aggregators[operation.group].start(
                arena, node, address, elements, tag, operation.dtype, now_ps, operation.priority
            )
        host = self._hosts[operation.group][node]
        at = endpoints.connections.agents[host]
        flow = Flow(operation.group, operation.channel, request.stream)
        qp = endpoints.connections.qp(host, flow)
        if isinstance(request, Receive):
            accepted = rc.post_receive(arena, at, qp, address, size, request.tag)
        else:
            accepted = rc.post_send(arena, at, qp, address, size, request.tag, now_ps)
        assert accepted, "an executor posts less than a ring holds"
        return at
