"""A thread that works for an event loop, in slices: calls that have used little time go first."""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from ringleaf.errors import RingleafError
from ringleaf.switches.server.status import BatchError

WEIGHT = 50  # a client who has used 20 ms waits as if it had come a second later
MEMORY_S = 1.0  # what was used this long ago counts for 1/e


class Effort:
    """The time that has lately been used for one client."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used_s = 0.0
        self._then_s = clock()
        self.turn = asyncio.Lock()  # for answers of some MiB, one at a time

    @property
    def used_s(self) -> float:
        """Seconds, of which older ones count less."""
        return self._used_s * math.exp((self._then_s - self._clock()) / MEMORY_S)

    def spend(self, seconds: float) -> None:
        """Add seconds that have just been used."""
        self._used_s = self.used_s + seconds
        self._then_s = self._clock()


class ServerThread:
    """A thread that does jobs one after the other.

    The order is by when a job came, later for clients who have used much time. So short requests
    go ahead of long or many ones, and no job waits for ever. The thread does not keep the process
    alive.
    """

    def __init__(self, name: str) -> None:
        self._jobs: list[tuple[float, int, Callable[[], None] | None]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def do(self, step: Callable[[], Any], effort: Effort | None = None) -> Any:
        """Have the thread call `step`; return or raise what it does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        spent = effort or Effort()
        steps = [step]

        def job() -> None:
            if not steps:
                return  # nobody waits for it any more
            start_s = time.monotonic()
            outcome = _try(steps.pop())
            spent.spend(time.monotonic() - start_s)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, future, *outcome)

        self.submit(job, spent.used_s)
        try:
            return await future
        except asyncio.CancelledError:
            steps.clear()  # and with it the request, which may be large
            raise

    def submit(self, job: Callable[[], None], used_s: float = 0.0) -> None:
        """Have the thread call `job`, which must not raise, some time."""
        self._put(time.monotonic() + WEIGHT * used_s, job)

    def stop(self, timeout_s: float) -> None:
        """End the thread after the job that it is at, and wait for that, but not for long."""
        self._put(0.0, None)
        self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        """Return whether the thread still runs; it may be at a long job after `stop`."""
        return self._thread.is_alive()

    def _put(self, key: float, job: Callable[[], None] | None) -> None:
        with self._changed:
            heapq.heappush(self._jobs, (key, next(self._numbers), job))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs)
                _, _, job = heapq.heappop(self._jobs)
            if job is None:
                return
            job()
            del job  # it may hold a request


def _try(step: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Return what a step returns, and its error, if any.

    Errors that are the client's leave their traceback behind, whose frames hold its request.
    """
    try:
        return step(), None
    except (RingleafError, BatchError) as exc:
        exc.__cause__ = exc.__context__ = None
        return None, exc.with_traceback(None)
    except Exception as exc:  # noqa: BLE001  whoever awaits it gets it
        return None, exc


def _settle(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if future.done():
        return  # nobody waits for it any more
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
