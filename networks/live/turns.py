"""A lock between a loop that is always busy and threads that need it now and then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


class Turns:
    """A reentrant lock on which other threads have priority over the loop.

    Python's locks have no order: a loop that takes one again as soon as it has released it would
    starve other threads. Here the loop waits until no other thread waits.

    Args:
        ask: Makes the loop end its turn soon; called by threads that want the lock.
    """

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._lock = threading.RLock()
        self._loop: int | None = None  # the thread whose turn it is, while it is the loop's
        self._waiting = 0
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        if self._loop == threading.get_ident():
            self._lock.acquire()  # the loop has it already, and must not ask itself to end its turn
            return self
        with self._changed:
            self._waiting += 1
        self._ask()
        self._lock.acquire()
        with self._changed:
            self._waiting -= 1
            self._changed.notify_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock for one turn of the loop, once no other thread waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0)
        with self._lock:
            self._loop = threading.get_ident()
            try:
                yield
            finally:
                self._loop = None
