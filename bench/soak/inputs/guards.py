"""Guards against hostile input, which must not write elsewhere, run commands or exhaust memory."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class BreachError(BaseException):
    """A breach that no input may cause; no `except Exception` hides it."""


class AuditWatch:
    """An audit hook (PEP 578) that notes and stops all that input must not do.

    Files may be written only in `folders`. An audit hook can't be removed, so there is one per
    process, and it is only active while input is being fed.
    """

    def __init__(self, folders: list[Path]) -> None:
        self._folders = [str(folder.resolve()) for folder in folders]
        self._on = False
        self.breaches: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def on(self) -> Iterator[None]:
        self.breaches.clear()
        self._on = True
        try:
            yield
        finally:
            self._on = False

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._on or event not in _EVENTS:
            return
        what = _EVENTS[event](self, arguments)
        if what:
            self.breaches.append(what)
            raise BreachError(what)

    def _opened(self, arguments: tuple[Any, ...]) -> str | None:
        path, mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) if flags else False
        writes = writes or (isinstance(mode, str) and any(letter in mode for letter in "wax+"))
        return self._written((path,)) if writes else None

    def _written(self, arguments: tuple[Any, ...]) -> str | None:
        path = arguments[0]
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None  # a file that is open already
        place = os.path.realpath(os.fsdecode(path))
        if place == os.devnull or any(place.startswith(f"{own}/") for own in self._folders):
            return None
        return f"writes to {place}"

    def _started(self, arguments: tuple[Any, ...]) -> str | None:
        return f"runs a command: {arguments!r:.200}"

    def _connected(self, arguments: tuple[Any, ...]) -> str | None:
        return f"opens a connection: {arguments!r:.200}"


_EVENTS: dict[str, Callable[[AuditWatch, tuple[Any, ...]], str | None]] = {
    "open": AuditWatch._opened,
    **dict.fromkeys(
        ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink"), AuditWatch._written
    ),
    **dict.fromkeys(("os.chmod", "os.truncate", "shutil.rmtree"), AuditWatch._written),
    **dict.fromkeys(("os.system", "os.exec", "os.posix_spawn", "os.spawn"), AuditWatch._started),
    **dict.fromkeys(
        ("os.fork", "os.forkpty", "subprocess.Popen", "pty.spawn"), AuditWatch._started
    ),
    **dict.fromkeys(("socket.connect", "socket.bind"), AuditWatch._connected),
}


class SlowError(BaseException):
    """An input that took too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise SlowError in a block that takes more processor time, however busy the processor is."""

    def ring(*_: object) -> None:
        raise SlowError(f"took more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(more_bytes: int) -> None:
    """Limit the memory that this process may take beyond its current, and the files it writes."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more_bytes, now + more_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (more_bytes, more_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
