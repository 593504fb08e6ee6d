"""A rank's link to the fabric: its clock, its calls under way, and its waits."""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol

from ringleaf.core.tensors import Array
from ringleaf.core.units import FOREVER_PS, PS_PER_US
from ringleaf.errors import BackendError
from ringleaf.experiments.workloads.train import wire
from ringleaf.experiments.workloads.train.calls import CollectiveCall
from ringleaf.experiments.workloads.train.clock import RankClock

POLL_PS = PS_PER_US
"""The time that a look at a call that is not over takes, so that a rank that goes on looking gets
on."""

LEAST_BUFFER = 4096

Finish = Callable[[int, int], None]
"""Called when a call is over, with its results in its buffer: of a message the sender, and the time
of the end."""


class Defers(Protocol):
    """The streams of a rank, as far as calls and waits ask for them."""

    def defer(self, work: Any) -> bool:
        """Take a wait for a work, if a stream waits, and the rank does not."""

    def time_for(self, group: str, tensors: Iterable[Any]) -> int:
        """Return the time at which a call on these tensors is made, when their data are there."""


class FabricError(BackendError, RuntimeError):
    """The fabric has ended the run; the message says why.

    Attributes:
        is_elsewhere: Whether the reason is another rank or the run's own process, which says it.
    """

    is_elsewhere = False


class RankConnection:
    """A connection to the fabric.

    Calls may come from any thread, one at a time. What a call's end causes is done by the thread
    that waits meanwhile.

    Args:
        folder: The fabric's folder.
        rank: This rank.
        ranks: The number of ranks.
    """

    def __init__(self, folder: Path, rank: int, ranks: int) -> None:
        self.rank = rank
        self.clock = RankClock()
        self.exposed_ps = 0  # spent in waits
        self.settled_task = -1  # of autograd, at whose end futures are waited for
        self.on_wait: Callable[[int, int, list[str]], None] = lambda start, end, calls: None
        self.streams: Defers | None = None
        self._failure = ""
        self._socket = self._connect(folder)
        self._unpacker = wire.Unpacker()
        self._buffers = wire.SharedBuffers(folder)
        self._free: dict[int, list[int]] = {}  # buffers by size
        self._made = 0
        self._calls = 0
        self._open: dict[int, Finish] = {}
        self._over: dict[int, tuple[int, int]] = {}  # of open calls that are: end, sender
        self._names: dict[int, str] = {}
        self._watched: set[int] = set()
        self._sending = threading.Lock()
        self._waiting = threading.RLock()
        self._went_ps: int | None = None
        self._say([wire.HELLO, rank, ranks])
        self.settings = self._await_welcome()
        atexit.register(self.end)

    def _await_welcome(self) -> dict[str, Any]:
        while True:
            for name, *rest in self._hear():
                if name == wire.ABORT:
                    self._fail(*rest)
                if name == wire.WELCOME:
                    settings: dict[str, Any] = rest[0]
                    return settings

    def join(self, group: str, members: Iterable[int]) -> None:
        """Tell the fabric of a process group."""
        self._say([wire.JOIN, group, list(members)])

    def buffer(self, size_bytes: int) -> tuple[int, Array]:
        """Return the number and the bytes of a buffer of at least this size."""
        size = max(1 << max(size_bytes - 1, 0).bit_length(), LEAST_BUFFER)
        free = self._free.setdefault(size, [])
        if free:
            number = free.pop()
            return number, self._buffers.buffer(self.rank, number)
        self._made += 1
        return self._made, self._buffers.make(self.rank, self._made, size)

    def give(self, number: int) -> None:
        """Take a buffer back."""
        self._free[self._buffers.buffer(self.rank, number).size].append(number)

    def call(
        self,
        group: str,
        call: CollectiveCall,
        buffer: int,
        finish: Finish,
        at_ps: int | None = None,
    ) -> int:
        """Make a call at a time, by default now; return its number.

        `finish` is called when it is over.
        """
        number = self._calls
        self._calls += 1
        self._open[number] = finish
        self._names[number] = str(call)
        now_ps = self.clock.now_ps
        made_ps = now_ps if at_ps is None else at_ps
        self._say([wire.CALL, number, group, made_ps, now_ps, buffer, call.plain()])
        return number

    def watch(self, number: int) -> None:
        """Have waits for other calls look after this one, too, as something follows from its end.

        So it happens at its virtual time, and not when somebody asks for it.
        """
        if number in self._open:
            self._watched.add(number)

    @property
    def watched(self) -> set[int]:
        """The calls under way that are watched."""
        return self._watched & self._open.keys() - self._over.keys()

    @property
    def calls_under_way(self) -> list[int]:
        """The calls that are not known to be over."""
        return list(self._open)

    def is_open(self, number: int) -> bool:
        """Return whether a call is not known to be over."""
        return number in self._open

    def wait(self, numbers: Iterable[int], *, quietly: bool = False) -> None:
        """Wait until calls are over; quietly: the process does, and the rank's clock stands.

        Raises:
            FabricError: If the fabric has ended the run.
        """
        awaited = set(numbers)
        while left := awaited & self._open.keys():
            if over := left & self._over.keys():
                self._finish(min(over))
            else:
                self._block(sorted(left), sorted(self.watched - left), quietly=quietly)

    def reach(self, time_ps: int, names: Sequence[str] = ()) -> None:
        """Wait for a time, as the end of calls that the process has waited for; note the wait."""
        start_ps = self.clock.now_ps
        self.clock.reach(time_ps)
        end_ps = self.clock.now_ps
        if end_ps > start_ps:
            self.exposed_ps += end_ps - start_ps
            self.on_wait(start_ps, end_ps, list(names))

    def wait_watched(self, *, is_soft: bool = False) -> None:
        """Wait until a call that is watched is over; do nothing if there is none."""
        if (numbers := sorted(self.watched)) and self._waiting.acquire(blocking=False):
            try:
                self._block([], numbers, is_soft=is_soft)
            finally:
                self._waiting.release()

    def look(self, number: int) -> bool:
        """Return whether a call is over now; a look that finds it is not takes some time."""
        if self.is_open(number) and number not in self._over:
            self.clock.advance(POLL_PS)
            self._block([], [], until_ps=self.clock.now_ps)
        self._finish(number)
        return not self.is_open(number)

    def note(self, *what: Any) -> None:
        """Tell the fabric something for its report."""
        self._say([wire.NOTE, *what])

    def say_alive(self) -> None:
        """Tell the fabric that this rank works."""
        self._say([wire.ALIVE])

    def end(self) -> None:
        """Say goodbye."""
        if self._failure or self._socket.fileno() < 0:
            return
        with suppress(OSError, FabricError):
            self._say([wire.END, self.clock.now_ps])
        self._socket.close()

    def abandon(self) -> None:
        """Leave without a word, as after an exception that nobody has caught."""
        self._failure = self._failure or "it has failed"
        self._socket.close()

    def _block(
        self,
        awaited: list[int],
        watched: list[int],
        *,
        until_ps: int = FOREVER_PS,
        is_soft: bool = False,
        quietly: bool = False,
    ) -> None:
        """Tell the fabric of a wait, and hear it until the wait is over."""
        with self._waiting:
            self._went_ps = None
            now_ps = self.clock.now_ps
            names = [self._names.get(each, "") for each in awaited or watched]
            self._say([wire.WAIT, awaited, watched, now_ps, until_ps, is_soft, quietly])
            ended: list[int] = []
            while self._went_ps is None:
                for message in self._hear():
                    self._take(message, ended)
            if not quietly:
                self.reach(self._went_ps, names)
        for number in ended:
            self._finish(number)

    def _finish(self, number: int) -> None:
        """Do what a call's end causes, once; it may make calls, and wait for this or others."""
        if (over := self._over.pop(number, None)) is not None:
            end_ps, source = over
            self._watched.discard(number)
            self._names.pop(number)
            self._open.pop(number)(source, end_ps)

    def _take(self, message: wire.Message, ended: list[int]) -> None:
        name, *rest = message
        if name == wire.DONE:
            number, end_ps, source = rest
            self._over[number] = end_ps, source
            ended.append(number)
        elif name == wire.GO:
            self._went_ps = rest[0]
        elif name == wire.ABORT:
            self._fail(*rest)

    def _connect(self, folder: Path) -> socket.socket:
        try:
            return wire.connect(folder)
        except OSError:
            self._fail(f"there is no fabric at {folder}, or it has ended", True)

    def _hear(self) -> list[wire.Message]:
        try:
            data = self._socket.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self._fail("the fabric has ended", True)
        return self._unpacker.feed(data)

    def _fail(self, why: str, is_elsewhere: bool = False) -> NoReturn:
        self._failure = why
        error = FabricError(f"rank {self.rank}: {why}")
        error.is_elsewhere = is_elsewhere
        raise error

    def _say(self, message: wire.Message) -> None:
        if self._failure:
            raise FabricError(f"rank {self.rank}: {self._failure}")
        try:
            with self._sending:
                self._socket.sendall(wire.pack(message))
        except OSError:
            self._fail(*self._last_words())

    def _last_words(self) -> tuple[str, bool]:
        """Return what the fabric has said before it has closed the connection."""
        try:
            for message in self._unpacker.feed(self._socket.recv(1 << 20)):
                if message[0] == wire.ABORT:
                    return str(message[1]), bool(message[2])
        except OSError:
            pass
        return "the fabric has ended", True
