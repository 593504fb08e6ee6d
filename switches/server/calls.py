"""The open calls of a server: which of them are ended if there are too many, or too much memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

from grpc.aio import EOF  # type: ignore[import-untyped]

from ringleaf.errors import ConfigError
from ringleaf.switches.server.limits import ServerLimits
from ringleaf.switches.server.worker import Effort

MOST_ENDED = 4  # slow calls at a time
YOUNG_S = 0.1

BUSY = "server is busy, got more calls than it takes; this one waited longest for its client"
FULL = "server's memory is full, got more requests than it can hold"
SLOW = "client neither sent nor read for {:g} s; call again"


class RunningRpc:
    """An RPC on its way, in bytes.

    Args:
        calls: Those of the server.
        context: gRPC's.
    """

    def __init__(self, calls: ServerRpcs, context: Any) -> None:
        self._calls = calls
        self._context = context
        self._task = asyncio.current_task()
        self.effort = calls.effort(context.peer())
        self.began_s = 0.0
        self.reason: str | None = None  # why the server has ended it

    async def receive(self) -> bytes | None:
        """Return the client's next message; None if there is no more."""
        with self._calls.waiting(self):
            data = await self._context.read()
        return None if data is EOF else data

    async def request(self) -> bytes:
        """Return the client's only message.

        Raises:
            ConfigError: If there is none.
        """
        data = await self.receive()
        if data is None:
            raise ConfigError("request is missing, got the end of the call")
        return data

    async def send(self, data: bytes) -> None:
        """Send a message; return when the client has room for the next."""
        with self._calls.waiting(self):
            await self._context.write(data)

    def close(self) -> None:
        """Let go of the task, in whose exceptions a large request may be."""
        self._task = None

    def end(self, reason: str) -> None:
        """End it with RESOURCE_EXHAUSTED, whatever it waits for."""
        if self.reason is None and self._task is not None:
            self.reason = reason
            self._task.cancel()


class ServerRpcs:
    """The calls of one server.

    A call that comes when there are too many ends another: the one that has waited longest for
    its client, or, if none waits, one of the client who has used most time. So clients that are
    quick are served, however many others there are that do nothing.
    """

    def __init__(self, limits: ServerLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._efforts: WeakValueDictionary[str, Effort] = WeakValueDictionary()
        self._open: dict[RunningRpc, None] = {}
        self._waiting: dict[RunningRpc, float] = {}  # since when, longest first
        self._settled: dict[
            RunningRpc, Callable[[], int]
        ] = {}  # controllers' streams: how they matter

    def effort(self, peer: str) -> Effort:
        """Return what has been used for a connection, while it has calls."""
        return self._efforts.setdefault(peer, Effort())

    def enter(self, call: RunningRpc) -> None:
        """Take a new call, and end another if there are too many."""
        if len(self._open) >= self._limits.calls:
            slowest = next(iter(self._waiting), None)
            victim = slowest or max(self._open, key=lambda each: each.effort.used_s)
            self._end(victim, BUSY)
        call.began_s = self._clock()
        self._open[call] = None

    def leave(self, call: RunningRpc) -> None:
        """Forget a call that is over."""
        self._open.pop(call, None)
        self._settled.pop(call, None)

    def settle(self, call: RunningRpc, rank: Callable[[], int]) -> None:
        """Let a controller's stream stay for as long as it likes; those of low rank end first."""
        if call in self._open:
            self._settled[call] = rank
            del self._open[call]
            self._waiting.pop(call, None)

    @contextmanager
    def waiting(self, call: RunningRpc) -> Iterator[None]:
        """Mark a call as one that waits for its client."""
        if call not in self._open:
            yield
            return
        self._waiting[call] = self._clock()
        try:
            yield
        finally:
            self._waiting.pop(call, None)

    def end_slow(self) -> None:
        """End some calls whose clients have gone to sleep; not all at once, as they come again."""
        before = self._clock() - self._limits.patience_s
        for call, since in list(islice(self._waiting.items(), MOST_ENDED)):
            if since < before:
                self._end(call, SLOW.format(self._limits.patience_s))

    def relieve(self) -> None:
        """End some calls for their memory: an eighth of the old ones, or of streams.

        Calls that have just come, and streams of higher rank, are spared while there are others.
        """
        before = self._clock() - YOUNG_S
        old = [call for call in self._open if call.began_s < before] or list(self._open)
        victims = old or sorted(self._settled, key=lambda call: self._settled[call]())
        for call in victims[: (len(victims) + 7) // 8]:
            self._end(call, FULL)

    def _end(self, call: RunningRpc, reason: str) -> None:
        call.end(reason)
        self._waiting.pop(call, None)
        self.leave(call)
