"""One host of a live network: a process in the host's network namespace that runs its node.

It is forked with all hosts' state in memory, and uses its own host's. It sends messages of JSON
over a socket: {"ready"}, {"finished"}, {"waits"}, {"rounds"}, {"counters"}, {"error"}; it receives
{"start"}, {"explain"}, {"halt"}, {"go_on"} and {"stop"}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import ringleaf.networks.virtual.loop as loop
import ringleaf.networks.virtual.state as s
from ringleaf.core.arena import Store
from ringleaf.core.units import PS_PER_MS, PS_PER_NS, format_count
from ringleaf.errors import BackendError
from ringleaf.hosts.agent import CORRUPTED, PROGRESS, REFUSALS, REPATHS, RETRANSMISSIONS
from ringleaf.networks.endpoints.endpoints import Endpoints
from ringleaf.networks.endpoints.execution import Execution, Wake
from ringleaf.networks.endpoints.operation import CollectiveOperation
from ringleaf.networks.endpoints.rack_demand import QueuePairTraffic
from ringleaf.networks.live.engine import Engine, LinkEnd, LiveNode
from ringleaf.networks.live.line_changes import LineChange, LineChanges
from ringleaf.networks.live.members import MESSAGE_BYTES, say
from ringleaf.networks.live.processes import hurry
from ringleaf.networks.live.shared_traffic import SharedTraffic
from ringleaf.networks.live.standstill import resumed_ps, stand_still
from ringleaf.networks.virtual.room import make_room

CLONE_NEWNET = 0x40000000
SPACING_OF_ERRORS = Path("/proc/sys/net/ipv4/icmp_ratelimit")  # of the namespace that one is in
NEVER_MS = 2**31 - 1
TURN_PS = 20 * PS_PER_MS

_C = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class LivePlace:
    """The place of a host on the machine.

    Args:
        name: Name of the host.
        line: Its interface, and the link that begins there.
        namespace: The file that stands for its network namespace.
        changes: What happens to the line in each run.
    """

    name: str
    line: LinkEnd
    namespace: Path
    changes: Sequence[LineChange] = ()


@dataclass(frozen=True, slots=True)
class HostTask:
    """The state that all hosts of a run share, and counters of their progress."""

    endpoints: Endpoints
    store: Store
    progress: npt.NDArray[np.int64]  # per host, in shared memory: grows with progress
    seed: int
    traffic: SharedTraffic | None = None  # if a controller of circuits wants to know


class Runs(Protocol):
    """A host that is to be run."""

    def run(self) -> None:
        """Run the host in this process until it has been told to stop."""


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


def keep_kernel_quiet() -> None:
    """Have this namespace's kernel send no errors by ICMP.

    It answers frames for agents, whose UDP ports it does not know, with "port unreachable". Links
    would carry these answers beside what hosts send, and captures would contain them.
    """
    with contextlib.suppress(OSError):  # where a container's /proc can't be written, they remain
        SPACING_OF_ERRORS.write_text(str(NEVER_MS))


def be_host(
    place: LivePlace, make: Callable[[socket.socket], Runs], control: socket.socket
) -> None:
    """Be a host in this process, which was forked for it."""
    hurry()
    enter_namespace(place.namespace)
    keep_kernel_quiet()
    make(control).run()


class Host:
    """A host's node on its interface, and its executors.

    Args:
        place: Its place on the machine.
        number: Its number.
        task: The state that it shares.
        control: The socket to the process that leads it.
        wake: The handler by which an agent is served that was given something to do.
    """

    def __init__(
        self,
        place: LivePlace,
        number: int,
        task: HostTask,
        control: socket.socket,
        *,
        wake: Wake,
    ) -> None:
        self.number = number
        self.task = task
        self.control = control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        agents = task.endpoints.agents(number)
        self.blocks = [agent.block for agent in agents]
        self.engine = Engine(
            task.store,
            ring=task.endpoints.ring,
            seed=task.seed + number,
            caller=control.fileno(),
        )
        self.engine.build([LiveNode(place.name, [place.line], agents=agents)])
        self._place, self._changes = place, LineChanges(self.engine, [place.line])
        self._traffic = QueuePairTraffic(task.store, task.endpoints.connections, [number])
        self.execution = Execution(task.endpoints, task.store, wake=wake, networks=[self.engine.at])

    @property
    def is_called(self) -> bool:
        """Whether there is a message to read."""
        return bool(self._poll.poll(0))

    def hear_start(self) -> int:
        """Wait for the time of the common start; return it in this process's time."""
        start_ns = json.loads(self.control.recv(MESSAGE_BYTES))["start"]
        self._changes.begin(self._place.changes, start_ns)
        return self.engine.now_ps + (start_ns - time.monotonic_ns()) * PS_PER_NS

    def serve_turn(self) -> int:
        """Serve until agents report, for one turn at most, or until the line changes."""
        self._changes.happen()
        return self.engine.serve(min(self.engine.now_ps + TURN_PS, self._changes.next_ps))

    def dispatch(self) -> None:
        """Have reports taken, and requests posted; raise what a function that was called raised."""
        while self.execution.dispatch():
            make_room(self.task.store, self.engine.at)
        self.execution.check()

    def waits(self, operations: Iterable[CollectiveOperation]) -> str:
        """Return, for people, what the host waits for in these operations."""
        groups = self.task.endpoints.groups
        parts = [
            part
            for operation in operations
            for node in operation.nodes
            for part in operation.waits(node, groups[operation.group].nodes)
        ]
        again, full = self._sum(RETRANSMISSIONS), self.engine.sockets()[0]["overflow"]
        found_full = f", {format_count(full, 'frame')} found its ring full" if full else ""
        return (
            f"waits for {', '.join(parts) or 'nothing'} ({format_count(again, 'packet')} "
            f"sent again{found_full})"
        )

    def note_progress(self) -> None:
        """Show all processes how far this one is."""
        self.task.progress[self.number] = self.execution.reports + self._sum(PROGRESS)
        if self.task.traffic is not None:
            self.task.traffic.note(self.number, self._traffic())

    def _sum(self, word: int) -> int:
        """Return the sum of a counter over all agents."""
        words = self.task.store.arena.words
        return sum(int(words[at + word]) for at in self.blocks)

    def stand_still(self, groups: Sequence[int]) -> None:
        """Have workers of these groups go on over other trees, when switches know of them."""
        task = self.task
        stand_still(
            *(groups, self.number, task.endpoints, task.store),
            engine=self.engine,
            control=self.control,
        )

    def counters(self, cpu_s: float, start_ps: int) -> dict[str, Any]:
        """Return what the host has counted.

        Args:
            cpu_s: The time of a processor that it has used.
            start_ps: The common start, in this process's time.
        """
        resumed = resumed_ps(self.number, self.task.endpoints, self.task.store)
        (sockets,) = self.engine.sockets()
        net = self.engine.network()
        own = net.ports[0]
        return {
            "retransmissions": self._sum(RETRANSMISSIONS),
            "refusals": self._sum(REFUSALS),
            "corrupted": self._sum(CORRUPTED),
            "repaths": self._sum(REPATHS),
            "tx_line_bytes": int(own[s.TX_BYTES]),
            "lost": int(own[s.LOST]),
            "packet_hops": sockets["received"],
            "events": int(net.state[s.EVENTS]),
            "unclaimed": int(net.state[s.UNCLAIMED]),
            "cpu_s": cpu_s,
            "resumed": [
                (group, None if at_ps is None else at_ps - start_ps)
                for group, at_ps in resumed.items()
            ],
            **sockets,
        }


class CollectiveHost(Host):
    """A host for one collective, which all hosts start at one time."""

    def __init__(
        self,
        place: LivePlace,
        number: int,
        task: HostTask,
        operation: CollectiveOperation,
        control: socket.socket,
    ) -> None:
        super().__init__(place, number, task, control, wake=loop.hold)
        self._node = task.endpoints.node_of(operation.group, number)
        self._operation = operation
        takes_part = 0 <= self._node < operation.executors.nodes
        operation.nodes = [self._node] if takes_part else []

    def run(self) -> None:
        """Say ready, run the node from the time that is given then, and serve until the stop."""
        self.execution.start(self._operation, self.engine.now_ps)
        self.dispatch()  # receives are posted before anybody may send
        say(self.control, {"ready": True})
        start_ps = self.hear_start()
        while self.engine.serve(start_ps) != loop.UNTIL:
            self.dispatch()
        cpu_s = time.process_time()
        self._start(start_ps)
        if not self._operation.left:
            self._finish(start_ps)
        while not self._must_stop():
            self._advance(start_ps)
            self.note_progress()
        say(self.control, {"counters": self.counters(time.process_time() - cpu_s, start_ps)})

    def _start(self, start_ps: int) -> None:
        """Let agents send the requests they have been given so far."""
        self.execution.set_wake(loop.wake)
        for block in self.blocks:
            loop.wake(self.task.store.arena, self.engine.at, block, start_ps)

    def _must_stop(self) -> bool:
        """Return whether to stop: by command, or as the parent is gone; do what else it says."""
        if not self.is_called:
            return False
        text = self.control.recv(MESSAGE_BYTES)
        if not text or "stop" in (message := json.loads(text)):
            return True
        if "halt" in message:
            self.stand_still(message["halt"])
        else:
            say(self.control, {"waits": self.waits([self._operation])})
        return False

    def _advance(self, start_ps: int) -> None:
        """Serve until agents report, for one turn at most."""
        if self.serve_turn() != loop.REPORTED:
            return
        self.dispatch()
        if self.execution.take_done():
            self._finish(start_ps)

    def _finish(self, start_ps: int) -> None:
        took_ps = 0
        if self._operation.nodes:
            took_ps = self._operation.finish_ps(self._node) - start_ps
        say(self.control, {"finished": max(took_ps, 0)})
