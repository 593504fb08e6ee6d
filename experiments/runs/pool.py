"""Processes of this machine that do a sweep's runs.

Each is joined to this one by two sockets that have no name, so that nobody else can talk to it, and
nothing listens. A run's options go one way, its output or its error the other way, as pickles:
both ends are this user's own processes, and run the same code.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from ringleaf.core import compiling, plugins
from ringleaf.core.orphans import die_with_parent
from ringleaf.core.threads import ONE_THREAD
from ringleaf.errors import BackendError, RingleafError
from ringleaf.experiments.runs.isolated_run import Leavings, run_apart
from ringleaf.experiments.runs.loading import COMPILING, stage

_COMMAND = (sys.executable, "-P", "-m", "ringleaf.experiments.runs.pool")

MOST_DEATHS = 3
"""The number of processes that one run may cost."""

Cases = Mapping[str, Mapping[str, Any]]


class PoolWorker:
    """A process that does runs, from the sweep's side.

    It has a session of its own, so Ctrl-C interrupts only the sweep, which ends it.

    Args:
        above: The folder for its runs' folders.
    """

    def __init__(self, above: Path) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._process = subprocess.Popen(
                (*_COMMAND, str(theirs.fileno()), str(above)),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | ONE_THREAD,
                start_new_session=True,
            )
            self.line = Connection(ours.detach())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def end(self) -> str:
        """End the process, whatever it does; return how it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.line.close()
        status = self._process.wait()
        return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


class Pool:
    """Workers, of which the dead are replaced; as a context, all have ended at its end.

    Args:
        processes: Their number.
    """

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._deaths: Counter[str] = Counter()
        self._idle: list[PoolWorker] = []
        self._busy: dict[Connection, tuple[PoolWorker, str]] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="ringleaf-")
        self._idle = [self._hire() for _ in range(self._processes)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in [*self._idle, *(busy for busy, _ in self._busy.values())]:
            worker.end()
        self._folder.cleanup()

    def run(self, cases: Cases) -> Iterator[tuple[str, Leavings]]:
        """Have runs done; yield each one's name and output as it ends.

        Raises:
            BackendError: If one run has cost several processes.
            Exception: The error that a run raised.
        """
        waiting = deque(cases)
        while waiting or self._busy:
            while waiting and self._idle:
                name = waiting.popleft()
                worker = self._idle.pop()
                self._busy[worker.line] = worker, name
                with suppress(OSError):  # it has died: there is no answer, either
                    worker.line.send(dict(cases[name]))
            for line in cast(list[Connection], wait(list(self._busy))):
                worker, name = self._busy[line]
                answer = _answer(line)
                del self._busy[line]
                if answer is None:
                    self._bury(worker, name)
                    waiting.appendleft(name)
                    continue
                self._idle.append(worker)
                if isinstance(answer, BaseException):
                    raise answer
                yield name, answer

    def _hire(self) -> PoolWorker:
        return PoolWorker(Path(self._folder.name))

    def _bury(self, worker: PoolWorker, name: str) -> None:
        """Replace a worker that has died of a run, perhaps."""
        how = worker.end()
        self._deaths[name] += 1
        if self._deaths[name] == MOST_DEATHS:
            raise BackendError(
                f"run {name}: each of {MOST_DEATHS} processes that tried it died, got {how}; it "
                "may need more memory than there is"
            )
        self._idle.append(self._hire())


def run_here(cases: Cases, processes: int) -> Iterator[tuple[str, Leavings]]:
    """Perform runs by processes of this machine, as `Pool.run` does.

    What they compile is compiled in none of this process's functions, so it is said here.
    """
    with Pool(min(processes, len(cases))) as pool:
        if stage() is COMPILING:
            compiling.say_once()
        yield from pool.run(cases)


def _answer(line: Connection) -> Leavings | BaseException | None:
    """Return what a worker has sent; None if it has died."""
    try:
        return cast(Leavings | BaseException, line.recv())
    except (EOFError, OSError):
        return None


def serve(line: Connection, above: Path) -> None:
    """Do the runs that come, one after the other, until there are no more."""
    with suppress(EOFError, OSError):
        while True:
            line.send(_attempt(line.recv(), above))


def _attempt(options: Mapping[str, Any], above: Path) -> Leavings | BaseException:
    try:
        return run_apart(options, above)
    except RingleafError as error:
        return error
    except (Exception, SystemExit) as error:  # noqa: BLE001 - packages of others raise what they like
        if line := plugins.failure(error):
            return BackendError(line)
        return _portable(error, "".join(traceback.format_exception(error)))


def _portable(error: BaseException, text: str) -> BaseException:
    """Return an error that can be sent, with the lines of a worker that it comes from."""
    error.add_note(f"in a process of a sweep:\n{text}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever the error's own code raises
        return RuntimeError(f"in a process of a sweep:\n{text}")
    return error


if __name__ == "__main__":
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])), Path(sys.argv[2]))
