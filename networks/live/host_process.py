"""One host of a live network: a process in the host's network namespace that runs its node.

It is forked with all hosts' state in memory, and uses its own host's. It sends messages of JSON
over a socket to the process that forked it: {"ready"}, {"finished"}, {"waits"}, {"counters"},
{"error"}; it receives {"start"}, {"explain"} and {"stop"}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
from ringleaf.arena import Store
from ringleaf.errors import BackendError, RingleafError
from ringleaf.hosts.agent import PROGRESS, REFUSALS, RETRANSMISSIONS
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.execution import Execution
from ringleaf.networks.endpoints.operation import Operation
from ringleaf.networks.live.engine import Engine, LinkEnd, Node
from ringleaf.networks.live.processes import hurry
from ringleaf.networks.virtual.room import make_room
from ringleaf.units import PS_PER_MS, PS_PER_NS

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
TURN_PS = 20 * PS_PER_MS
MESSAGE_BYTES = 1 << 16

_C = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class LivePlace:
    """The place of a host on the machine.

    Args:
        name: Name of the host.
        line: Its interface, and the link that begins there.
        namespace: The file that stands for its network namespace.
    """

    name: str
    line: LinkEnd
    namespace: Path


@dataclass(frozen=True, slots=True)
class HostTask:
    """The parts of a measurement that all hosts share: their state, and counters of progress."""

    endpoints: Endpoints
    store: Store
    operation: Operation
    progress: npt.NDArray[np.int64]  # per host, in shared memory: grows with progress
    seed: int


def enter_namespace(path: Path) -> None:
    """Move this process to a network namespace.

    Raises:
        BackendError: If there is none, or this process may not enter it.
    """
    try:
        with path.open() as file:
            if _C.setns(file.fileno(), CLONE_NEWNET) < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    except OSError as exc:
        raise BackendError(
            f"namespace: can't enter, got {str(path)!r}: {exc.strerror}; is it there, are you root?"
        ) from exc


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    _C.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent has ended already


def be_host(
    place: LivePlace, number: int, job: HostTask, control: socket.socket, parent: int
) -> None:
    """Be the host of that number in this process, which was forked for it, and end the process."""
    try:
        die_with(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        hurry()
        gc.disable()
        enter_namespace(place.namespace)
        _Host(place, number, job, control).run()
    except RingleafError as exc:
        _say(control, {"error": str(exc)})
    except BaseException:  # noqa: BLE001 - whoever forked this process raises it
        _say(control, {"error": traceback.format_exc()})
    finally:
        os._exit(0)


def _say(control: socket.socket, message: dict[str, Any]) -> None:
    control.send(json.dumps(message).encode())


class _Host:
    def __init__(
        self, place: LivePlace, number: int, job: HostTask, control: socket.socket
    ) -> None:
        self._number = number
        self._job = job
        self._control = control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        agents = job.endpoints.agents(number)
        self._blocks = [agent.block for agent in agents]
        self._engine = Engine(job.store, ring=job.endpoints.ring, seed=job.seed + number)
        self._engine.build([Node(place.name, [place.line], agents=agents)])
        self._execution = Execution(
            job.endpoints, job.store, wake=loop.hold, networks=[self._engine.at]
        )
        self._node = job.endpoints.node_of(job.operation.group, number)
        self._operation = job.operation
        takes_part = 0 <= self._node < self._operation.executors.nodes
        self._operation.nodes = [self._node] if takes_part else []

    def run(self) -> None:
        """Say ready, run the node from the time that is given then, and serve until the stop."""
        self._execution.start(self._operation, self._engine.now_ps)
        self._dispatch()  # receives are posted before anybody may send
        _say(self._control, {"ready": True})
        start_ps = self._hear_start()
        while self._engine.serve(start_ps) == loop.REPORTED:
            self._dispatch()
        cpu_s = time.process_time()
        self._start(start_ps)
        if not self._operation.left:
            self._finish(start_ps)
        while not self._must_stop():
            self._advance(start_ps)
            self._note_progress()
        _say(self._control, {"counters": self._counters(time.process_time() - cpu_s)})

    def _start(self, start_ps: int) -> None:
        """Let agents send the requests they have been given so far."""
        self._execution.set_wake(loop.wake)
        for block in self._blocks:
            loop.wake(self._job.store.arena, self._engine.at, block, start_ps)

    def _hear_start(self) -> int:
        """Wait for the time of the common start; return it in this process's time."""
        start_ns = json.loads(self._control.recv(MESSAGE_BYTES))["start"]
        return self._engine.now_ps + (start_ns - time.monotonic_ns()) * PS_PER_NS

    def _must_stop(self) -> bool:
        """Return whether to stop: by command, or as the parent is gone; answer {"explain"}."""
        if not self._poll.poll(0):
            return False
        text = self._control.recv(MESSAGE_BYTES)
        if not text or "stop" in json.loads(text):
            return True
        _say(self._control, {"waits": self._waits()})
        return False

    def _waits(self) -> str:
        names = self._job.endpoints.groups[self._operation.group].nodes
        operation = self._operation
        parts = [part for node in operation.nodes for part in operation.waits(node, names)]
        again, full = self._sum(RETRANSMISSIONS), self._engine.sockets()[0]["overflow"]
        found_full = f", {full} frames found its ring full" if full else ""
        return f"waits for {', '.join(parts) or 'nothing'} ({again} packets sent again{found_full})"

    def _note_progress(self) -> None:
        self._job.progress[self._number] = self._execution.reports + self._sum(PROGRESS)

    def _sum(self, word: int) -> int:
        """Return the sum of a counter over all agents."""
        words = self._job.store.arena.words
        return sum(int(words[at + word]) for at in self._blocks)

    def _advance(self, start_ps: int) -> None:
        """Serve until agents report, for one turn at most."""
        if self._engine.serve(self._engine.now_ps + TURN_PS) != loop.REPORTED:
            return
        self._dispatch()
        if self._execution.take_done():
            self._finish(start_ps)

    def _dispatch(self) -> None:
        """Have reports taken, and requests posted."""
        while self._execution.dispatch():
            make_room(self._job.store, self._engine.at)

    def _finish(self, start_ps: int) -> None:
        took_ps = 0
        if self._operation.nodes:
            took_ps = self._operation.finish_ps(self._node) - start_ps
        _say(self._control, {"finished": max(took_ps, 0)})

    def _counters(self, cpu_s: float) -> dict[str, Any]:
        net = self._engine.network()
        own = net.ports[0]
        return {
            "retransmissions": self._sum(RETRANSMISSIONS),
            "refusals": self._sum(REFUSALS),
            "tx_line_bytes": int(own[s.TX_BYTES]),
            "lost": int(own[s.LOST]),
            "packet_hops": int(net.state[s.HOPS]),
            "events": int(net.state[s.EVENTS]),
            "unclaimed": int(net.state[s.UNCLAIMED]),
            "cpu_s": cpu_s,
            **self._engine.sockets()[0],
        }
