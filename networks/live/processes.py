"""Child processes: they end with us, can be waited for, and can be identified later.

A process id alone may belong to another process by the time it is used; together with the time at
which the process was started it is unique.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ringleaf.core.interrupts import EndedBySignal
from ringleaf.core.orphans import die_with_parent
from ringleaf.errors import BackendError

Identity = tuple[int, int]
"""A process: its id, and when it was started (in clock ticks since the machine was)."""

NICENESS = -15
AUTOGROUP = Path("/proc/self/autogroup")
STOP_TIMEOUT_S = 10.0
LAST_LINES = 5  # of a log, shown in the error when its process has ended

_STATE, _START = 0, 19  # fields of /proc/PID/stat after the name, see proc(5)


def hurry() -> None:
    """Have the kernel run this process, and its future threads, before ordinary ones.

    Packets that wait for the processor look like a slow network. Where sessions share it (sched(7),
    "The autogroup feature"), niceness counts only within one: so it gets one of its own.
    """
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    with contextlib.suppress(PermissionError):  # it leads a group, as if started by a terminal
        os.setsid()
    if os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):  # not root, or a kernel without autogroups
            AUTOGROUP.write_text(str(NICENESS))


@contextlib.contextmanager
def ended_like_interrupts() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the code within as Ctrl-C does, so that it can clean up.

    Only the main thread may do that; in other threads nothing changes.
    """

    def interrupt(number: int, _frame: object) -> None:
        raise EndedBySignal(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, interrupt) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def identify(pid: int) -> Identity:
    """Return a running process's identity.

    Raises:
        OSError: If there is none.
    """
    return pid, int(_status(pid)[_START])


def is_running(identity: Identity) -> bool:
    """Return whether this very process is running, and is not a zombie."""
    pid, start = identity
    try:
        fields = _status(pid)
    except OSError:
        return False
    return int(fields[_START]) == start and fields[_STATE] not in "ZX"


def _status(pid: int) -> list[str]:
    text = Path(f"/proc/{pid}/stat").read_text()
    return text.rpartition(")")[2].split()  # the name before it may hold any characters


def kill(identity: Identity, number: int = signal.SIGKILL) -> bool:
    """Send a signal to this process, and await its end after SIGKILL; return whether it existed."""
    try:
        descriptor = os.pidfd_open(identity[0])
    except OSError:
        return False
    try:
        if not is_running(identity):  # the descriptor keeps to the process, so this can't age
            return False
        signal.pidfd_send_signal(descriptor, number)
        if number == signal.SIGKILL:
            select.select([descriptor], [], [], STOP_TIMEOUT_S)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


class Child:
    """A child process, in a session of its own, so that Ctrl-C reaches us and not the child.

    Args:
        name: For errors.
        command: Program and arguments.
        log: A file for its output.
        farewell: The signal that it gets when we have ended.
        urgent: Whether the kernel runs it before ordinary processes.
        umask: The rights that files lack that it makes; -1: as for files of ours.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        farewell: int = signal.SIGKILL,
        urgent: bool = False,
        umask: int = -1,
    ) -> None:
        def prepare() -> None:
            die_with_parent(number=farewell)
            if urgent:
                hurry()

        self.name = name
        self.log = log
        with log.open("ab") as file:
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    start_new_session=True,
                    preexec_fn=prepare,
                    umask=umask,
                )
            except OSError as exc:
                raise BackendError(f"{name}: does not start, got {exc}") from exc
        self.descriptor = os.pidfd_open(self._process.pid)
        self.identity = identify(self._process.pid)

    @property
    def pid(self) -> int:
        """Return the process id, which belongs to the child until it has been waited for."""
        return self._process.pid

    def check(self, patience_s: float = 0.0) -> None:
        """Check that it has not ended, and does not end within some time.

        Raises:
            BackendError: If it has ended, with the last lines of its log.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        status = self._process.poll()
        if status is not None:
            how = f"signal {-status}" if status < 0 else f"status {status}"
            raise BackendError(f"{self.name}: has ended, got {how}; {self._last_words()}")

    def cpu_s(self) -> float:
        """Return the processor time used so far in seconds; 0.0 once it has ended."""
        with contextlib.suppress(OSError):
            # Fields 14 and 15 of proc(5), utime and stime, in clock ticks; the list begins at field
            # 3.
            user, system = _status(self.pid)[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        return 0.0

    def stop(self) -> None:
        """Stop it, by force if need be, and wait until it has ended."""
        if self.descriptor < 0:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self.descriptor)
        self.descriptor = -1

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return "\n".join([f"see {self.log}", *(f"  {line}" for line in lines)])
