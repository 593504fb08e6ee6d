"""A collective on its way: between ranks' executors and their hosts' agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from hosts import agent as agents
from hosts import rc
from hosts.agent import Completion, take_completions
from hosts.rank import RankExecutor, Receive, Request, Send
from networks.hosts.endpoints import Endpoints
from networks.hosts.memory import item_bytes
from ringleaf.arena import Store
from ringleaf.errors import BackendError

Wake = Callable[[int, int], None]
"""`wake(agent, now_ps)`: look at an agent that has been given something to do."""


class Execution:
    """Drives executors: all of a network's, or one that lives with its host alone.

    Args:
        endpoints: The hosts.
        store: Theirs.
        executors: By rank.
        dtype: Of the tensors.
        wake: Has the network look at an agent.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        store: Store,
        executors: Mapping[int, RankExecutor],
        dtype: torch.dtype,
        wake: Wake,
    ) -> None:
        self._endpoints = endpoints
        self._store = store
        self._executors = executors
        self._dtype = dtype
        self._wake = wake
        self.finish_ps: dict[int, int] = {}
        self.left: set[int] = set()

    def start(self, now_ps: int) -> None:
        """Let all executors begin."""
        for rank, executor in self._executors.items():
            self.finish_ps[rank] = now_ps
            executor.start()
            self._issue(rank, now_ps)
        self.left = {rank for rank, executor in self._executors.items() if not executor.done}

    def dispatch(self) -> int | None:
        """Tell executors what agents have reported; return when, if they have."""
        concerned: dict[int, None] = {}
        arena, now_ps = self._store.arena, None
        for report in take_completions(arena, self._endpoints.ring):
            now_ps = report.time_ps
            rank = int(arena.words[report.agent + agents.HOST])
            concerned[rank] = None
            self._tell(rank, report)
        for rank in concerned:
            assert now_ps is not None
            self._issue(rank, now_ps)
            if self._executors[rank].done:
                self.left.discard(rank)
        return now_ps

    def _tell(self, rank: int, report: Completion) -> None:
        executor = self._executors[rank]
        connections = self._endpoints.connections
        if report.agent == connections.agents[rank] and report.kind == rc.SENT:
            executor.sent(report.b)
            if executor.receives:
                return  # a rank has its result when the last write is there
        elif report.agent != connections.agents[rank]:
            executor.aggregated(report.b)
        elif report.kind == rc.RECEIVED:
            executor.received(report.b, report.c)
        else:
            peer = connections.stream(rank, report.a).peer
            raise BackendError(f"h{rank}: too long a message from h{peer}, got row {report.b}")
        self.finish_ps[rank] = report.time_ps

    def _issue(self, rank: int, now_ps: int) -> None:
        """Hand an executor's requests to its host's agents."""
        woken = dict.fromkeys(
            self._post(rank, request, now_ps) for request in self._executors[rank].take_requests()
        )
        for at in woken:
            self._wake(at, now_ps)

    def _post(self, rank: int, request: Request, now_ps: int) -> int:
        """Give one request to the agent it is for; return the agent."""
        hosts, arena = self._endpoints, self._store.arena
        address, size = request.address, request.size_bytes
        at = hosts.connections.agents[rank]
        if isinstance(request, Receive):
            qp = hosts.connections.qp(rank, request.stream)
            accepted = rc.post_receive(arena, at, qp, address, size, request.tag)
        elif isinstance(request, Send):
            qp = hosts.connections.qp(rank, request.stream)
            accepted = rc.post_send(arena, at, qp, address, size, request.tag, now_ps)
        else:
            assert hosts.aggregator is not None
            elements = size // item_bytes(self._dtype)
            hosts.aggregator.start(arena, rank, address, elements, request.tag, self._dtype, now_ps)
            at, accepted = hosts.aggregator.workers[rank], True
        assert accepted, "an executor posts less than a ring holds"
        return at
