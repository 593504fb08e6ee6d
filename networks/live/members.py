"""Processes that are forked from this one, each with a socket to it, and end with it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from ringleaf.errors import BackendError, RingleafError

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MESSAGE_BYTES = 1 << 16
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15

_C = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class HostProcess:
    """A process, the end of its socket that is ours, and a descriptor that tells of its end."""

    name: str
    process: int
    control: socket.socket
    watch: int
    role: str  # for errors: its "agent"


class Members:
    """Forked processes; leaving the context kills those that are left."""

    def __init__(self) -> None:
        self._members: list[HostProcess] = []

    def __enter__(self) -> Self:
        gc.collect()
        gc.freeze()  # or children's collections would copy every page
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        gc.unfreeze()
        for member in self._members:
            member.control.close()
            with contextlib.suppress(ProcessLookupError):  # by descriptor: numbers are used again
                signal.pidfd_send_signal(member.watch, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(member.process, 0)
            os.close(member.watch)

    def fork(self, name: str, role: str, be: Callable[[socket.socket], None]) -> HostProcess:
        """Fork a process that calls `be` with its end of the socket, and ends."""
        parent = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # An exception of a signal's handler is lost in what Python does after a fork.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        process = os.fork()
        if not process:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
            ours.close()
            _live(name, be, theirs, parent)
        theirs.close()
        member = HostProcess(name, process, ours, os.pidfd_open(process), role)
        self._members.append(member)
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        return member


def _live(
    name: str, be: Callable[[socket.socket], None], control: socket.socket, parent: int
) -> None:
    """Be a child process until its end, and report the exception that ended it."""
    try:
        die_with(parent)
        _C.prctl(PR_SET_NAME, name.encode())  # for ps and the like
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.disable()
        be(control)
    except RingleafError as exc:
        say(control, {"error": str(exc)})
    except BaseException as exc:  # noqa: BLE001 - whoever forked this process raises it
        say(control, {"error": "".join(_traceback(exc))})
    finally:
        os._exit(0)


def _traceback(exc: BaseException) -> list[str]:
    import traceback

    return traceback.format_exception(exc)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    _C.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent has ended already


def say(control: socket.socket, message: dict[str, Any]) -> None:
    """Send a message."""
    control.send(json.dumps(message).encode())


def hear(member: HostProcess) -> dict[str, Any]:
    """Return a member's next message.

    Raises:
        BackendError: If it has ended, or has an error to report.
    """
    message = listen(member.control)
    if message is None:
        raise death(member)
    if "error" in message:
        raise BackendError(f"{member.name}: {message['error']}")
    return message


def listen(control: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None: the other end is closed."""
    try:
        text = control.recv(MESSAGE_BYTES)
    except OSError:
        text = b""
    if not text:
        return None
    message: dict[str, Any] = json.loads(text)
    return message


def death(member: HostProcess) -> BackendError:
    """Return an error that says how a process ended; wait for its end."""
    _, status = os.waitpid(member.process, 0)
    code = os.waitstatus_to_exitcode(status)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return BackendError(
        f"{member.name}: its {member.role} has ended in the middle of a run, got {how}"
    )
