"""A process that controls switches in the middle of a live run.

gRPC's threads don't survive a fork, and the process that runs a live network forks. So what writes
to switches while packets are under way is a process of its own. It sends messages of JSON over a
socket: {"ready"}, {"settled"}, {"error"}; it receives {"start"} and {"settle"}.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from ringleaf.networks.live.members import HostProcess, Members, hear, listen, say
from ringleaf.networks.live.processes import hurry

NS_PER_S = 10**9


class ControlProcess:
    """The process, from the side of the one that runs the network; a context for one run.

    Args:
        name: What it sees to, for errors.
        be: Is the process: it gets ready, says so, waits for the start, and ends when the run is
            over, with all as it was before.

    Raises:
        BackendError: If a switch refuses what it writes, or the process ends.
    """

    def __init__(self, name: str, be: Callable[[socket.socket], None]) -> None:
        self._name, self._be = name, be
        self._stack = ExitStack()
        self._member: HostProcess

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            members = stack.enter_context(Members())
            self._member = members.fork(self._name, "process", self._hurried)
            self._await("ready")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._stack:
            if error is None:
                say(self._member.control, {"settle": True})
                while "settled" not in hear(self._member):
                    pass  # it has asked for something, and the run was over

    def _hurried(self, control: socket.socket) -> None:
        """Be the process, at the priority of the hosts and switches that it keeps up with."""
        hurry()
        self._be(control)

    @property
    def watched(self) -> dict[int, str]:
        """The descriptor that becomes readable when the process ends, and its name."""
        return {self._member.watch: self._member.name}

    def begin(self, start_ns: int) -> None:
        """Say when the run starts, by the monotonic clock."""
        say(self._member.control, {"start": start_ns})

    def _await(self, kind: str) -> None:
        message = hear(self._member)
        assert kind in message, message


def hear_start(control: socket.socket) -> int | None:
    """Wait for the run's start, by the monotonic clock; None: there is none."""
    start_ns: int | None = (listen(control) or {}).get("start")
    return start_ns


def is_over(control: socket.socket, until_ns: int) -> bool:
    """Wait until a time of the monotonic clock; return whether the run has ended before."""
    left_s = (until_ns - time.monotonic_ns()) / NS_PER_S
    return bool(select.select([control], [], [], max(left_s, 0))[0])
